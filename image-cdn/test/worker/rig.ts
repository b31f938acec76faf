/** Asks the Worker as its callers do, with an image host that says what a test wants. */

import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { inject } from "vitest";

import type { Env } from "../../src/env";
import worker from "../../src/index";
import { toBase64 } from "../pictures";
import type { Scripted, Seen } from "../script";

export const SITE = "https://cdn.example";
export const GOOGLE: string = inject("google");
export const CROSS_GOOGLE: string = inject("crossGoogle");
export const bindings = env as unknown as Env;

/** A limiter that always has a permit, so that tests of other things never run into the real one. */
export const OPEN: RateLimit = { limit: async () => ({ success: true }) };
export const SPENT: RateLimit = { limit: async () => ({ success: false }) };

let made = 0;

/** Return an identifier that no other test uses, after telling the image host what to say about it. */
export async function scripted(...answers: Scripted[]): Promise<string> {
  made += 1;
  const identifier = `card-${crypto.randomUUID()}-${made}`;
  if (answers.length > 0) {
    await fetch(`${GOOGLE}/script/${identifier}`, { method: "POST", body: JSON.stringify(answers) });
  }
  return identifier;
}

/** Tell another image host what to say about the same identifier. */
export async function scriptedAt(origin: string, identifier: string, ...answers: Scripted[]): Promise<void> {
  await fetch(`${origin}/script/${identifier}`, { method: "POST", body: JSON.stringify(answers) });
}

export function body(bytes: Uint8Array): Pick<Scripted, "body"> {
  return { body: toBase64(bytes) };
}

/** Return what the image host was asked about `identifier`. */
export async function seen(identifier: string, origin: string = GOOGLE): Promise<Seen[]> {
  return await (await fetch(`${origin}/seen/${identifier}`)).json();
}

/** Return the Worker's answer, after everything that it left to do in the background. */
export async function ask(path: string, init: RequestInit = {}, changed: Partial<Env> = {}): Promise<Response> {
  const open = { IMAGE_FULL_TIER_RATE_LIMITER: OPEN, GOOGLE_DRIVE_RATE_LIMITER: OPEN };
  const ctx = createExecutionContext();
  const request = new Request<unknown, IncomingRequestCfProperties>(
    SITE + path,
    init as RequestInit<IncomingRequestCfProperties>,
  );
  const answer = await worker.fetch(request, { ...bindings, ...open, ...changed }, ctx);
  const copy = new Response(answer.body && (await answer.arrayBuffer()), answer);
  await waitOnExecutionContext(ctx);
  return copy;
}

export function path(tier: string, identifier: string, query = ""): string {
  return `/images/google_drive/${tier}/${identifier}.jpg${query}`;
}

export async function bytesOf(answer: Response): Promise<Uint8Array> {
  return new Uint8Array(await answer.arrayBuffer());
}

export async function storedKeys(identifier: string): Promise<string[]> {
  const { objects } = await bindings.THUMBNAILS.list({ prefix: `v1/google_drive/${identifier}/` });
  return objects.map((object) => object.key);
}

/** Return status and code, which together say whose error it is. */
export function said(answer: Response): string {
  return `${answer.status} ${answer.headers.get("X-Image-Cdn-Error") ?? "fine"}`;
}
