#!/usr/bin/env bash
# Prettier over the pages and data files of the project: prettier.sh --check|--write [FILE…]. Installed once, below .local.
set -euo pipefail
version=3.10.1
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$project"
mode=${1:?usage: prettier.sh --check|--write [FILE…]}
shift

home=.local/prettier-$version
if [ ! -x "$home/node_modules/.bin/prettier" ]; then
  npm install --silent --no-audit --no-fund --prefix "$home" "prettier@$version" >&2
fi
if [ $# = 0 ]; then
  mapfile -t files < <(git ls-files '*.md' '*.yaml' '*.yml' '*.json' '*.css' '*.js' '*.ts')
  [ ${#files[@]} -gt 0 ] || exit 0
  set -- "${files[@]}"
fi
exec "$home/node_modules/.bin/prettier" "$mode" --log-level warn --ignore-unknown "$@"
