/** What callers get when all is well: tiers, headers, storing, HEAD, conditional requests, CORS. */

import { describe, expect, it } from "vitest";

import { JPEG, PNG, jpegNumber } from "../pictures";
import { ask, body, bytesOf, path, said, scripted, seen, storedKeys } from "./rig";

describe("a thumbnail", () => {
  it.each([
    ["small", "h400"],
    ["large", "h800"],
  ])("%s is fetched once, stored, and served from the store", async (tier, height) => {
    const id = await scripted();

    const first = await ask(path(tier, id));
    const second = await ask(path(tier, id));

    expect(await bytesOf(first)).toEqual(JPEG);
    expect(await bytesOf(second)).toEqual(JPEG);
    expect(first.headers.get("ETag")).toBe(second.headers.get("ETag"));
    expect((await seen(id)).map((request) => request.path)).toEqual([`/d/${id}=${height}`]);
  });

  it("has an object of its own for each quality and version", async () => {
    const id = await scripted(body(jpegNumber(1)), body(jpegNumber(2)), body(jpegNumber(3)));

    const plain = await ask(path("small", id));
    const coarse = await ask(path("small", id, "?jpgQuality=40"));
    const renewed = await ask(path("small", id, "?v=2f1c"));

    expect([await bytesOf(plain), await bytesOf(coarse), await bytesOf(renewed)]).toEqual([1, 2, 3].map(jpegNumber));
    expect((await seen(id)).map((request) => request.path)).toEqual([
      `/d/${id}=h400`,
      `/d/${id}=h400-rj-l40`,
      `/d/${id}=h400`,
    ]);
    expect(await storedKeys(id)).toHaveLength(3);
  });

  it("may be kept for ever only when its address has a version", async () => {
    const id = await scripted();

    expect((await ask(path("small", id))).headers.get("Cache-Control")).toBe("public, max-age=3600");
    expect((await ask(path("small", id, "?v=1"))).headers.get("Cache-Control")).toBe(
      "public, max-age=31536000, immutable",
    );
  });

  it("without a version is fetched anew in the background when it is old, and one with a version is not", async () => {
    const id = await scripted(body(jpegNumber(1)), body(jpegNumber(2)), body(jpegNumber(3)));
    await ask(path("small", id));
    await ask(path("small", id, "?v=a"));
    const aged = { STALE_AFTER_DAYS: "0" };

    expect(await bytesOf(await ask(path("small", id, "?v=a"), {}, aged))).toEqual(jpegNumber(2));
    expect(await seen(id)).toHaveLength(2);
    expect(await bytesOf(await ask(path("small", id), {}, aged))).toEqual(jpegNumber(1));
    expect(await bytesOf(await ask(path("small", id)))).toEqual(jpegNumber(3));
  });

  it("is kept in at most sixteen versions, the newest", async () => {
    const id = await scripted();
    for (let version = 10; version < 30; version += 1) {
      await ask(path("small", id, `?v=${version}`));
    }

    expect((await storedKeys(id)).length).toBeLessThanOrEqual(16);
    await ask(path("small", id, "?v=29"));
    expect(await seen(id)).toHaveLength(20);
  });
});

describe("a full image", () => {
  it.each([
    ["?dpi=250", "h925", "250", null],
    ["?dpi=254&jpgQuality=95", "h925-rj-l95", "250", "dpi 254 was rounded to 250"],
    ["?dpi=255", "h962", "260", "dpi 255 was rounded to 260"],
    ["", "h1110", "300", null],
  ])("with %s has the height of its dpi", async (query, option, dpi, notice) => {
    const id = await scripted();

    const answer = await ask(path("full", id, query));

    expect(said(answer)).toBe("200 fine");
    expect(answer.headers.get("X-Image-Cdn-Dpi")).toBe(dpi);
    expect(answer.headers.get("X-Image-Cdn-Notice")).toBe(notice);
    expect((await seen(id)).map((request) => request.path)).toEqual([`/d/${id}=${option}`]);
  });

  it("is stored by nobody, and shows a replaced file at once", async () => {
    const id = await scripted(body(jpegNumber(1)), body(jpegNumber(2)));

    const first = await ask(path("full", id));
    const second = await ask(path("full", id));

    expect(first.headers.get("Cache-Control")).toBe("no-store");
    expect([await bytesOf(first), await bytesOf(second)]).toEqual([jpegNumber(1), jpegNumber(2)]);
    expect(first.headers.get("ETag")).not.toBe(second.headers.get("ETag"));
    expect(await storedKeys(id)).toEqual([]);
  });
});

describe("every answer", () => {
  it("has the type of its bytes, whatever the image host says, and is sniffed by nobody", async () => {
    const id = await scripted({ headers: { "Content-Type": "text/html" }, ...body(PNG) });

    const answers = [await ask(path("small", id)), await ask(path("small", id)), await ask(path("full", id))];

    for (const answer of answers) {
      expect(answer.headers.get("Content-Type")).toBe("image/png");
      expect(answer.headers.get("X-Content-Type-Options")).toBe("nosniff");
      expect(answer.headers.get("Content-Security-Policy")).toContain("default-src 'none'");
    }
  });

  it("hands on no header of the image host", async () => {
    const id = await scripted({ headers: { "Set-Cookie": "who=you", "X-Powered-By": "elves" } });

    const answer = await ask(path("full", id));

    expect(answer.headers.get("Set-Cookie")).toBeNull();
    expect(answer.headers.get("X-Powered-By")).toBeNull();
  });

  it("tells the image host nothing of the caller", async () => {
    const id = await scripted();

    await ask(path("full", id), {
      headers: { Cookie: "session=1", Authorization: "Bearer x", Referer: "https://a.example" },
    });

    const headers = (await seen(id))[0]?.headers ?? {};
    expect(Object.keys(headers)).not.toEqual(expect.arrayContaining(["cookie"]));
    expect(headers["authorization"]).toBeUndefined();
    expect(headers["referer"]).toBeUndefined();
  });
});

