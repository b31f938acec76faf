/** The address of an image, read strictly: what is not exactly right is refused with a reason. */

import { refusal, type Refusal } from "./outcomes";

export const TIERS = ["small", "large", "full"] as const;
export type Tier = (typeof TIERS)[number];

export interface ImageRequest {
  readonly kind: "image";
  readonly tier: Tier;
  readonly identifier: string;
  readonly heightPx: number;
  readonly dpi?: number;
  readonly jpgQuality?: number;
  /** Changes when the image does, so that the address may be kept for ever. */
  readonly version?: string;
  /** Asked for by some older files; opens the image and does not change it, so that nothing is stored under it. */
  readonly resourceKey?: string;
  /** What was done to the parameters, for a header. */
  readonly notice?: string;
}

// Both as in cardpicker/sources/drive_address.py, and a test of the Python suite holds the two sides together.
const IDENTIFIER = /^[A-Za-z0-9_-]{10,128}$/;
const RESOURCE_KEY = /^[A-Za-z0-9_-]{1,100}$/;
const VERSION = /^[A-Za-z0-9_.:-]{1,100}$/;
const BAD_VERSION = "v must be given once, as 1 to 100 letters, digits, -, _, . or :";
const BAD_RESOURCE_KEY = "resourceKey must be given once, as 1 to 100 letters, digits, - or _";
const IMAGE_PATH = /^\/images\/google_drive\/(small|large|full)\/([^/]*)\.jpg$/;
const TIER_HEIGHT_PX = { small: 400, large: 800 };
const DPI = { low: 50, high: 1500, step: 10, unlessSaid: 300 };
/** Pixels of height at 300 dpi: the height of a card with its bleed. */
const HEIGHT_PX_AT_300_DPI = 1110;

export function isIdentifier(value: unknown): value is string {
  return typeof value === "string" && IDENTIFIER.test(value);
}

/** Return the image that `url` names, why it is refused, or null when it names none of our routes. */
export function readImageRequest(url: URL): ImageRequest | Refusal | null {
  const match = IMAGE_PATH.exec(url.pathname);
  if (match === null) {
    return null;
  }
  const tier = match[1] as Tier;
  const identifier = match[2];
  if (!isIdentifier(identifier)) {
    return refusal(400, "bad-identifier", "the identifier must be 10 to 128 letters, digits, - or _");
  }
  const dpi = readNumber(url, "dpi", DPI.low, DPI.high);
  const jpgQuality = readNumber(url, "jpgQuality", 1, 100);
  const version = readText(url, "v", VERSION, refusal(400, "bad-version", BAD_VERSION));
  const resourceKey = readText(url, "resourceKey", RESOURCE_KEY, refusal(400, "bad-resource-key", BAD_RESOURCE_KEY));
  for (const part of [dpi, jpgQuality, version, resourceKey]) {
    if (typeof part === "object") {
      return part;
    }
  }
  return {
    kind: "image",
    tier,
    identifier,
    ...size(tier, dpi as number | undefined),
    ...(typeof jpgQuality === "number" && { jpgQuality }),
    ...(typeof version === "string" && { version }),
    ...(typeof resourceKey === "string" && { resourceKey }),
  };
}

/** Thumbnails have a height of their own; a dpi given with them is checked and has no effect. */
function size(tier: Tier, asked: number | undefined): Pick<ImageRequest, "heightPx" | "dpi" | "notice"> {
  if (tier !== "full") {
    return { heightPx: TIER_HEIGHT_PX[tier] };
  }
  const dpi = Math.round((asked ?? DPI.unlessSaid) / DPI.step) * DPI.step;
  const heightPx = (dpi * HEIGHT_PX_AT_300_DPI) / 300;
  const rounded = asked !== undefined && asked !== dpi;
  return { heightPx, dpi, ...(rounded && { notice: `dpi ${asked} was rounded to ${dpi}` }) };
}

function readNumber(url: URL, name: string, low: number, high: number): number | undefined | Refusal {
  const values = url.searchParams.getAll(name);
  if (values.length === 0) {
    return undefined;
  }
  const number = values.length === 1 && /^\d{1,6}$/.test(values[0] ?? "") ? Number(values[0]) : NaN;
  if (number >= low && number <= high) {
    return number;
  }
  const code = name === "dpi" ? "bad-dpi" : "bad-quality";
  return refusal(400, code, `${name} must be given once, as a whole number from ${low} to ${high}`);
}

function readText(url: URL, name: string, form: RegExp, otherwise: Refusal): string | undefined | Refusal {
  const values = url.searchParams.getAll(name);
  if (values.length === 0) {
    return undefined;
  }
  return values.length === 1 && form.test(values[0] ?? "") ? values[0] : otherwise;
}
