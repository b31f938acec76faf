/** The Worker as `wrangler dev` runs it: its own process of the runtime, real bindings, real HTTP. */

import { fileURLToPath } from "node:url";

import { unstable_startWorker } from "wrangler";

export interface LocalWorker {
  url: string;
  stop: () => Promise<void>;
}

/** Start one location: its limits and its store are its own. */
export async function startLocalWorker(upstreamOrigin: string): Promise<LocalWorker> {
  const worker = await unstable_startWorker({
    config: fileURLToPath(new URL("../../wrangler.toml", import.meta.url)),
    bindings: {
      UPSTREAM_ORIGIN: { type: "plain_text", value: upstreamOrigin },
      ALLOWED_UPSTREAM_ORIGINS: { type: "plain_text", value: upstreamOrigin },
    },
    dev: {
      server: { hostname: "127.0.0.1", port: 0 },
      inspector: false,
      persist: false,
      watch: false,
      logLevel: "none",
    },
  });
  await worker.ready;
  return { url: (await worker.url).origin, stop: () => worker.dispose() };
}
