/** Which bytes are an image: the formats that are served, known by their first bytes and never by a header. */

export interface Format {
  readonly contentType: string;
  readonly matches: (bytes: Uint8Array) => boolean;
  /** Whether the bytes end as the format ends; asked where no length tells whether they are all there. */
  readonly isWhole: (bytes: Uint8Array) => boolean;
}

const END_OF_PNG = [0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82];

const FORMATS: readonly Format[] = [
  {
    contentType: "image/jpeg",
    matches: (bytes) => has(bytes, 0, [0xff, 0xd8, 0xff]),
    isWhole: (bytes) => has(bytes, bytes.length - 2, [0xff, 0xd9]),
  },
  {
    contentType: "image/png",
    matches: (bytes) => has(bytes, 0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    isWhole: (bytes) => has(bytes, bytes.length - END_OF_PNG.length, END_OF_PNG),
  },
  {
    contentType: "image/webp",
    matches: (bytes) => has(bytes, 0, ascii("RIFF")) && has(bytes, 8, ascii("WEBP")),
    isWhole: (bytes) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true) + 8 <= bytes.length,
  },
  {
    contentType: "image/gif",
    matches: (bytes) => has(bytes, 0, ascii("GIF87a")) || has(bytes, 0, ascii("GIF89a")),
    isWhole: (bytes) => has(bytes, bytes.length - 1, [0x3b]),
  },
];

export function formatOf(bytes: Uint8Array): Format | undefined {
  return FORMATS.find((format) => format.matches(bytes));
}

export function isServedType(contentType: string | undefined): contentType is string {
  return FORMATS.some((format) => format.contentType === contentType);
}

function has(bytes: Uint8Array, at: number, wanted: readonly number[]): boolean {
  return at >= 0 && wanted.every((byte, index) => bytes[at + index] === byte);
}

function ascii(text: string): number[] {
  return [...text].map((letter) => letter.charCodeAt(0));
}
