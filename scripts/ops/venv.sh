# Sourced by the scripts beside it: finds a Python and hands over to ensure_venv.py.
# Sets: project (the project's folder) and python (the one of its virtual environment).

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Services on loopback must not be asked for through a proxy.
export NO_PROXY="127.0.0.1,localhost,::1${NO_PROXY:+,$NO_PROXY}"
export no_proxy="127.0.0.1,localhost,::1${no_proxy:+,$no_proxy}"

find_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  echo "Python 3.11 or newer is needed and none was found: install one, or set PYTHON to it." >&2
  return 1
}

# ensure_venv REQUIREMENTS_FILE
ensure_venv() {
  local system_python
  system_python=$(find_python) || return 1
  "$system_python" "$project/scripts/ops/ensure_venv.py" "$1" || return 1
  python=$project/.venv/bin/python
}
