#!/usr/bin/env bash
# Kill, stop and cut off parts of a running system of its own, and check that nothing is lost or done twice; --help says more.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

ensure_venv requirements.txt
cd "$project"
exec "$python" -m scripts.ops.drill "$@"
