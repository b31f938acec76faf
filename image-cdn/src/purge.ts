/** POST /purge: forgets every thumbnail of the named images, for whoever holds the token. */

import { jsonAnswer, refusalAnswer } from "./answers";
import type { Env } from "./env";
import { logFault } from "./log";
import { refusal } from "./outcomes";
import { isIdentifier } from "./parameters";
import { purge } from "./thumbnails";

const MIN_TOKEN_LENGTH = 32;
const MOST_IDENTIFIERS = 100;
const MAX_BODY_BYTES = 20_000;

export async function servePurge(request: Request, env: Env): Promise<Response> {
  const token = env.PURGE_TOKEN ?? "";
  if (token.length < MIN_TOKEN_LENGTH) {
    const message = `no PURGE_TOKEN of ${MIN_TOKEN_LENGTH} characters or more is set`;
    return refusalAnswer(refusal(503, "purge-disabled", message));
  }
  if (!(await isSame(request.headers.get("Authorization") ?? "", `Bearer ${token}`))) {
    return refusalAnswer(refusal(401, "unauthorized", "the token is missing or wrong"), {
      "WWW-Authenticate": "Bearer",
    });
  }
  const identifiers = await readIdentifiers(request);
  if (identifiers === null) {
    const message = `send {"identifiers": [...]} with 1 to ${MOST_IDENTIFIERS} identifiers`;
    return refusalAnswer(refusal(400, "bad-purge", message));
  }
  return await purgeEach(identifiers, env.THUMBNAILS);
}

/** One image that fails leaves the others purged, and is named. */
async function purgeEach(identifiers: string[], bucket: R2Bucket): Promise<Response> {
  const purged: Record<string, number> = {};
  const failed: string[] = [];
  for (const identifier of identifiers) {
    try {
      purged[identifier] = await purge(bucket, identifier);
    } catch (error) {
      logFault("purge-failed", error);
      failed.push(identifier);
    }
  }
  return jsonAnswer(200, { purged, failed });
}

/** Both are hashed first: a comparison of equal lengths tells nothing about the token's own. */
async function isSame(given: string, wanted: string): Promise<boolean> {
  const [a, b] = await Promise.all([given, wanted].map(digest));
  return crypto.subtle.timingSafeEqual(a as ArrayBuffer, b as ArrayBuffer);
}

async function digest(text: string): Promise<ArrayBuffer> {
  return await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
}

async function readIdentifiers(request: Request): Promise<string[] | null> {
  if (Number(request.headers.get("Content-Length") ?? MAX_BODY_BYTES + 1) > MAX_BODY_BYTES) {
    return null;
  }
  try {
    const { identifiers } = (await request.json()) as { identifiers?: unknown };
    const isRight =
      Array.isArray(identifiers) &&
      identifiers.length >= 1 &&
      identifiers.length <= MOST_IDENTIFIERS &&
      identifiers.every(isIdentifier);
    return isRight ? [...new Set(identifiers)] : null;
  } catch {
    return null;
  }
}
