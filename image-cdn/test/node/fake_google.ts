/** An image host on loopback that fails as told: by identifier, one scripted answer after the other. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import { JPEG } from "../pictures";
import type { Scripted, Seen } from "../script";

export interface FakeGoogle {
  origin: string;
  close: () => Promise<void>;
}

/** Serve `/d/{id}=…` as scripted (an image otherwise), `POST /script/{id}` and `GET /seen/{id}`. */
export async function startFakeGoogle(): Promise<FakeGoogle> {
  const scripts = new Map<string, Scripted[]>();
  const seen = new Map<string, Seen[]>();
  const server = createServer((request, response) => {
    void handle(request, response, scripts, seen).catch(() => request.socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, close: () => closed(server) };
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  scripts: Map<string, Scripted[]>,
  seen: Map<string, Seen[]>,
): Promise<void> {
  const path = request.url ?? "/";
  const [, route, identifier = ""] = /^\/(d|script|seen)\/([A-Za-z0-9_-]+)/.exec(path) ?? [];
  if (route === "script") {
    scripts.set(identifier, JSON.parse(await textOf(request)) as Scripted[]);
    response.end("{}");
  } else if (route === "seen") {
    response.end(JSON.stringify(seen.get(identifier) ?? []));
  } else {
    seen.set(identifier, [
      ...(seen.get(identifier) ?? []),
      { path, headers: request.headers as Record<string, string> },
    ]);
    const script = scripts.get(identifier) ?? [{}];
    await say((script.length > 1 ? script.shift() : script[0]) ?? {}, response);
  }
}

async function say(scripted: Scripted, response: ServerResponse): Promise<void> {
  const body = scripted.body === undefined ? Buffer.from(JPEG) : Buffer.from(scripted.body, "base64");
  await sleep(scripted.delayMs ?? 0);
  const headers: Record<string, string> = { "Content-Type": "image/jpeg", ...scripted.headers };
  if (scripted.declaredLength !== null) {
    headers["Content-Length"] = String(scripted.declaredLength ?? body.length);
  }
  response.strictContentLength = false;
  response.writeHead(scripted.status ?? 200, headers);
  for (let sent = 0; sent < (scripted.times ?? 1); sent += 1) {
    response.write(body);
  }
  if (scripted.cut) {
    await new Promise((resolve) => setImmediate(resolve));
    response.socket?.end();
  } else if (!scripted.stall) {
    response.end();
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
