/** Outcomes as HTTP: the headers that every answer carries, conditional requests, HEAD, errors as JSON. */

import type { Refusal } from "./outcomes";
import type { ImageRequest } from "./parameters";

const SAFE = {
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
  "Cross-Origin-Resource-Policy": "cross-origin",
  "Referrer-Policy": "no-referrer",
};

export interface Content {
  readonly contentType: string;
  readonly sha256: string;
  readonly size: number;
  readonly body: Uint8Array | ReadableStream | null;
}

/** Return an image, or 304 when the caller has it; Range is ignored, which HTTP allows. */
export function imageAnswer(request: Request, image: ImageRequest, content: Content): Response {
  const headers = new Headers({
    ...SAFE,
    "Accept-Ranges": "none",
    "Cache-Control": cacheControl(image),
    ETag: etagOf(content.sha256),
  });
  if (image.dpi !== undefined) {
    headers.set("X-Image-Cdn-Dpi", String(image.dpi));
  }
  if (image.notice !== undefined) {
    headers.set("X-Image-Cdn-Notice", image.notice);
  }
  if (isKnown(request, content.sha256)) {
    return new Response(null, { status: 304, headers });
  }
  headers.set("Content-Type", content.contentType);
  headers.set("Content-Length", String(content.size));
  return new Response(request.method === "HEAD" ? null : content.body, { headers });
}

/** Return an error as JSON; nobody may keep it. */
export function refusalAnswer(said: Refusal, headers: Record<string, string> = {}): Response {
  const { code, message, reason } = said;
  return jsonAnswer(
    said.status,
    { error: { status: reason ?? code, code, message } },
    {
      ...headers,
      "X-Image-Cdn-Error": code,
      ...(said.retryAfterS !== undefined && { "Retry-After": String(said.retryAfterS) }),
    },
  );
}

export function jsonAnswer(status: number, content: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(content) + "\n", {
    status,
    headers: { ...SAFE, "Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store", ...headers },
  });
}

/** Evidence is read off full images: nobody may keep one and hand it out when the file has changed. */
function cacheControl(image: ImageRequest): string {
  if (image.tier === "full") {
    return "no-store";
  }
  return image.version === undefined ? "public, max-age=3600" : "public, max-age=31536000, immutable";
}

/** Whether the caller says that it has these bytes. */
export function isKnown(request: Request, sha256: string): boolean {
  const header = request.headers.get("If-None-Match") ?? "";
  const tags = header.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etagOf(sha256)) || tags.includes("*");
}

function etagOf(sha256: string): string {
  return `"${sha256.slice(0, 32)}"`;
}
