#!/usr/bin/env bash
# Everything the tests need, then the tests; arguments go to pytest.
# The database: CARDPICKER_DATABASE_URL, else a container where a Docker engine answers, else an embedded server of its own.
# REQUIRE_ALL=1: what is optional and can be installed here is installed, and a skip for want of it is a failure.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

ensure_venv requirements-dev.txt

apt_install() { # apt_install PROGRAM PACKAGE
  command -v "$1" >/dev/null && return 0
  local sudo=()
  if [ "$(id -u)" != 0 ]; then
    sudo=(sudo -n)
    if ! sudo -n true 2>/dev/null; then
      echo "REQUIRE_ALL=1 needs the program $1, and only root can install it: apt install $2" >&2
      return 1
    fi
  fi
  echo "Installing $2 for the tests."
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

if [ "${REQUIRE_ALL:-}" = 1 ]; then
  apt_install tesseract tesseract-ocr
  # It lies where an ordinary user's PATH does not look.
  apt_install /usr/sbin/pgbouncer pgbouncer
  apt_install /usr/sbin/ip iproute2
  # Built with TLS, as the servers of the wheel are not.
  with_tls=$(compgen -G '/usr/lib/postgresql/*/bin/postgres' | head -n 1 || true)
  apt_install "${with_tls:-postgres}" postgresql
fi

cd "$project"
exec "$python" scripts/ops/test_database.py "$python" -m pytest "$@"
