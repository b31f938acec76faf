/** Resource keys: shown to the image host, kept by nobody, and told to nobody. */

import { describe, expect, it, vi } from "vitest";

import { ask, body, bytesOf, path, said, scripted, seen, storedKeys } from "./rig";
import { jpegNumber } from "../pictures";

const KEY = "0-the-Key_that-opens";

describe("a resource key", () => {
  it.each([
    ["small", "", "h400"],
    ["large", "&jpgQuality=40", "h800-rj-l40"],
    ["full", "&dpi=250", "h925"],
  ])("of a %s image is shown to the image host", async (tier, more, option) => {
    const id = await scripted();

    expect(said(await ask(path(tier, id, `?resourceKey=${KEY}${more}`)))).toBe("200 fine");

    expect((await seen(id)).map((request) => request.path)).toEqual([`/d/${id}=${option}?resourcekey=${KEY}`]);
  });

  it("changes no image: what is stored is served with any key and without, and purged with the others", async () => {
    const id = await scripted(body(jpegNumber(1)), body(jpegNumber(2)));

    const opened = await ask(path("small", id, `?resourceKey=${KEY}`));
    const plain = await ask(path("small", id));
    const other = await ask(path("small", id, "?resourceKey=0-another"));

    expect([await bytesOf(opened), await bytesOf(plain), await bytesOf(other)]).toEqual([1, 1, 1].map(jpegNumber));
    expect(await seen(id)).toHaveLength(1);
    expect(await storedKeys(id)).toEqual([`v1/google_drive/${id}/small/q/`]);
  });

  it("that is wrong takes nobody with it who shows the right one at the same time", async () => {
    const id = await scripted({ status: 404, delayMs: 300 }, {});

    const wrong = ask(path("small", id, "?resourceKey=0-wrong"));
    await vi.waitFor(async () => expect(await seen(id)).toHaveLength(1));
    const right = ask(path("small", id, `?resourceKey=${KEY}`));

    expect([said(await wrong), said(await right)]).toEqual(["404 upstream-404", "200 fine"]);
  });

  it("is in no log and no error, also when the image host repeats it", async () => {
    const lines: string[] = [];
    for (const method of ["log", "info", "warn", "error", "debug"] as const) {
      vi.spyOn(console, method).mockImplementation((...parts) => void lines.push(parts.join(" ")));
    }
    const page = new TextEncoder().encode(`The requested URL /d/x?resourcekey=${KEY} was not found`);
    const id = await scripted({ status: 404, ...body(page) }, body(page));

    const missing = await ask(path("full", id, `?resourceKey=${KEY}`));
    const noImage = await ask(path("full", id, `?resourceKey=${KEY}`));

    expect([said(missing), said(noImage)]).toEqual(["404 upstream-404", "502 not-an-image"]);
    expect(lines).toHaveLength(2);
    expect(lines.join() + (await missing.text()) + (await noImage.text())).not.toContain(KEY);
  });

  it("goes to nobody whom a redirect names", async () => {
    const id = await scripted({ status: 302, headers: { Location: `/d/elsewhere-of-${"x".repeat(20)}` } });

    await ask(path("full", id, `?resourceKey=${KEY}`));

    const [redirected] = await seen(`elsewhere-of-${"x".repeat(20)}`);
    expect(redirected?.path).not.toContain(KEY);
    expect(JSON.stringify(redirected?.headers)).not.toContain(KEY);
  });
});