describe("requests other than a plain GET", () => {
  it.each(["small", "full"])("HEAD of %s has the headers of GET and no body", async (tier) => {
    const id = await scripted();
    const head = await ask(path(tier, id), { method: "HEAD" });
    const stored = await ask(path(tier, id), { method: "HEAD" });
    const get = await ask(path(tier, id));

    for (const answer of [head, stored]) {
      expect(answer.status).toBe(200);
      expect((await bytesOf(answer)).length).toBe(0);
      expect(answer.headers.get("Content-Length")).toBe(String(JPEG.length));
      expect(answer.headers.get("ETag")).toBe(get.headers.get("ETag"));
    }
  });

  it.each(["small", "full"])("%s answers 304 to whoever has it", async (tier) => {
    const id = await scripted();
    const etag = (await ask(path(tier, id))).headers.get("ETag") ?? "";

    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const answer = await ask(path(tier, id), { headers: { "If-None-Match": known } });
      expect(answer.status).toBe(304);
      expect(answer.headers.get("ETag")).toBe(etag);
    }
    expect((await ask(path(tier, id), { headers: { "If-None-Match": '"other"' } })).status).toBe(200);
  });

  it.each(["bytes=0-9", "bytes=5-", "bytes=-5", "bytes=9999999-", "bytes=a-b"])(
    "Range %s gets the whole image",
    async (range) => {
      const id = await scripted();

      for (const tier of ["small", "small", "full"]) {
        const answer = await ask(path(tier, id), { headers: { Range: range } });
        expect(answer.status).toBe(200);
        expect(answer.headers.get("Accept-Ranges")).toBe("none");
        expect(await bytesOf(answer)).toEqual(JPEG);
      }
      expect((await seen(id)).every((request) => request.headers["range"] === undefined)).toBe(true);
    },
  );

  it.each([
    ["POST", path("small", "card-0123456789"), 405, "GET, HEAD"],
    ["PUT", path("full", "card-0123456789"), 405, "GET, HEAD"],
    ["DELETE", path("full", "card-0123456789"), 405, "GET, HEAD"],
    ["OPTIONS", path("full", "card-0123456789"), 405, "GET, HEAD"],
    ["POST", "/healthz", 405, "GET, HEAD"],
    ["GET", "/purge", 405, "POST"],
    ["GET", "/", 404, null],
    ["GET", "/images", 404, null],
    ["GET", path("medium", "card-0123456789"), 404, null],
    ["GET", "/images/dropbox/small/card-0123456789.jpg", 404, null],
    ["GET", "/images/google_drive/small/card-0123456789.png", 404, null],
    ["GET", "/images/google_drive/small/a/b/card-0123456789.jpg", 404, null],
  ])("%s %s is %i", async (method, address, status, allow) => {
    const answer = await ask(address, { method });

    expect(answer.status).toBe(status);
    expect(answer.headers.get("Allow")).toBe(allow);
    expect(answer.headers.get("Cache-Control")).toBe("no-store");
  });

  it("healthz is fine, and says what is misconfigured", async () => {
    expect((await ask("/healthz")).status).toBe(200);
    expect((await ask("/healthz", { method: "HEAD" })).status).toBe(200);

    const answer = await ask("/healthz", {}, { UPSTREAM_ORIGIN: "https://elsewhere.example" });
    expect(said(answer)).toBe("500 misconfigured");
    expect(await answer.text()).toContain("UPSTREAM_ORIGIN must be one of ALLOWED_UPSTREAM_ORIGINS");
  });
});

describe("CORS", () => {
  const CONFIGURED = { CORS_ORIGINS: "https://cards.example https://other.example" };

  it.each([
    ["https://cards.example", CONFIGURED, "https://cards.example"],
    ["https://evil.example", CONFIGURED, null],
    ["https://cards.example.evil.example", CONFIGURED, null],
    ["null", CONFIGURED, null],
    ["https://cards.example", { CORS_ORIGINS: "" }, null],
    ["https://any.example", { CORS_ORIGINS: "*" }, "*"],
  ])("%s with %o is allowed as %s", async (origin, changed, allowed) => {
    const id = await scripted();
    for (const address of [path("small", id), path("small", "too-short")]) {
      const answer = await ask(address, { headers: { Origin: origin } }, changed);
      expect(answer.headers.get("Access-Control-Allow-Origin")).toBe(allowed);
      expect(answer.headers.get("Vary")).toBe(changed === CONFIGURED ? "Origin" : null);
    }
  });

  it("a preflight is answered without asking the image host", async () => {
    const id = await scripted();
    const headers = { Origin: "https://cards.example", "Access-Control-Request-Method": "GET" };

    const answer = await ask(path("full", id), { method: "OPTIONS", headers }, CONFIGURED);

    expect(answer.status).toBe(204);
    expect(answer.headers.get("Access-Control-Allow-Methods")).toBe("GET, HEAD");
    expect(await seen(id)).toEqual([]);
  });
});
