/**
 * Leaves the upstream alone for a while when it keeps saying no.
 *
 * It lives as long as its isolate and knows only what that isolate saw.
 */

import type { Refusal } from "./outcomes";

const STRIKES = 3;
const HOLD_S = { unlessSaid: 10, most: 60 };

interface Hold {
  strikes: number;
  until: number;
  refusal: Refusal;
}

export class Breaker {
  private readonly holds = new Map<string, Hold>();

  constructor(private readonly now: () => number = Date.now) {}

  /** Return the refusal that holds for `origin` now, with the seconds that are left of it. */
  held(origin: string): Refusal | undefined {
    const hold = this.holds.get(origin);
    const leftS = Math.ceil(((hold?.until ?? 0) - this.now()) / 1000);
    if (hold === undefined || leftS <= 0) {
      return undefined;
    }
    return { ...hold.refusal, retryAfterS: leftS, message: `${hold.refusal.message}; not asked again for ${leftS} s` };
  }

  /** Note that `origin` said no; the third in a row holds everybody back for as long as it asked for. */
  strike(origin: string, said: Refusal): void {
    const strikes = (this.holds.get(origin)?.strikes ?? 0) + 1;
    const holdS = Math.min(said.retryAfterS ?? HOLD_S.unlessSaid, HOLD_S.most);
    const until = strikes >= STRIKES ? this.now() + holdS * 1000 : 0;
    this.holds.set(origin, { strikes, until, refusal: said });
  }

  /** Note that `origin` answered something else. */
  clear(origin: string): void {
    this.holds.delete(origin);
  }
}
