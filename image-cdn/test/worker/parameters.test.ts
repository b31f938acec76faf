/** Strict parameters: what is not exactly right is 400 with a reason, and reaches nobody. */

import { describe, expect, it } from "vitest";

import { ask, path, said, scripted, seen, storedKeys } from "./rig";

describe("a bad parameter", () => {
  it.each([
    ["?dpi=abc", "bad-dpi"],
    ["?dpi=", "bad-dpi"],
    ["?dpi", "bad-dpi"],
    ["?dpi=-1", "bad-dpi"],
    ["?dpi=0", "bad-dpi"],
    ["?dpi=49", "bad-dpi"],
    ["?dpi=1501", "bad-dpi"],
    ["?dpi=1e9", "bad-dpi"],
    ["?dpi=1000000000", "bad-dpi"],
    ["?dpi=250.5", "bad-dpi"],
    ["?dpi=+250", "bad-dpi"],
    ["?dpi=0x100", "bad-dpi"],
    ["?dpi=NaN", "bad-dpi"],
    ["?dpi=٢٥٠", "bad-dpi"],
    ["?dpi=250&dpi=300", "bad-dpi"],
    ["?jpgQuality=0", "bad-quality"],
    ["?jpgQuality=101", "bad-quality"],
    ["?jpgQuality=", "bad-quality"],
    ["?jpgQuality=high", "bad-quality"],
    ["?v=", "bad-version"],
    ["?v=../x", "bad-version"],
    ["?v=a/b", "bad-version"],
    [`?v=${"a".repeat(101)}`, "bad-version"],
    ["?resourceKey=", "bad-resource-key"],
    ["?resourceKey=0-a%2Fb", "bad-resource-key"],
    ["?resourceKey=0-a%26x=1", "bad-resource-key"],
    ["?resourceKey=0-a.b", "bad-resource-key"],
    ["?resourceKey=0-a%0d%0aX:1", "bad-resource-key"],
    ["?resourceKey=0-a&resourceKey=0-b", "bad-resource-key"],
    [`?resourceKey=${"a".repeat(101)}`, "bad-resource-key"],
  ])("%s is refused as %s", async (query, code) => {
    const id = await scripted();

    for (const tier of ["small", "large", "full"]) {
      for (const method of ["GET", "HEAD"]) {
        const answer = await ask(path(tier, id, query), { method });
        expect(said(answer)).toBe(`400 ${code}`);
        expect(answer.headers.get("Cache-Control")).toBe("no-store");
        if (method === "GET") {
          expect(await answer.json()).toMatchObject({
            error: { code, message: expect.stringContaining("must be given once") },
          });
        }
      }
    }
    expect(await seen(id)).toEqual([]);
    expect(await storedKeys(id)).toEqual([]);
  });

  it.each([
    "short",
    "a".repeat(129),
    "card%2F0123456789",
    "card-0123456789%00",
    "card.0123456789",
    "card 0123456789",
    "card-0123456789=s0",
    "kaart-0123456789é",
    "%2e%2e%2fd%2fother",
    "@169.254.169.254",
    "",
  ])("the identifier %j is refused", async (identifier) => {
    expect(said(await ask(path("full", identifier)))).toBe("400 bad-identifier");
  });

  it("is no identifier of 128 characters, which is the longest that a listing accepts", async () => {
    const made = await scripted();
    const id = made.padEnd(128, "x");

    expect(said(await ask(path("full", id)))).toBe("200 fine");
    expect(await seen(id)).toHaveLength(1);
  });

  it("is no parameter that is not ours", async () => {
    const id = await scripted();

    expect(said(await ask(path("full", id, "?utm_source=x&width=9")))).toBe("200 fine");
    expect((await seen(id)).map((request) => request.path)).toEqual([`/d/${id}=h1110`]);
  });
});

describe("the configuration", () => {
  it.each([
    [{ UPSTREAM_ORIGIN: "https://evil.example" }, "UPSTREAM_ORIGIN"],
    [
      { UPSTREAM_ORIGIN: "http://lh4.example", ALLOWED_UPSTREAM_ORIGINS: "http://lh4.example" },
      "ALLOWED_UPSTREAM_ORIGINS",
    ],
    [
      { UPSTREAM_ORIGIN: "https://a.example/x", ALLOWED_UPSTREAM_ORIGINS: "https://a.example/x" },
      "ALLOWED_UPSTREAM_ORIGINS",
    ],
    [{ ALLOWED_UPSTREAM_ORIGINS: "" }, "UPSTREAM_ORIGIN"],
    [{ UPSTREAM_PATH: "" }, "UPSTREAM_PATH"],
    [{ UPSTREAM_PATH: "/d/{id}" }, "UPSTREAM_PATH"],
    [{ UPSTREAM_PATH: "/d/=h{height}" }, "UPSTREAM_PATH"],
    [{ UPSTREAM_PATH: "//evil.example/{id}/{height}" }, "UPSTREAM_PATH"],
    [{ UPSTREAM_PATH: "https://evil.example/{id}/{height}" }, "UPSTREAM_PATH"],
    [{ UPSTREAM_PATH: "/\\evil.example/{id}/{height}" }, "UPSTREAM_PATH"],
    [{ UPSTREAM_PATH: "/d/{id}=h{height}#{options}" }, "UPSTREAM_PATH"],
    [{ UPSTREAM_DEADLINE_MS: "soon" }, "UPSTREAM_DEADLINE_MS"],
    [{ STALE_AFTER_DAYS: "-1" }, "STALE_AFTER_DAYS"],
  ])("%o stops everything and is named", async (changed, name) => {
    const id = await scripted();

    const answer = await ask(path("full", id), {}, changed);

    expect(said(answer)).toBe("500 misconfigured");
    expect(await answer.text()).toContain(name);
    expect(await seen(id)).toEqual([]);
  });
});
