/** Purging: a bad or replaced image leaves the store, by whoever holds the token. What is logged holds no secret. */

import { afterEach, describe, expect, it, vi } from "vitest";

import { HTML, jpegNumber } from "../pictures";
import { ask, bindings, body, bytesOf, path, said, scripted, storedKeys } from "./rig";

const TOKEN = bindings.PURGE_TOKEN ?? "";

async function purge(identifiers: unknown, authorization: string | null = `Bearer ${TOKEN}`): Promise<Response> {
  const content = JSON.stringify({ identifiers });
  const headers: Record<string, string> = { "Content-Length": String(content.length) };
  if (authorization !== null) {
    headers["Authorization"] = authorization;
  }
  return await ask("/purge", { method: "POST", body: content, headers });
}

afterEach(() => vi.restoreAllMocks());

describe("purge", () => {
  it("forgets every thumbnail of an image and of no other", async () => {
    const id = await scripted(body(jpegNumber(1)));
    const longer = `${id}-and-more`;
    for (const query of ["", "?v=2", "?jpgQuality=50"]) {
      await ask(path("small", id, query));
      await ask(path("large", id, query));
    }
    await ask(path("small", longer));

    const answer = await purge([id, id, "card-without-any-thumbnail"]);

    expect(await answer.json()).toEqual({ purged: { [id]: 6, "card-without-any-thumbnail": 0 }, failed: [] });
    expect(await storedKeys(id)).toEqual([]);
    expect(await storedKeys(longer)).toHaveLength(1);
  });

  it("lets a replaced image be seen", async () => {
    const id = await scripted(body(jpegNumber(1)), body(jpegNumber(2)));
    await ask(path("small", id));
    expect(await bytesOf(await ask(path("small", id)))).toEqual(jpegNumber(1));

    await purge([id]);

    expect(await bytesOf(await ask(path("small", id)))).toEqual(jpegNumber(2));
  });

  it.each([
    null,
    "",
    "Bearer",
    "Bearer wrong",
    `Bearer ${TOKEN}x`,
    `Bearer ${TOKEN.slice(1)}`,
    `Basic ${TOKEN}`,
    TOKEN,
  ])("with the authorization %j is refused", async (authorization) => {
    const id = await scripted();
    await ask(path("small", id));

    expect(said(await purge([id], authorization))).toBe("401 unauthorized");
    expect(await storedKeys(id)).toHaveLength(1);
  });

  it.each([undefined, "", "short"])("with the secret %j is off", async (token) => {
    const headers = { Authorization: `Bearer ${token ?? ""}` };
    const answer = await ask("/purge", { method: "POST", headers, body: "{}" }, { PURGE_TOKEN: token as string });

    expect(said(answer)).toBe("503 purge-disabled");
  });

  it.each([
    [undefined],
    [[]],
    ["card-0123456789"],
    [["short"]],
    [["card-0123456789", 7]],
    [["../../../../etc"]],
    [new Array(101).fill("card-0123456789")],
  ])("of %j is refused", async (identifiers) => {
    expect(said(await purge(identifiers))).toBe("400 bad-purge");
  });

  it("names an image that failed, and purges the others", async () => {
    const id = await scripted();
    await ask(path("small", id));
    const list = bindings.THUMBNAILS.list.bind(bindings.THUMBNAILS);
    const bucket = {
      delete: bindings.THUMBNAILS.delete.bind(bindings.THUMBNAILS),
      list: async (options: R2ListOptions) => {
        if (options.prefix?.includes("unlucky")) {
          throw new Error("list: too many requests (10058)");
        }
        return await list(options);
      },
    } as unknown as R2Bucket;
    const content = JSON.stringify({ identifiers: ["card-unlucky-1", id] });
    const headers = { Authorization: `Bearer ${TOKEN}`, "Content-Length": String(content.length) };

    const answer = await ask("/purge", { method: "POST", body: content, headers }, { THUMBNAILS: bucket });

    expect(await answer.json()).toEqual({ purged: { [id]: 1 }, failed: ["card-unlucky-1"] });
  });
});

describe("the store", () => {
  const broken = {
    get: async () => Promise.reject(new Error("get: too many requests (10058)")),
    head: async () => Promise.reject(new Error("head: too many requests (10058)")),
    put: async () => Promise.reject(new Error("put: too many requests (10058)")),
  } as unknown as R2Bucket;

  it("that fails costs a fetch, not the image", async () => {
    const id = await scripted();

    expect(said(await ask(path("small", id), {}, { THUMBNAILS: broken }))).toBe("200 fine");
    expect(said(await ask(path("small", id), { method: "HEAD" }, { THUMBNAILS: broken }))).toBe("200 fine");
  });

  it.each<[string, R2PutOptions]>([
    ["no type", {}],
    ["the type of a page", { httpMetadata: { contentType: "text/html" }, customMetadata: { sha256: "0" } }],
  ])("with an object of %s that we did not write serves the image instead", async (_what, options) => {
    const id = await scripted(body(jpegNumber(5)));
    await bindings.THUMBNAILS.put(`v1/google_drive/${id}/small/q/`, HTML, options);

    const answer = await ask(path("small", id));

    expect(await bytesOf(answer)).toEqual(jpegNumber(5));
    expect(await bytesOf(await ask(path("small", id)))).toEqual(jpegNumber(5));
  });
});

describe("the log", () => {
  it("names the image and the reason, and neither token nor query", async () => {
    const lines: string[] = [];
    for (const method of ["log", "info", "warn", "error", "debug"] as const) {
      vi.spyOn(console, method).mockImplementation((...parts) => void lines.push(parts.join(" ")));
    }
    const id = await scripted(
      { status: 302, headers: { Location: "https://evil.example/?key=secret-in-a-query" } },
      { status: 403, headers: { "Set-Cookie": "secret-cookie" } },
    );

    await ask(path("full", id, "?v=secret-in-ours"), { headers: { Authorization: "Bearer secret-of-a-caller" } });
    await ask(path("full", id));
    await purge([id], "Bearer secret-guess");
    await purge([id]);

    expect(lines.map((line) => (JSON.parse(line) as { code: string }).code)).toEqual([
      "redirect-refused",
      "upstream-403",
    ]);
    expect(lines.every((line) => line.includes(id))).toBe(true);
    expect(lines.join()).not.toContain("secret");
    expect(lines.join()).not.toContain(TOKEN);
  });
});
