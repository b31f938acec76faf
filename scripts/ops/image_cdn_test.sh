#!/usr/bin/env bash
# The Worker's own tests in its real runtime; arguments go to vitest. Packages are installed when the lock has changed;
# --install ends there.
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
wanted=20

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  echo "The image CDN's tests need Node $wanted or newer with npm: https://nodejs.org" >&2
  exit 1
fi
found=$(node --version)
major=${found#v}
if [ "${major%%.*}" -lt "$wanted" ]; then
  echo "The image CDN's tests need Node $wanted or newer, and this is $found." >&2
  exit 1
fi

cd "$project/image-cdn"
export WRANGLER_SEND_METRICS=false
mkdir -p "$project/.local"
# Two runs at once would take the packages away from each other.
if command -v flock >/dev/null; then
  exec 9>"$project/.local/image-cdn.lock"
  flock 9
fi
lock=$(node -p 'require("crypto").createHash("sha256").update(require("fs").readFileSync("package-lock.json")).digest("hex")')
mark=node_modules/.installed-lock
if [ "$(cat "$mark" 2>/dev/null)" != "$lock" ]; then
  echo "Installing the image CDN's packages."
  if ! npm ci --silent --no-audit --no-fund; then
    echo "npm ci failed in image-cdn/: is a package registry reachable?" >&2
    exit 1
  fi
  echo "$lock" >"$mark"
fi
[ "${1:-}" = --install ] && exit 0
npm run --silent types
npx --no-install vitest run "$@"
