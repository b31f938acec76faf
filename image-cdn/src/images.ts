/** Serves an image: thumbnails from R2 and filled on a miss, full images passed through. */

import { imageAnswer, isKnown, refusalAnswer } from "./answers";
import type { Breaker } from "./breaker";
import type { Config } from "./config";
import type { Env } from "./env";
import type { Flights } from "./flights";
import { logFault, logRefusal } from "./log";
import type { Outcome } from "./outcomes";
import type { ImageRequest } from "./parameters";
import { described, flightOf, keyOf, store, type Stored } from "./thumbnails";
import { fetchPicture, mayPass, rateLimited } from "./upstream";

/** Beyond the deadline of a flight, for those who wait for it. */
const PATIENCE_MS = 1_000;

export interface Serving {
  readonly env: Env;
  readonly config: Config;
  readonly ctx: Pick<ExecutionContext, "waitUntil">;
  readonly flights: Flights;
  readonly breaker: Breaker;
}

export async function serveImage(request: Request, image: ImageRequest, serving: Serving): Promise<Response> {
  return image.tier === "full"
    ? await serveFull(request, image, serving)
    : await serveThumbnail(request, image, serving);
}

async function serveFull(request: Request, image: ImageRequest, serving: Serving): Promise<Response> {
  if (!(await mayPass(serving.env.IMAGE_FULL_TIER_RATE_LIMITER))) {
    return refusalAnswer(rateLimited("full-tier"));
  }
  return answer(request, image, await load(image, serving));
}

async function serveThumbnail(request: Request, image: ImageRequest, serving: Serving): Promise<Response> {
  const { object, stored } = await readStored(request, image, serving.env);
  if (stored === null) {
    return answer(request, image, await fill(image, serving));
  }
  if (isStale(image, stored, serving.config)) {
    serving.ctx.waitUntil(fill(image, serving));
  }
  const body = object !== null && "body" in object ? object.body : null;
  return imageAnswer(request, image, { ...stored, body });
}

interface Read {
  readonly object: R2Object | R2ObjectBody | null;
  readonly stored: Stored | null;
}

/**
 * Return what is stored, with its body only when the caller is due one.
 *
 * A bucket that cannot be read is no reason to show nothing: the image host is asked, within its rate.
 */
async function readStored(request: Request, image: ImageRequest, env: Env): Promise<Read> {
  try {
    const key = keyOf(image);
    if (request.method === "HEAD" || request.headers.has("If-None-Match")) {
      const object = await env.THUMBNAILS.head(key);
      const stored = described(object);
      if (stored === null || request.method === "HEAD" || isKnown(request, stored.sha256)) {
        return { object, stored };
      }
    }
    const object = await env.THUMBNAILS.get(key);
    const stored = described(object);
    if (stored === null) {
      await object?.body.cancel();
    }
    return { object, stored };
  } catch (error) {
    logFault("r2-read-failed", error);
    return { object: null, stored: null };
  }
}

async function fill(image: ImageRequest, serving: Serving): Promise<Outcome> {
  return await serving.flights.join(
    flightOf(image),
    serving.ctx,
    serving.config.deadlineMs + PATIENCE_MS,
    () => load(image, serving),
    async (picture) => {
      try {
        await store(serving.env.THUMBNAILS, image, picture);
      } catch (error) {
        logFault("r2-write-failed", error);
      }
    },
  );
}

async function load(image: ImageRequest, serving: Serving): Promise<Outcome> {
  const { config, breaker, env } = serving;
  const outcome = await fetchPicture(image, { config, breaker, limiter: env.GOOGLE_DRIVE_RATE_LIMITER });
  if (outcome.kind === "refusal") {
    logRefusal(image, outcome);
  }
  return outcome;
}

function answer(request: Request, image: ImageRequest, outcome: Outcome): Response {
  if (outcome.kind === "refusal") {
    return refusalAnswer(outcome);
  }
  return imageAnswer(request, image, { ...outcome, size: outcome.bytes.length, body: outcome.bytes });
}

/** What an address with a version shows never changes. */
function isStale(image: ImageRequest, stored: Stored, config: Config): boolean {
  return image.version === undefined && Date.now() - stored.object.uploaded.getTime() >= config.staleAfterMs;
}
