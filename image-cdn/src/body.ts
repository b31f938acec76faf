/** The body of an answer, read within a size and checked to be all of an image. */

import { formatOf } from "./formats";
import { isLockoutPage, lockout } from "./lockout";
import { refusal, type Outcome, type Refusal } from "./outcomes";

const MIN_BYTES = 100;
const SHOWN_BYTES = 200;
const PAGE_BYTES = 4_096;
const FIRST_BUFFER_BYTES = 65_536;

/** Return the picture in `answer`, a success, or why it holds none. */
export async function readPicture(answer: Response, maxBytes: number): Promise<Outcome> {
  const declared = declaredLength(answer);
  const read = await readAtMost(answer, maxBytes);
  if (!(read instanceof Uint8Array)) {
    return read;
  }
  if (read.length === 0) {
    return refusal(502, "empty", "the upstream answered 200 with no bytes");
  }
  if (declared !== undefined && read.length !== declared) {
    return refusal(502, "short-body", `${read.length} of ${declared} bytes arrived`);
  }
  const format = formatOf(read);
  if (format === undefined && isLockoutPage(new TextDecoder().decode(read.subarray(0, PAGE_BYTES)))) {
    return lockout("200 with the page for machines");
  }
  if (format === undefined) {
    return refusal(502, "not-an-image", `the upstream answered 200 with ${textKind(read)}: ${shown(read)}`);
  }
  if (read.length < MIN_BYTES) {
    return refusal(502, "too-small", `${read.length} bytes are no card image`);
  }
  if (declared === undefined && !format.isWhole(read)) {
    return refusal(502, "short-body", `the ${format.contentType} ends before its end`);
  }
  return { kind: "picture", bytes: read, contentType: format.contentType, sha256: await sha256(read) };
}

/** Return the start of an error's body; whatever goes wrong reading it, the error itself is known. */
export async function readStart(answer: Response, maxBytes: number): Promise<Uint8Array> {
  const read = await readAtMost(answer, maxBytes, true);
  return read instanceof Uint8Array ? read : new Uint8Array();
}

/** Return the first bytes as one line, for diagnosis. */
export function shown(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes.subarray(0, SHOWN_BYTES), { stream: true });
  if (/[\0\ufffd]/.test(text)) {
    return `${bytes.length} bytes that are no text`;
  }
  return text.replace(/[\p{C}\s]+/gu, " ").trim();
}

function textKind(bytes: Uint8Array): string {
  const start = shown(bytes).toLowerCase();
  if (/^<(!doctype html|html|head|body|meta|script)/.test(start)) {
    return "HTML";
  }
  if (/^(<\?xml.*)?<svg/.test(start)) {
    return "SVG";
  }
  return /^[{[]/.test(start) ? "JSON" : "something else";
}

/** An encoded body has the length of its encoding, which says nothing about the bytes that are read. */
function declaredLength(answer: Response): number | undefined {
  const encoding = answer.headers.get("Content-Encoding") ?? "identity";
  const length = answer.headers.get("Content-Length");
  return encoding === "identity" && length !== null && /^\d+$/.test(length) ? Number(length) : undefined;
}

/** Read into one buffer, of the declared length where there is one: an image should not be in memory twice. */
async function readAtMost(answer: Response, maxBytes: number, cut = false): Promise<Uint8Array | Refusal> {
  const tooLarge = refusal(502, "too-large", `the upstream sends more than ${maxBytes} bytes`);
  const declared = declaredLength(answer) ?? FIRST_BUFFER_BYTES;
  if (!cut && declared > maxBytes) {
    await answer.body?.cancel();
    return tooLarge;
  }
  let buffer = new Uint8Array(Math.min(declared, maxBytes));
  let received = 0;
  const reader = (answer.body as ReadableStream<Uint8Array> | null)?.getReader();
  try {
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      const fits = part.value.subarray(0, maxBytes - received);
      buffer = withRoom(buffer, received + fits.length);
      buffer.set(fits, received);
      received += fits.length;
      if (fits.length < part.value.length) {
        await reader?.cancel();
        return cut ? buffer.subarray(0, received) : tooLarge;
      }
    }
  } catch (error) {
    if (error instanceof Error && (error.name === "TimeoutError" || error.name === "AbortError")) {
      return refusal(504, "upstream-timeout", `the image did not arrive in time, ${received} bytes did`);
    }
    return refusal(502, "short-body", `the connection ended after ${received} bytes`);
  }
  return buffer.subarray(0, received);
}

function withRoom(buffer: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  if (length <= buffer.length) {
    return buffer;
  }
  const larger = new Uint8Array(Math.max(length, 2 * buffer.length));
  larger.set(buffer);
  return larger;
}

async function sha256(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
