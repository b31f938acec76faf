/** Starts the fake image hosts before the tests: one that may be made to say no again and again, one that others share. */

import type { TestProject } from "vitest/node";

import { startFakeGoogle } from "./fake_google";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const [google, crossGoogle] = await Promise.all([startFakeGoogle(), startFakeGoogle()]);
  project.provide("google", google.origin);
  project.provide("crossGoogle", crossGoogle.origin);
  return async () => {
    await Promise.all([google.close(), crossGoogle.close()]);
  };
}
