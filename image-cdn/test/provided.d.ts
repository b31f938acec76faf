import "vitest";

declare module "vitest" {
  interface ProvidedContext {
    google: string;
    crossGoogle: string;
  }
}
