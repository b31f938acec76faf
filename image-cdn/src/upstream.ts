/**
 * The image host: asked once, within a rate, a time and a size, and followed to allowed origins only.
 *
 * Nothing is tried again here: pressure belongs to whoever asks.
 */

import { readPicture } from "./body";
import type { Breaker } from "./breaker";
import type { Config } from "./config";
import { isSignIn, lockout } from "./lockout";
import { refusal, type Outcome, type Refusal } from "./outcomes";
import type { ImageRequest } from "./parameters";
import { isPressure, verdict } from "./verdicts";

const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MAX_BYTES = { small: 5_000_000, large: 10_000_000, full: 30_000_000 };
const HEADERS = { Accept: "image/*", "Accept-Encoding": "identity", "User-Agent": "image-cdn/1" };
/** The window of the rate-limit bindings: after it the next permits are there. */
export const OWN_RETRY_AFTER_S = 10;

export interface UpstreamOptions {
  readonly config: Config;
  readonly limiter: RateLimit;
  readonly breaker: Breaker;
}

export function rateLimited(whose: string): Refusal {
  return refusal(429, "rate-limited", `the ${whose} limit of this CDN is used up`, { retryAfterS: OWN_RETRY_AFTER_S });
}

/** Whether a permit is left. A limiter that cannot be asked gives none. */
export async function mayPass(limiter: RateLimit): Promise<boolean> {
  try {
    return (await limiter.limit({ key: "all" })).success;
  } catch {
    return false;
  }
}

/** Return the image from the image host, or why there is none. */
export async function fetchPicture(image: ImageRequest, options: UpstreamOptions): Promise<Outcome> {
  const { config, breaker } = options;
  const held = breaker.held(config.upstreamOrigin);
  if (held !== undefined) {
    return held;
  }
  const outcome = withoutKey(image, await follow(address(image, config), MAX_BYTES[image.tier], options));
  if (outcome.kind === "refusal" && isPressure(outcome)) {
    breaker.strike(config.upstreamOrigin, outcome);
  } else if (outcome.kind === "picture" || outcome.code !== "rate-limited") {
    breaker.clear(config.upstreamOrigin);
  }
  return outcome;
}

/** A quality asks for JPEG; without one the image host keeps the format that it has. */
function address(image: ImageRequest, config: Config): URL {
  const quality = image.jpgQuality === undefined ? "" : `-rj-l${image.jpgQuality}`;
  const path = config.upstreamPath
    .replaceAll("{id}", image.identifier)
    .replaceAll("{height}", String(image.heightPx))
    .replaceAll("{options}", quality);
  const url = new URL(path, config.upstreamOrigin);
  if (image.resourceKey !== undefined) {
    url.searchParams.set("resourcekey", image.resourceKey);
  }
  return url;
}

/** A resource key opens an image to whoever has it: error pages like to repeat the whole address, and logs keep it. */
function withoutKey(image: ImageRequest, outcome: Outcome): Outcome {
  return outcome.kind === "picture" || image.resourceKey === undefined
    ? outcome
    : { ...outcome, message: outcome.message.replaceAll(image.resourceKey, "…") };
}

async function follow(start: URL, maxBytes: number, options: UpstreamOptions): Promise<Outcome> {
  const signal = AbortSignal.timeout(options.config.deadlineMs);
  let url = start;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
    if (!(await mayPass(options.limiter))) {
      return rateLimited("Google Drive");
    }
    const answer = await ask(url, signal);
    if (!(answer instanceof Response)) {
      return answer;
    }
    if (!REDIRECTS.has(answer.status)) {
      return from(url, answer.status === 200 ? await readPicture(answer, maxBytes) : await verdict(answer));
    }
    await answer.body?.cancel();
    const next = nextHop(answer, url, options.config);
    if (!(next instanceof URL)) {
      return next;
    }
    url = next;
  }
  return refusal(502, "too-many-redirects", `more than ${MAX_REDIRECTS} redirects`);
}

/** Name who refused, which after redirects is not who was asked; a query may hold what is nobody's business. */
function from(url: URL, outcome: Outcome): Outcome {
  return outcome.kind === "picture"
    ? outcome
    : { ...outcome, message: `${outcome.message}, from ${url.host}${url.pathname}` };
}

async function ask(url: URL, signal: AbortSignal): Promise<Response | Refusal> {
  try {
    // no-store: Cloudflare must not keep an answer of the upstream between itself and us.
    return await fetch(url, { redirect: "manual", cache: "no-store", headers: HEADERS, signal });
  } catch {
    return signal.aborted
      ? refusal(504, "upstream-timeout", "the image host did not answer in time")
      : refusal(502, "upstream-unreachable", "the image host could not be reached");
  }
}

function nextHop(answer: Response, from: URL, config: Config): URL | Refusal {
  const next = URL.parse(answer.headers.get("Location") ?? "", from.href);
  if (next === null || answer.headers.get("Location") === null) {
    return refusal(502, "redirect-refused", `a ${answer.status} that leads nowhere`);
  }
  if (isSignIn(next)) {
    return lockout(`sent to ${next.hostname}${next.pathname}`);
  }
  if (!config.allowedOrigins.has(next.origin) || next.username !== "" || next.password !== "") {
    return refusal(502, "redirect-refused", `a redirect to ${next.protocol}//${next.host}, which is not allowed`);
  }
  return next;
}
