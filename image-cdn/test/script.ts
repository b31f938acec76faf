/** How a test tells the fake image host what to say, and hears what it was asked. */

/** One answer; the last one of a script is given for ever. */
export interface Scripted {
  status?: number;
  headers?: Record<string, string>;
  /** Base64. */
  body?: string;
  /** How many times the body is sent; once when it is not said. */
  times?: number;
  /** What Content-Length says, when it is not the body's; null sends the body in chunks. */
  declaredLength?: number | null;
  /** Ends the connection after the body, whatever was declared. */
  cut?: boolean;
  /** Waits before the status line. */
  delayMs?: number;
  /** Sends the headers and then waits for ever. */
  stall?: boolean;
}

export interface Seen {
  path: string;
  headers: Record<string, string>;
}
