/** What callers get when the image host fails: whose error it is, and that nothing of it stays. */

import { describe, expect, it } from "vitest";

import { HTML, JPEG, LOCKOUT_PAGE, SVG, jpegNumber, text } from "../pictures";
import type { Scripted } from "../script";
import { CROSS_GOOGLE, ask, body, bytesOf, path, said, scripted, scriptedAt, seen, storedKeys } from "./rig";

const JSON_ERROR = text(JSON.stringify({ error: { errors: [{ reason: "cannotDownloadAbusiveFile" }], code: 403 } }));

/** Ask for each tier while the image host fails, and once more when it is well again. */
async function failingThenFine(failure: Scripted): Promise<{ failed: Response[]; stored: string[]; after: string }> {
  const id = await scripted(failure, failure, {});
  const failed = [await ask(path("full", id)), await ask(path("small", id))];
  const stored = await storedKeys(id);
  return { failed, stored, after: said(await ask(path("small", id))) };
}

describe("a status of the image host", () => {
  it.each([
    [400, "502 upstream-400"],
    [401, "403 upstream-401"],
    [403, "403 upstream-403"],
    [404, "404 upstream-404"],
    [410, "410 upstream-410"],
    [416, "502 upstream-416"],
    [418, "502 upstream-418"],
    [429, "429 upstream-429"],
    [500, "502 upstream-500"],
    [502, "502 upstream-502"],
    [503, "503 upstream-503"],
    [504, "504 upstream-504"],
    [206, "502 upstream-206"],
    [203, "502 upstream-203"],
  ])("%i comes out as %s, is not stored, and is over when it is over", async (status, expected) => {
    const { failed, stored, after } = await failingThenFine({ status, ...body(JPEG) });

    for (const answer of failed) {
      expect(said(answer)).toBe(expected);
      expect(answer.headers.get("Cache-Control")).toBe("no-store");
      expect(answer.headers.get("Content-Type")).toBe("application/json; charset=utf-8");
    }
    expect(stored).toEqual([]);
    expect(after).toBe("200 fine");
  });

  it.each([204, 304])("%i has no image", async (status) => {
    const id = await scripted({ status, ...body(new Uint8Array()) });

    expect(said(await ask(path("full", id)))).toBe(`502 upstream-${status}`);
  });

  it.each([
    ["120", "120"],
    ["999999", "3600"],
    ["0", "1"],
    ["-5", "10"],
    ["soon", "10"],
    [undefined, "10"],
  ])("429 with Retry-After %s says %s", async (given, said) => {
    const id = await scripted({ status: 429, headers: given === undefined ? {} : { "Retry-After": given } }, {});

    expect((await ask(path("full", id))).headers.get("Retry-After")).toBe(said);
    await ask(path("full", id));
  });

  it("429 with a date says how many seconds that is", async () => {
    const date = new Date(Date.now() + 90_000).toUTCString();
    const id = await scripted({ status: 429, headers: { "Retry-After": date } }, {});

    const seconds = Number((await ask(path("full", id))).headers.get("Retry-After"));
    expect(seconds).toBeGreaterThan(80);
    expect(seconds).toBeLessThanOrEqual(90);
    await ask(path("full", id));
  });

  it("403 keeps the reason that Google gave", async () => {
    const id = await scripted({ status: 403, ...body(JSON_ERROR) });

    const answer = await ask(path("full", id));

    expect(said(answer)).toBe("403 upstream-403");
    expect(await answer.json()).toMatchObject({ error: { status: "cannotDownloadAbusiveFile", code: "upstream-403" } });
  });
});

describe("a 200 that is no image", () => {
  it.each<[string, Scripted, string]>([
    ["HTML", { ...body(HTML), headers: { "Content-Type": "text/html" } }, "502 not-an-image"],
    ["HTML that calls itself a JPEG", body(HTML), "502 not-an-image"],
    ["SVG that calls itself a PNG", { ...body(SVG), headers: { "Content-Type": "image/png" } }, "502 not-an-image"],
    ["the JSON of an error", body(JSON_ERROR), "502 not-an-image"],
    ["nothing", body(new Uint8Array()), "502 empty"],
    ["nothing, in chunks", { ...body(new Uint8Array()), declaredLength: null }, "502 empty"],
    ["ten bytes of text", body(text("0123456789")), "502 not-an-image"],
    ["the first ten bytes of a JPEG", body(JPEG.slice(0, 10)), "502 too-small"],
    [
      "less than was declared",
      { ...body(JPEG.slice(0, 300)), declaredLength: JPEG.length, cut: true },
      "502 short-body",
    ],
    ["chunks that break off", { ...body(JPEG.slice(0, 300)), declaredLength: null, cut: true }, "502 short-body"],
    ["chunks that end too early", { ...body(JPEG.slice(0, 300)), declaredLength: null }, "502 short-body"],
    ["too much, as declared", { declaredLength: 2_000_000_000, stall: true }, "502 too-large"],
    ["too much, undeclared", { ...body(new Uint8Array(60_000)), times: 100, declaredLength: null }, "502 too-large"],
  ])("%s is refused, not stored, and over when it is over", async (_what, failure, expected) => {
    const id = await scripted(failure, {});

    const answer = await ask(path("small", id));

    expect(said(answer)).toBe(expected);
    expect(answer.headers.get("Cache-Control")).toBe("no-store");
    expect(await storedKeys(id)).toEqual([]);
    expect(await bytesOf(await ask(path("small", id)))).toEqual(JPEG);
  });

  it("shows its first bytes, as text that no browser takes for a page", async () => {
    const id = await scripted(body(HTML));

    const answer = await ask(path("full", id));

    expect(answer.headers.get("X-Content-Type-Options")).toBe("nosniff");
    expect(answer.headers.get("Content-Type")).toContain("application/json");
    expect(await answer.text()).toContain("with HTML: <!DOCTYPE html><html><title>Google Drive - Virus scan warning");
  });

  it("after a redirect is told with the address it came from, less its query", async () => {
    const from = await scripted({
      status: 302,
      headers: { Location: `${CROSS_GOOGLE}/d/${"x".repeat(12)}?key=hidden` },
    });
    await scriptedAt(CROSS_GOOGLE, "x".repeat(12), body(HTML));

    const message = await (await ask(path("full", from))).text();

    expect(message).toContain(`${CROSS_GOOGLE.replace("http://", "")}/d/${"x".repeat(12)}`);
    expect(message).not.toContain("hidden");
  });

  it("in chunks is fine when it is whole", async () => {
    const id = await scripted({ declaredLength: null });

    expect(await bytesOf(await ask(path("full", id)))).toEqual(JPEG);
  });
});

