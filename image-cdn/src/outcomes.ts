/** What became of a request for an image: a picture whose bytes were checked, or a refusal that says whose it is. */

export interface Picture {
  readonly kind: "picture";
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly sha256: string;
}

export interface Refusal {
  readonly kind: "refusal";
  readonly status: number;
  /** Goes into X-Image-Cdn-Error: `upstream-…` was said by the image host, everything else is ours. */
  readonly code: string;
  readonly message: string;
  readonly retryAfterS?: number;
  /** A reason that the image host gave in the JSON of an error. */
  readonly reason?: string;
}

export type Outcome = Picture | Refusal;

export function refusal(status: number, code: string, message: string, more: Partial<Refusal> = {}): Refusal {
  return { kind: "refusal", status, code, message, ...more };
}
