/** The Worker's variables, checked: a bad one stops everything with a line that names it. */

import type { Env } from "./env";

export interface Config {
  readonly upstreamOrigin: string;
  readonly allowedOrigins: ReadonlySet<string>;
  readonly upstreamPath: string;
  readonly deadlineMs: number;
  readonly corsOrigins: ReadonlySet<string>;
  readonly staleAfterMs: number;
}

export class ConfigError extends Error {}

const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);
const DAY_MS = 86_400_000;

/** Return the configuration; throws ConfigError. */
export function readConfig(env: Env): Config {
  const allowedOrigins = new Set(words(env.ALLOWED_UPSTREAM_ORIGINS));
  for (const origin of allowedOrigins) {
    if (!isUsableOrigin(origin)) {
      throw new ConfigError("ALLOWED_UPSTREAM_ORIGINS: each must be https://host, or http://host:port on loopback");
    }
  }
  if (!allowedOrigins.has(env.UPSTREAM_ORIGIN)) {
    throw new ConfigError("UPSTREAM_ORIGIN must be one of ALLOWED_UPSTREAM_ORIGINS");
  }
  return {
    upstreamOrigin: env.UPSTREAM_ORIGIN,
    allowedOrigins,
    upstreamPath: pathTemplate(env.UPSTREAM_PATH),
    deadlineMs: wholeNumber("UPSTREAM_DEADLINE_MS", env.UPSTREAM_DEADLINE_MS, 100, 60_000),
    corsOrigins: new Set(words(env.CORS_ORIGINS)),
    staleAfterMs: wholeNumber("STALE_AFTER_DAYS", env.STALE_AFTER_DAYS, 0, 3650) * DAY_MS,
  };
}

function words(value: string | undefined): string[] {
  return (value ?? "").split(/[\s,]+/).filter((word) => word !== "");
}

/** Plain http is for a fake upstream on this machine, and only there. */
function isUsableOrigin(origin: string): boolean {
  const url = URL.parse(origin);
  if (url === null || url.origin !== origin) {
    return false;
  }
  return url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.has(url.hostname));
}

/** Only what is filled in may vary: an address that stays below its origin, with the image and its size in it. */
function pathTemplate(value: string | undefined): string {
  const template = value ?? "";
  const filled = template.replaceAll(/\{(id|height|options)\}/g, "0");
  const isPath = /^\/(?!\/)[A-Za-z0-9\-._~/=&?+,:%]*$/.test(filled);
  if (!isPath || !template.includes("{id}") || !template.includes("{height}")) {
    throw new ConfigError("UPSTREAM_PATH must be a path with {id} and {height}, such as /d/{id}=h{height}{options}");
  }
  return template;
}

function wholeNumber(name: string, value: string | undefined, low: number, high: number): number {
  const number = /^\d{1,6}$/.test(value ?? "") ? Number(value) : NaN;
  if (!(number >= low && number <= high)) {
    throw new ConfigError(`${name} must be a whole number from ${low} to ${high}`);
  }
  return number;
}
