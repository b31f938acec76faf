/** What an answer of the image host means when it is no success, by status and body. */

import { readStart, shown } from "./body";
import { isLockoutPage, lockout } from "./lockout";
import { refusal, type Refusal } from "./outcomes";

const ERROR_BYTES = 4_096;
const MAX_RETRY_AFTER_S = 3_600;
/** Said on as they are: the caller reacts to each in a way of its own. */
const PASSED = new Set([403, 404, 410, 429, 503]);

/** Whether a refusal is about us, not about one file. */
export function isPressure(said: Refusal): boolean {
  return said.code === "upstream-429" || said.code === "upstream-503" || said.code === "upstream-lockout";
}

export async function verdict(answer: Response): Promise<Refusal> {
  const body = await readStart(answer, ERROR_BYTES);
  const text = new TextDecoder().decode(body);
  if (isLockoutPage(text)) {
    return lockout(`${answer.status} with the page for machines`);
  }
  const status = statusFor(answer.status);
  const reason = reasonIn(text);
  return refusal(status, `upstream-${answer.status}`, `the image host answered ${answer.status}: ${shown(body)}`, {
    ...(status === 429 || status === 503 ? { retryAfterS: retryAfterS(answer.headers.get("Retry-After")) } : {}),
    ...(reason !== undefined && { reason }),
  });
}

/** A 401 is a refusal like 403; it needs a challenge that we have none of. The rest is a bad gateway. */
function statusFor(upstream: number): number {
  if (PASSED.has(upstream)) {
    return upstream;
  }
  if (upstream === 401) {
    return 403;
  }
  return upstream === 504 ? 504 : 502;
}

/** A date is one only in the form of HTTP: the parser takes nearly anything for one. */
function retryAfterS(header: string | null): number {
  const given = header ?? "";
  const left = given.endsWith(" GMT") ? (Date.parse(given) - Date.now()) / 1000 : NaN;
  const seconds = /^\d+$/.test(given) ? Number(given) : left;
  return Number.isFinite(seconds) ? Math.min(Math.max(Math.ceil(seconds), 1), MAX_RETRY_AFTER_S) : 10;
}

/** Return the reason in the JSON error of a Google API. */
function reasonIn(text: string): string | undefined {
  try {
    const error = (JSON.parse(text) as { error?: { errors?: { reason?: unknown }[]; status?: unknown } }).error;
    const reason = error?.errors?.[0]?.reason ?? error?.status;
    return typeof reason === "string" && /^[A-Za-z_]{1,60}$/.test(reason) ? reason : undefined;
  } catch {
    return undefined;
  }
}
