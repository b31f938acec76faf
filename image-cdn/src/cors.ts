/** Which sites' pages may read images by script: those that are configured, and no other. */

import type { Config } from "./config";

const METHODS = "GET, HEAD";
const EXPOSED = "Content-Length, ETag, Retry-After, X-Image-Cdn-Dpi, X-Image-Cdn-Error, X-Image-Cdn-Notice";

export function isPreflight(request: Request): boolean {
  return request.method === "OPTIONS" && request.headers.has("Access-Control-Request-Method");
}

export function preflightAnswer(): Response {
  const headers = { "Access-Control-Allow-Methods": METHODS, "Access-Control-Max-Age": "86400" };
  return new Response(null, { status: 204, headers });
}

/** Add the headers that `request`'s site is due; the answer differs by site, and caches must know. */
export function withCors(request: Request, answer: Response, config: Config): Response {
  const allowed = allowedOrigin(request.headers.get("Origin"), config);
  if (config.corsOrigins.size > 0 && !config.corsOrigins.has("*")) {
    answer.headers.append("Vary", "Origin");
  }
  if (allowed !== undefined) {
    answer.headers.set("Access-Control-Allow-Origin", allowed);
    answer.headers.set("Access-Control-Expose-Headers", EXPOSED);
  }
  return answer;
}

function allowedOrigin(origin: string | null, config: Config): string | undefined {
  if (config.corsOrigins.has("*")) {
    return "*";
  }
  return origin !== null && config.corsOrigins.has(origin) ? origin : undefined;
}
