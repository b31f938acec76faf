/**
 * Purges thumbnails of the image CDN: identifiers on standard input, one a line.
 *
 *   IMAGE_CDN_URL=https://… PURGE_TOKEN=… node scripts/purge.mjs < identifiers
 *
 * Exit codes: 0 done · 1 wrong use · 4 some are left, named on standard error.
 */

import { pathToFileURL } from "node:url";

const BATCH = 100;
const IDENTIFIER = /^[A-Za-z0-9_-]{10,100}$/;
/** Longer than any window of a storage or API limit: whoever gives up sooner loses to the window, not to the limit. */
const PATIENCE_MS = 15 * 60_000;
const WAIT_MS = { first: 5_000, most: 120_000 };

export class RefusedError extends Error {}

/**
 * Purge in batches, one at a time, so that pressure on one holds back all.
 *
 * An identifier that fails is tried again with those that come after it; the time runs out only while nothing succeeds.
 *
 * @param {Iterable<string>} identifiers
 * @param {{post: (batch: string[]) => Promise<Response>, sleep: (ms: number) => Promise<unknown>, now?: () => number, random?: () => number}} how
 * @returns {Promise<{purged: string[], left: string[]}>}
 * @throws {RefusedError} when the CDN says that it will never do it.
 */
export async function purgeAll(identifiers, { post, sleep, now = Date.now, random = Math.random }) {
  const purged = [];
  let left = [...new Set(identifiers)];
  let lastSuccess = now();
  let tries = 0;
  while (left.length > 0) {
    const batch = left.slice(0, BATCH);
    const { done, retryAfterMs } = await purgeBatch(batch, post);
    if (done.size > 0) {
      lastSuccess = now();
      tries = 0;
      purged.push(...done);
    } else {
      const waitMs = waitFor((tries += 1), retryAfterMs, random);
      if (now() + waitMs - lastSuccess > PATIENCE_MS) {
        return { purged, left };
      }
      await sleep(waitMs);
    }
    left = [...left.slice(BATCH), ...batch.filter((identifier) => !done.has(identifier))];
  }
  return { purged, left };
}

async function purgeBatch(batch, post) {
  const answer = await post(batch).catch(() => null);
  if (answer?.ok) {
    const { purged } = await answer.json();
    return { done: new Set(Object.keys(purged)) };
  }
  const isDisabled = answer?.headers.get("X-Image-Cdn-Error") === "purge-disabled";
  if (answer && (isDisabled || (answer.status >= 400 && answer.status < 500 && answer.status !== 429))) {
    throw new RefusedError(`the CDN answered ${answer.status}: ${(await answer.text()).slice(0, 300).trim()}`);
  }
  const seconds = Number(answer?.headers.get("Retry-After") ?? NaN);
  return { done: new Set(), retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined };
}

/** Twice as long each time, up to a bound, never less than asked for, and at no moment that others choose as well. */
function waitFor(tries, retryAfterMs, random) {
  const backoffMs = Math.min(WAIT_MS.first * 2 ** (tries - 1), WAIT_MS.most);
  return (retryAfterMs ?? backoffMs / 2) + random() * (backoffMs / 2);
}

async function main() {
  const { IMAGE_CDN_URL: url, PURGE_TOKEN: token } = process.env;
  if (!url || !token) {
    console.error("Set IMAGE_CDN_URL and PURGE_TOKEN.");
    return 1;
  }
  const given = (await textOf(process.stdin)).split(/\s+/).filter((word) => word !== "");
  const identifiers = given.filter((identifier) => IDENTIFIER.test(identifier));
  if (identifiers.length < given.length) {
    console.error(`${given.length - identifiers.length} lines are no identifiers and are left out.`);
  }
  const post = (batch) =>
    fetch(new URL("/purge", url), {
      method: "POST",
      redirect: "error",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ identifiers: batch }),
      signal: AbortSignal.timeout(60_000),
    });
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  try {
    const { purged, left } = await purgeAll(identifiers, { post, sleep });
    console.log(`purged ${purged.length}, left ${left.length}`);
    left.forEach((identifier) => console.error(`not purged: ${identifier}`));
    return left.length === 0 ? 0 : 4;
  } catch (error) {
    console.error(error instanceof RefusedError ? error.message : `failed: ${error?.name ?? "unknown"}`);
    return 1;
  }
}

async function textOf(stream) {
  const chunks = [];
  for await (const chunk of stream) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.exitCode = await main();
}
