/**
 * Single flight: whoever asks for what is already being fetched waits for it.
 *
 * It holds within one isolate. What is shared is bytes, since a stream belongs to the request that opened it.
 */

import { refusal, type Outcome, type Picture } from "./outcomes";

export class Flights {
  private readonly running = new Map<string, Promise<Outcome>>();

  /**
   * Return the outcome of the flight of `key`, starting one when there is none.
   *
   * `ctx` keeps a flight alive that its own caller left. It ends when `store` has, so that no one can come in between.
   */
  async join(
    key: string,
    ctx: Pick<ExecutionContext, "waitUntil">,
    patienceMs: number,
    load: () => Promise<Outcome>,
    store: (picture: Picture) => Promise<void>,
  ): Promise<Outcome> {
    const running = this.running.get(key);
    if (running !== undefined) {
      return await Promise.race([running, lost(patienceMs)]);
    }
    const loading = load();
    this.running.set(key, loading);
    const landed = loading
      .then(async (outcome) => {
        if (outcome.kind === "picture") {
          await store(outcome);
        }
      })
      .finally(() => this.running.delete(key));
    ctx.waitUntil(landed.catch(() => undefined));
    return await loading;
  }
}

/** The request that flies may be ended by the platform; nobody waits for it longer than it could take. */
async function lost(patienceMs: number): Promise<Outcome> {
  await scheduler.wait(patienceMs);
  return refusal(504, "upstream-timeout", "the image host did not answer in time");
}
