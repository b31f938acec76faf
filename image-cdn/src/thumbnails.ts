/** Thumbnails in R2: keys, what is written under them and how many of one image are kept. */

import { isServedType } from "./formats";
import type { Picture } from "./outcomes";
import type { ImageRequest } from "./parameters";

/** Part of every key: raised when what is stored changes its meaning, which leaves all older objects behind. */
const LAYOUT = "v1";
const KEPT_OF_ONE_IMAGE = 16;

export interface Stored {
  readonly object: R2Object;
  readonly contentType: string;
  readonly sha256: string;
  readonly size: number;
}

/** Return the key of a thumbnail: one object for each size, quality and version of an image. */
export function keyOf(image: ImageRequest): string {
  const quality = image.jpgQuality === undefined ? "q" : `q${image.jpgQuality}`;
  return `${prefixOf(image.identifier)}${image.tier}/${quality}/${image.version ?? ""}`;
}

/** Return what a flight is shared by: whoever shows another resource key may get another answer, if no other image. */
export function flightOf(image: ImageRequest): string {
  return `${keyOf(image)} ${image.resourceKey ?? ""}`;
}

/** The slash at the end keeps an identifier apart from those that begin with it. */
export function prefixOf(identifier: string): string {
  return `${LAYOUT}/google_drive/${identifier}/`;
}

/** Return what an object says of itself, or null when it is none that we wrote. */
export function described(object: R2Object | null): Stored | null {
  const contentType = object?.httpMetadata?.contentType;
  const sha256 = object?.customMetadata?.["sha256"];
  if (object === null || sha256 === undefined || !isServedType(contentType)) {
    return null;
  }
  return { object, contentType, sha256, size: object.size };
}

export async function store(bucket: R2Bucket, image: ImageRequest, picture: Picture): Promise<void> {
  await bucket.put(keyOf(image), picture.bytes, {
    httpMetadata: { contentType: picture.contentType },
    customMetadata: { sha256: picture.sha256 },
    sha256: picture.sha256,
  });
  await dropOldest(bucket, image.identifier);
}

/** Delete every thumbnail of an image; returns how many there were. */
export async function purge(bucket: R2Bucket, identifier: string): Promise<number> {
  let purged = 0;
  for (;;) {
    const listed = await bucket.list({ prefix: prefixOf(identifier) });
    if (listed.objects.length > 0) {
      await bucket.delete(listed.objects.map((object) => object.key));
      purged += listed.objects.length;
    }
    if (!listed.truncated) {
      return purged;
    }
  }
}

/** Versions and qualities are the caller's to choose: without a bound anyone could fill the bucket. */
async function dropOldest(bucket: R2Bucket, identifier: string): Promise<void> {
  const { objects } = await bucket.list({ prefix: prefixOf(identifier) });
  const surplus = objects.sort((a, b) => b.uploaded.getTime() - a.uploaded.getTime()).slice(KEPT_OF_ONE_IMAGE);
  if (surplus.length > 0) {
    await bucket.delete(surplus.map((object) => object.key));
  }
}
