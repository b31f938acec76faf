/** Over real HTTP: what a location lets through to Google, and that a thumbnail is fetched once whatever its callers do. */

import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { JPEG } from "../pictures";
import type { Scripted, Seen } from "../script";
import { startFakeGoogle, type FakeGoogle } from "./fake_google";
import { startLocalWorker, type LocalWorker } from "./local_worker";

let google: FakeGoogle;
let here: LocalWorker;
let there: LocalWorker;

beforeAll(async () => {
  google = await startFakeGoogle();
  here = await startLocalWorker(google.origin);
  there = await startLocalWorker(google.origin);
});

afterAll(async () => {
  await Promise.all([here?.stop(), there?.stop()]);
  await google?.close();
});

async function scripted(...answers: Scripted[]): Promise<string> {
  const identifier = `card-${randomUUID()}`;
  await fetch(`${google.origin}/script/${identifier}`, { method: "POST", body: JSON.stringify(answers) });
  return identifier;
}

async function seen(identifier: string): Promise<Seen[]> {
  return (await (await fetch(`${google.origin}/seen/${identifier}`)).json()) as Seen[];
}

function address(worker: LocalWorker, tier: string, identifier: string): string {
  return `${worker.url}/images/google_drive/${tier}/${identifier}.jpg`;
}

async function eventually(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) {
    await sleep(20);
  }
}

describe("a thumbnail", () => {
  it("is fetched once for all requests that ask at the same time", async () => {
    const id = await scripted({ delayMs: 500 });

    const answers = await Promise.all(Array.from({ length: 25 }, () => fetch(address(here, "small", id))));

    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
    for (const answer of answers) {
      expect(new Uint8Array(await answer.arrayBuffer())).toEqual(JPEG);
    }
    expect(await seen(id)).toHaveLength(1);
  });

  it("is fetched once although the one who asked first has left, and whoever joined gets it", async () => {
    const id = await scripted({ delayMs: 700 });
    const leaving = request(address(here, "small", id)).on("error", () => undefined);
    leaving.end();
    await eventually(async () => (await seen(id)).length === 1);
    const joined = fetch(address(here, "small", id));
    leaving.destroy();

    expect((await joined).status).toBe(200);
    expect((await fetch(address(here, "small", id))).status).toBe(200);
    expect(await seen(id)).toHaveLength(1);
  });

  it("says its length to HEAD", async () => {
    const id = await scripted({});

    for (const tier of ["small", "small", "full"]) {
      const head = await fetch(address(here, tier, id), { method: "HEAD" });
      expect([head.status, head.headers.get("Content-Length")]).toEqual([200, String(JPEG.length)]);
    }
  });
});

describe("two locations", () => {
  it("each let their own limit through: the binding protects, and is no global budget", async () => {
    const id = await scripted({});
    const burst = (worker: LocalWorker) => Array.from({ length: 130 }, () => fetch(address(worker, "full", id)));
    const begin = Date.now();

    const answers = await Promise.all([...burst(here), ...burst(there)]);

    const windows = Math.floor((Date.now() - begin) / 10_000) + 2;
    const refused = answers.filter((answer) => answer.status === 429);
    const reached = (await seen(id)).length;
    expect(reached).toBe(answers.length - refused.length);
    // More than one location's share; what else this file asked for counts as well.
    expect(reached).toBeGreaterThan(60);
    expect(reached).toBeLessThanOrEqual(2 * windows * 60);
    const refusals = refused.map(({ headers }) => [headers.get("X-Image-Cdn-Error"), headers.get("Retry-After")]);
    expect(refusals).toEqual(refused.map(() => ["rate-limited", "10"]));
  });
});
