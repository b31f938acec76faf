export class RefusedError extends Error {}

export interface How {
  post: (batch: string[]) => Promise<Response>;
  sleep: (ms: number) => Promise<unknown>;
  now?: () => number;
  random?: () => number;
}

export function purgeAll(identifiers: Iterable<string>, how: How): Promise<{ purged: string[]; left: string[] }>;
