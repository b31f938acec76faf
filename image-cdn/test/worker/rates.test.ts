/** Limits: ours and the image host's, told apart; single flight; leaving alone an image host that says no. */

import { exports } from "cloudflare:workers";
import { describe, expect, it } from "vitest";

import { Breaker } from "../../src/breaker";
import { Flights } from "../../src/flights";
import { refusal, type Picture } from "../../src/outcomes";
import { JPEG } from "../pictures";
import { CROSS_GOOGLE, SITE, SPENT, ask, bytesOf, path, said, scripted, scriptedAt, seen, storedKeys } from "./rig";

const AT_CROSS = { UPSTREAM_ORIGIN: CROSS_GOOGLE };

describe("a limit of ours", () => {
  it.each([
    ["full", { IMAGE_FULL_TIER_RATE_LIMITER: SPENT }, "429 rate-limited"],
    ["full", { GOOGLE_DRIVE_RATE_LIMITER: SPENT }, "429 rate-limited"],
    ["small", { GOOGLE_DRIVE_RATE_LIMITER: SPENT }, "429 rate-limited"],
    ["small", { IMAGE_FULL_TIER_RATE_LIMITER: SPENT }, "200 fine"],
  ])("for %s with %o is %s", async (tier, changed, expected) => {
    const id = await scripted();

    const answer = await ask(path(tier, id), {}, changed);

    expect(said(answer)).toBe(expected);
    expect(answer.headers.get("Retry-After")).toBe(expected === "200 fine" ? null : "10");
    expect(await seen(id)).toHaveLength(expected === "200 fine" ? 1 : 0);
  });

  it("does not stand between a caller and what is stored", async () => {
    const id = await scripted();
    await ask(path("small", id));

    expect(said(await ask(path("small", id), {}, { GOOGLE_DRIVE_RATE_LIMITER: SPENT }))).toBe("200 fine");
  });

  it("that cannot be asked gives no permit", async () => {
    const broken: RateLimit = { limit: async () => Promise.reject(new Error("no limiter")) };
    const id = await scripted();

    expect(said(await ask(path("full", id), {}, { IMAGE_FULL_TIER_RATE_LIMITER: broken }))).toBe("429 rate-limited");
    expect(await seen(id)).toEqual([]);
  });

  it("of the real bindings lets 60 of a burst through in each ten seconds", async () => {
    const id = await scripted();
    const begin = Date.now();

    const answers = await Promise.all(
      Array.from({ length: 150 }, () => exports.default.fetch(SITE + path("full", id))),
    );

    const windows = Math.floor((Date.now() - begin) / 10_000) + 2;
    const fine = answers.filter((answer) => answer.status === 200).length;
    expect(fine).toBeGreaterThanOrEqual(60);
    expect(fine).toBeLessThanOrEqual(windows * 60);
    expect(await seen(id)).toHaveLength(fine);
    expect(answers.filter((answer) => said(answer) === "429 rate-limited")).toHaveLength(150 - fine);
  });
});

describe("single flight", () => {
  it("fetches a missing thumbnail once for all who ask at the same time", async () => {
    const id = await scripted({ delayMs: 300 });
    const burst = () => Array.from({ length: 20 }, () => ask(path("small", id)));

    const answers = await Promise.all(burst());

    expect(await Promise.all(answers.map(bytesOf))).toEqual(answers.map(() => JPEG));
    expect(await seen(id)).toHaveLength(1);
    expect(await storedKeys(id)).toHaveLength(1);
  });

  it("shares a failure with those who waited, and with nobody after them", async () => {
    const id = await scripted({ status: 500, delayMs: 1_000 }, {});

    const answers = await Promise.all([1, 2, 3].map(() => ask(path("small", id))));

    expect(answers.map(said)).toEqual(answers.map(() => "502 upstream-500"));
    expect(said(await ask(path("small", id)))).toBe("200 fine");
    expect(await seen(id)).toHaveLength(2);
  });
});

describe("a flight", () => {
  it("answers before it is stored, takes in whoever comes until then, and keeps its request alive for it", async () => {
    const picture: Picture = { kind: "picture", bytes: JPEG, contentType: "image/jpeg", sha256: "0" };
    const flights = new Flights();
    const background: Promise<unknown>[] = [];
    const ctx = { waitUntil: (promise: Promise<unknown>) => void background.push(promise) };
    const { promise: bucketIsFree, resolve: freeBucket } = Promise.withResolvers<void>();
    let loads = 0;
    let stores = 0;
    const join = () =>
      flights.join(
        "key",
        ctx,
        60_000,
        async () => ((loads += 1), picture),
        async () => {
          await bucketIsFree;
          stores += 1;
        },
      );

    expect([await join(), await join()]).toEqual([picture, picture]);
    expect([loads, stores, background.length]).toEqual([1, 0, 1]);

    freeBucket();
    await Promise.all(background);
    expect(stores).toBe(1);
    await join();
    expect(loads).toBe(2);
  });
});

describe("an image host that keeps saying no", () => {
  it("is left alone after the third time, for everybody", async () => {
    const id = await scripted();
    await scriptedAt(CROSS_GOOGLE, id, { status: 429, headers: { "Retry-After": "40" } });

    const answers = [];
    for (let request = 0; request < 5; request += 1) {
      answers.push(await ask(path("full", id), {}, AT_CROSS));
    }
    const other = await ask(path("small", await scripted()), {}, AT_CROSS);

    expect([...answers, other].map(said)).toEqual(Array.from({ length: 6 }, () => "429 upstream-429"));
    expect(Number(other.headers.get("Retry-After"))).toBeGreaterThan(30);
    expect(await seen(id, CROSS_GOOGLE)).toHaveLength(3);
    expect(said(await ask(path("full", await scripted())))).toBe("200 fine");
  });

  it("is asked again after what it asked for, at most a minute, and forgiven after an answer", () => {
    let now = 1_000_000;
    const breaker = new Breaker(() => now);
    const no = refusal(429, "upstream-429", "no", { retryAfterS: 600 });

    breaker.strike("a", no);
    breaker.strike("a", no);
    expect(breaker.held("a")).toBeUndefined();
    breaker.strike("a", no);
    expect(breaker.held("a")).toMatchObject({ status: 429, code: "upstream-429", retryAfterS: 60 });
    expect(breaker.held("b")).toBeUndefined();

    now += 60_000;
    expect(breaker.held("a")).toBeUndefined();
    breaker.strike("a", no);
    expect(breaker.held("a")).toBeDefined();
    breaker.clear("a");
    expect(breaker.held("a")).toBeUndefined();
  });
});