describe("a lockout", () => {
  it.each<[string, Scripted]>([
    ["a page for machines with 200", { ...body(LOCKOUT_PAGE), headers: { "Content-Type": "text/html" } }],
    ["a page for machines with 429", { ...body(LOCKOUT_PAGE), status: 429 }],
    ["a page for machines with 403", { ...body(LOCKOUT_PAGE), status: 403 }],
    ["a way to sign in", { status: 302, headers: { Location: "https://accounts.google.com/ServiceLogin?continue=x" } }],
    [
      "a way to the page for machines",
      { status: 302, headers: { Location: "https://www.google.com/sorry/index?q=1" } },
    ],
  ])("%s is told apart from the refusal of one file, in words that clients know", async (_what, failure) => {
    const id = await scripted(failure, {});

    const answer = await ask(path("full", id));

    expect(said(answer)).toBe("403 upstream-lockout");
    expect(await answer.text()).toContain("unusual traffic");
    expect(said(await ask(path("full", id)))).toBe("200 fine");
  });
});

describe("a redirect", () => {
  it("to an allowed origin is followed", async () => {
    const id = await scripted();
    const from = await scripted({ status: 302, headers: { Location: `${CROSS_GOOGLE}/d/${id}=moved` } });
    await scriptedAt(CROSS_GOOGLE, id, body(jpegNumber(7)));

    expect(await bytesOf(await ask(path("full", from)))).toEqual(jpegNumber(7));
    expect((await seen(id, CROSS_GOOGLE)).map((request) => request.path)).toEqual([`/d/${id}=moved`]);
  });

  it.each([
    "https://evil.example/d/x",
    "http://169.254.169.254/latest/meta-data",
    "http://lh4.googleusercontent.com/d/x",
    "https://lh4.googleusercontent.com.evil.example/d/x",
    "file:///etc/passwd",
    "data:image/png;base64,AAAA",
    "//evil.example/d/x",
    "http://",
    "",
  ])("to %s is refused", async (location) => {
    const id = await scripted({ status: 302, headers: { Location: location } });

    expect(said(await ask(path("small", id)))).toBe("502 redirect-refused");
    expect(await storedKeys(id)).toEqual([]);
  });

  it("to another port of the same machine is refused", async () => {
    const id = await scripted({ status: 307, headers: { Location: "http://127.0.0.1:9/d/x" } });

    expect(said(await ask(path("full", id)))).toBe("502 redirect-refused");
  });

  it("with a user in it is refused", async () => {
    const id = await scripted({ status: 307, headers: { Location: CROSS_GOOGLE.replace("//", "//me:secret@") } });

    const answer = await ask(path("full", id));
    expect(said(answer)).toBe("502 redirect-refused");
    expect(await answer.text()).not.toContain("secret");
  });

  it("after five others is refused, and each one took a permit", async () => {
    const id = await scripted({ status: 302, headers: { Location: "?again" } });
    let taken = 0;
    const counting: RateLimit = { limit: async () => ({ success: (taken += 1) > 0 }) };

    const answer = await ask(path("full", id), {}, { GOOGLE_DRIVE_RATE_LIMITER: counting });

    expect(said(answer)).toBe("502 too-many-redirects");
    expect(taken).toBe(6);
  });
});

describe("an image host that does not answer", () => {
  it.each<[string, Scripted]>([
    ["says nothing", { delayMs: 5_000 }],
    ["stalls in the body", { declaredLength: 5_000, stall: true }],
  ])("but %s is left after the deadline", async (_what, failure) => {
    const id = await scripted(failure);

    expect(said(await ask(path("full", id), {}, { UPSTREAM_DEADLINE_MS: "300" }))).toBe("504 upstream-timeout");
  });

  it("cannot be reached", async () => {
    const nowhere = "http://127.0.0.1:1";
    const changed = { UPSTREAM_ORIGIN: nowhere, ALLOWED_UPSTREAM_ORIGINS: nowhere };

    expect(said(await ask(path("full", await scripted()), {}, changed))).toBe("502 upstream-unreachable");
  });
});
