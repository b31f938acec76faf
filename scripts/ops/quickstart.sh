#!/usr/bin/env bash
# From a clone to identified cards in one command; scripts/ops/quickstart.sh --help says more.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

ensure_venv requirements.txt
exec "$python" "$project/scripts/ops/quickstart.py" "$@"
