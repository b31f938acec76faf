import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        plugins: [
          cloudflareTest(({ inject }) => ({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: {
              bindings: {
                UPSTREAM_ORIGIN: inject("google"),
                ALLOWED_UPSTREAM_ORIGINS: `${inject("google")} ${inject("crossGoogle")}`,
                PURGE_TOKEN: "a-token-that-opens-nothing-but-tests",
              },
            },
          })),
        ],
        test: {
          name: "worker",
          include: ["test/worker/*.test.ts"],
          globalSetup: ["test/node/global_setup.ts"],
          testTimeout: 60_000,
        },
      },
      {
        test: { name: "node", include: ["test/node/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
      },
    ],
  },
});
