/** The nightly purge under pressure: patient, alone, and no loser of a quarter of its list. */

import { describe, expect, it } from "vitest";

import { RefusedError, purgeAll } from "../../scripts/purge.mjs";

const MINUTE_MS = 60_000;

interface Answer {
  status: number;
  headers?: Record<string, string>;
}

/** A CDN on a clock of its own: `pressure` says what it answers at a moment, in milliseconds; nothing means that it purges. */
function fakeCdn(pressure: (atMs: number, request: number) => Answer | undefined, unlucky = new Set<string>()) {
  const asked: number[] = [];
  let clock = 0;
  return {
    asked,
    post: async (batch: string[]) => {
      asked.push(clock);
      const answer = pressure(clock, asked.length);
      if (answer !== undefined) {
        return new Response("{}", answer);
      }
      const failed = batch.filter((identifier) => unlucky.delete(identifier));
      const purged = batch.filter((identifier) => !failed.includes(identifier)).map((identifier) => [identifier, 1]);
      return Response.json({ purged: Object.fromEntries(purged), failed });
    },
    sleep: async (ms: number) => void (clock += ms),
    now: () => clock,
    random: () => 0.5,
  };
}

const THOUSAND = Array.from({ length: 1000 }, (_, index) => `card-${String(index).padStart(6, "0")}`);

describe("the purge of a thousand images", () => {
  it("takes ten requests when all is well", async () => {
    const cdn = fakeCdn(() => undefined);

    expect(await purgeAll(THOUSAND, cdn)).toEqual({ purged: THOUSAND, left: [] });
    expect(cdn.asked).toHaveLength(10);
  });

  it.each([1, 5, 10])("outlasts a window of %i minutes in few requests", async (minutes) => {
    const cdn = fakeCdn((at) => (at < minutes * MINUTE_MS ? { status: 429 } : undefined));

    const { purged, left } = await purgeAll(THOUSAND, cdn);

    expect([purged.length, left.length]).toEqual([1000, 0]);
    expect(cdn.asked.length).toBeLessThan(10 + 15);
  });

  it("outlasts a CDN that takes one request a minute", async () => {
    let free = 0;
    const cdn = fakeCdn((at) =>
      at < free ? { status: 429, headers: { "Retry-After": "60" } } : void (free = at + MINUTE_MS),
    );

    expect((await purgeAll(THOUSAND, cdn)).left).toEqual([]);
    expect(cdn.asked.length).toBeLessThanOrEqual(20);
  });

  it("waits as long as it was asked to, and a little longer", async () => {
    const cdn = fakeCdn((_at, request) =>
      request === 1 ? { status: 429, headers: { "Retry-After": "77" } } : undefined,
    );

    await purgeAll(["card-0123456789"], cdn);

    expect(cdn.asked[1]).toBeGreaterThan(77_000);
    expect(cdn.asked[1]).toBeLessThan(90_000);
  });

  it("tries those again that failed alone, and no other", async () => {
    const cdn = fakeCdn(() => undefined, new Set(["card-000007", "card-000500"]));

    const { purged, left } = await purgeAll(THOUSAND, cdn);

    expect([new Set(purged).size, purged.length, left.length]).toEqual([1000, 1000, 0]);
  });

  it("gives up after a quarter of an hour without any success, and names what is left", async () => {
    const cdn = fakeCdn((_at, request) => (request > 3 ? { status: 503 } : undefined));

    const { purged, left } = await purgeAll(THOUSAND, cdn);

    expect([purged.length, left.length]).toEqual([300, 700]);
    expect(cdn.now()).toBeLessThan(15 * MINUTE_MS);
  });

  it.each<Answer>([
    { status: 401 },
    { status: 404 },
    { status: 503, headers: { "X-Image-Cdn-Error": "purge-disabled" } },
  ])("stops at once at %o", async (answer) => {
    const cdn = fakeCdn(() => answer);

    await expect(purgeAll(THOUSAND, cdn)).rejects.toThrow(RefusedError);
    expect(cdn.asked).toHaveLength(1);
  });
});
