/**
 * The image CDN: GET and HEAD of /images/google_drive/{small|large|full}/{id}.jpg, POST /purge, GET /healthz.
 *
 * Only bytes that are an image leave it, and an error says in X-Image-Cdn-Error whose it is.
 */

import { jsonAnswer, refusalAnswer } from "./answers";
import { Breaker } from "./breaker";
import { ConfigError, readConfig, type Config } from "./config";
import { isPreflight, preflightAnswer, withCors } from "./cors";
import type { Env } from "./env";
import { Flights } from "./flights";
import { serveImage } from "./images";
import { logFault } from "./log";
import { refusal } from "./outcomes";
import { readImageRequest } from "./parameters";
import { servePurge } from "./purge";

// Shared by the requests of one isolate: what is being fetched now, and whether the image host wants to be left alone.
const flights = new Flights();
const breaker = new Breaker();

const READING = ["GET", "HEAD"];

export default {
  async fetch(request, env, ctx): Promise<Response> {
    try {
      const config = readConfig(env);
      return withCors(request, await route(request, env, ctx, config), config);
    } catch (error) {
      const isConfig = error instanceof ConfigError;
      logFault(isConfig ? "misconfigured" : "internal-error", error);
      return refusalAnswer(
        isConfig ? refusal(500, "misconfigured", error.message) : refusal(500, "internal", "an error of this CDN"),
      );
    }
  },
} satisfies ExportedHandler<Env>;

async function route(request: Request, env: Env, ctx: ExecutionContext, config: Config): Promise<Response> {
  const url = new URL(request.url);
  if (url.pathname === "/healthz") {
    return READING.includes(request.method) ? jsonAnswer(200, { ok: true }) : notAllowed(READING);
  }
  if (url.pathname === "/purge") {
    return request.method === "POST" ? await servePurge(request, env) : notAllowed(["POST"]);
  }
  const image = readImageRequest(url);
  if (image === null) {
    return refusalAnswer(refusal(404, "no-such-route", "there is nothing at this address"));
  }
  if (isPreflight(request)) {
    return preflightAnswer();
  }
  if (!READING.includes(request.method)) {
    return notAllowed(READING);
  }
  if (image.kind === "refusal") {
    return refusalAnswer(image);
  }
  return await serveImage(request, image, { env, config, ctx, flights, breaker });
}

function notAllowed(methods: string[]): Response {
  const said = refusal(405, "method-not-allowed", `only ${methods.join(" and ")} here`);
  return refusalAnswer(said, { Allow: methods.join(", ") });
}
