#!/usr/bin/env bash
# Installs the Debian packages that building and testing dptrain needs, from this machine's configured package
# sources, and with a CUDA toolkit the headers of cuDNN's front end. Does nothing, in well under two seconds, if all
# are there.
set -u

usage() {
  cat <<'TEXT'
Usage: tools/setup.sh [--dry-run] [--no-sudo] [-y|--yes] [--clang] [--style]
  --dry-run   print what would be installed without installing it
  --no-sudo   never call sudo; if not root, print the command that root must run
  -y, --yes   don't ask before installing (also without a terminal to ask on)
  --clang     clang as well, for tools/test.sh --clang
  --style     the checkers of tools/style.sh as well
Where it finds the CUDA toolkit, which NVIDIA provides like cuDNN and NCCL, it also fetches the headers of cuDNN's front
end (tools/cudnn_frontend.sh), for convolutions on GPUs.
TEXT
}

# package: what it is needed for
packages='g++:compiler
meson:build system
ninja-build:runs the build
pkg-config:finds libraries
libyaml-cpp-dev:reads specs
libfmt-dev:formats text
libcli11-dev:reads command lines
doctest-dev:unit tests
libdnnl-dev:oneDNN, matrix products on CPUs
zlib1g-dev:reads .gz data
libjpeg62-turbo-dev:reads folders of JPEG images
libpng-dev:reads folders of PNG images
libwebp-dev:reads folders of WebP images
libtiff-dev:reads folders of TIFF images
libgloo-dev:gloo, data between hosts
libopenmpi-dev:MPI, data between hosts
openmpi-bin:mpirun, starts ranks on hosts
python3:meson, and checks of the sources
python3-jsonschema:tests of the JSON Schema of specs
python3-yaml:reads specs in these tests
curl:fetches data sets
ca-certificates:lets curl trust mirrors'

dry_run=false no_sudo=false yes=false
for word in "$@"; do
  case $word in
    --dry-run) dry_run=true ;;
    --no-sudo) no_sudo=true ;;
    -y | --yes) yes=true ;;
    --clang) packages="$packages
clang:the second compiler
lld:its linker" ;;
    --style) packages="$packages
clang-format:formatting of C++ files
clang-tidy:checks of C++ files
shellcheck:checks of scripts" ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'setup.sh: unknown option %s\n' "$word" >&2; usage >&2; exit 2 ;;
  esac
done

fail() {  # what happened, what to do
  printf 'setup.sh: error: %s\n  %s\n' "$1" "$2" >&2
  exit 1
}

names=$(printf '%s\n' "$packages" | cut -d: -f1)
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  fail 'this is not Debian or Ubuntu: apt-get and dpkg-query were not found' \
    "install the equivalents of these by hand, then run meson: $(printf '%s' "$names" | tr '\n' ' ')"
fi

# Installed packages of the list, one a line. dpkg-query also complains about unknown ones, which is expected.
installed() {
  # shellcheck disable=SC2086  # one word a package
  dpkg-query -W -f='${db:Status-Status} ${Package}\n' $names 2>/dev/null |
    sed -n 's/^installed //p' | sort -u
}
missing() { comm -23 <(printf '%s\n' "$names" | sort -u) <(installed); }

# apt-get, as root; asks at most one yes-or-no question.
root=()
[ "$(id -u)" -eq 0 ] || root=(sudo)
apt=(env DEBIAN_FRONTEND=noninteractive apt-get)
install=(install --no-install-recommends)
if $yes || ! [ -t 0 ]; then install+=(--yes); fi

ticks() {
  local have
  have=$(installed)
  printf '%s\n' "$packages" | while IFS=: read -r name why; do
    if printf '%s\n' "$have" | grep -qxF "$name"; then mark='ok     '; else mark='missing'; fi
    printf '  [%s] %-16s %s\n' "$mark" "$name" "$why"
  done
}

mapfile -t wanted < <(missing)
if [ ${#wanted[@]} -gt 0 ]; then
  line="apt-get ${install[*]} ${wanted[*]}"
  if $dry_run; then
    ticks
    printf 'Would run%s:\n  apt-get update\n  %s\n' "${root:+ with sudo}" "$line"
    exit 0
  fi
  if [ ${#root[@]} -gt 0 ]; then
    if $no_sudo; then
      fail "not root, and --no-sudo was given: ${wanted[*]} cannot be installed" "as root: apt-get update && $line"
    fi
    command -v sudo >/dev/null ||
      fail "not root, and sudo was not found: ${wanted[*]} cannot be installed" \
        "as root: apt-get update && $line"
  fi
  printf 'Installing: %s\n' "${wanted[*]}"
  "${root[@]}" "${apt[@]}" update ||
    fail "'apt-get update' failed, see above" \
      "check the network and /etc/apt/sources.list, then run tools/setup.sh again"
  "${root[@]}" "${apt[@]}" "${install[@]}" "${wanted[@]}" ||
    fail "'$line' failed, see above" "fix the reported problem, then run tools/setup.sh again"
  mapfile -t wanted < <(missing)
  [ ${#wanted[@]} -eq 0 ] ||
    fail "apt-get installed all but: ${wanted[*]}" \
      "is this Debian 12 or newer? 'apt-cache policy ${wanted[*]}' says where they would come from"
fi
ticks
if $dry_run; then
  printf 'Nothing to install.\n'
# If they cannot be downloaded, dptrain is built without them and says so.
elif { command -v nvcc || [ -x /usr/local/cuda/bin/nvcc ]; } >/dev/null &&
  ! "$(dirname "${BASH_SOURCE[0]}")/cudnn_frontend.sh"; then
  printf "setup.sh: continuing without the headers of cuDNN's front end: no convolutions on GPUs\n" >&2
fi
printf 'All installed. Next: tools/first_run.sh trains a first net, tools/test.sh runs every test.\n'
