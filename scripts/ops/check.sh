#!/usr/bin/env bash
# What the hooks and CI check, in one command: every step runs, and the failed ones are named at the end. Needs no database.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

ensure_venv requirements-dev.txt || exit 1
cd "$project" || exit 1
bin=$project/.venv/bin
failed=()

step() { # step NAME COMMAND…
  local name=$1 output status
  shift
  output=$("$@" 2>&1)
  status=$?
  if [ "$status" = 0 ]; then
    printf 'ok      %s\n' "$name"
  else
    printf 'FAILED  %s\n%s\n' "$name" "$output"
    failed+=("$name")
  fi
}

# Whatever database the developer uses is left out of it: the code is checked, not a server.
nowhere=$(mktemp -d)
trap 'rm -rf "$nowhere"' EXIT
manage() {
  env -u CARDPICKER_DATABASE_URL CARDPICKER_DATA_DIR="$nowhere" \
    "$bin/python" -W "ignore:Got an error checking a consistent migration history:RuntimeWarning" manage.py "$@"
}

step "ruff" "$bin/ruff" check --quiet .
step "black" "$bin/black" --check --quiet --diff .
step "isort" "$bin/isort" --check-only --diff .
step "mypy" "$bin/mypy"
step "import directions" "$bin/lint-imports"
step "docs lint" "$bin/python" scripts/ops/lint_docs.py
step "settings page" env CARDPICKER_DATA_DIR="$nowhere" "$bin/python" scripts/ops/settings_page.py --check
step "migrations" manage makemigrations --check --dry-run
step "django" manage check
if command -v npm >/dev/null; then
  step "prettier" scripts/ops/prettier.sh --check
else
  echo "skipped prettier: npm is not installed"
fi

if [ ${#failed[@]} = 0 ]; then
  echo "all checks passed"
else
  echo "failed: $(IFS=,; echo "${failed[*]}" | sed 's/,/, /g')"
  exit 1
fi
