/** Another form of address at the image host, by configuration alone. */

import { describe, expect, it } from "vitest";

import { ask, bytesOf, path, said, scripted, seen } from "./rig";
import { JPEG } from "../pictures";

/** What Drive's own thumbnails look like; the fake image host knows an image by the path, and any query with it. */
const OTHER = { UPSTREAM_PATH: "/d/{id}?thumbnail&sz=h{height}" };

describe("when the usual form of address fails for all images", () => {
  it("another one is a variable", async () => {
    const id = await scripted({ status: 404 }, {});

    expect(said(await ask(path("full", id, "?dpi=250&jpgQuality=95")))).toBe("404 upstream-404");
    const answer = await ask(path("full", id, "?dpi=250&jpgQuality=95"), {}, OTHER);

    expect(await bytesOf(answer)).toEqual(JPEG);
    expect((await seen(id)).map((request) => request.path)).toEqual([
      `/d/${id}=h925-rj-l95`,
      `/d/${id}?thumbnail&sz=h925`,
    ]);
  });

  it("a resource key goes along with what the form asks for", async () => {
    const id = await scripted();

    await ask(path("small", id, "?resourceKey=0-key"), {}, OTHER);

    const [request] = await seen(id);
    expect(Object.fromEntries(new URL(request?.path ?? "", "http://x").searchParams)).toEqual({
      thumbnail: "",
      sz: "h400",
      resourcekey: "0-key",
    });
  });
});
