/** One JSON line for each thing that an operator may ask about. Never a header, a query or a token. */

import type { Refusal } from "./outcomes";
import type { ImageRequest } from "./parameters";

export function logRefusal(image: ImageRequest, said: Refusal): void {
  const { code, status, message } = said;
  console.warn(
    JSON.stringify({ event: "refused", tier: image.tier, identifier: image.identifier, code, status, message }),
  );
}

export function logFault(event: string, error: unknown): void {
  const name = error instanceof Error ? `${error.name}: ${error.message}` : "not an error";
  console.error(JSON.stringify({ event, error: name.slice(0, 300) }));
}
