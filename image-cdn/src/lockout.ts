/** How the image host says that it refuses us, and not one file: by a page for machines, or by asking to sign in. */

import { refusal, type Refusal } from "./outcomes";

const LOCKOUT_PAGE = /unusual traffic|\/sorry\/index|detected automated (queries|requests)/i;
const SIGN_IN_HOST = /^accounts\.google\.com$/i;
const SIGN_IN_PATH = /\/(ServiceLogin|sign-?in|login|sorry)\b/i;

/** Whether a redirect leads to a sign-in page or to the page for machines. */
export function isSignIn(url: URL): boolean {
  return SIGN_IN_HOST.test(url.hostname) || SIGN_IN_PATH.test(url.pathname);
}

export function isLockoutPage(text: string): boolean {
  return LOCKOUT_PAGE.test(text);
}

/** The words in brackets are those by which clients know a lockout from the refusal of one file. */
export function lockout(what: string): Refusal {
  return refusal(403, "upstream-lockout", `the image host refuses us (unusual traffic or sign-in): ${what}`);
}
