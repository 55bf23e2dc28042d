#!/usr/bin/env bash
# Fetches the headers of cuDNN's front end (cudnn_frontend, MIT), which the CUDA module needs for convolutions, from
# PyPI's package nvidia-cudnn-frontend into the user's cache. Does nothing if they are already there.
set -u

# The package has one wheel per Python version, all with the same headers, so one is fetched by its hash.
version=1.32.0
python=(--python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_28_x86_64)
hash=c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0

folder=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/dptrain/cudnn_frontend-$version
case ${1:-} in
  --where) printf '%s/include\n' "$folder"; exit 0 ;;
  '') ;;
  *) printf 'Usage: tools/cudnn_frontend.sh [--where]\n  --where  print the folder of the headers\n' >&2; exit 2 ;;
esac
[ -e "$folder/include/cudnn_frontend.h" ] && exit 0

fail() {  # what happened, what to do
  printf 'cudnn_frontend.sh: error: %s\n  %s\n' "$1" "$2" >&2
  exit 1
}
python3 -m pip --version >/dev/null 2>&1 ||
  fail 'python3 has no pip' 'install python3-pip, then run this again'
scratch=$(mktemp -d) || exit 1
trap 'rm -r "$scratch"' EXIT
printf 'nvidia-cudnn-frontend==%s --hash=sha256:%s\n' "$version" "$hash" >"$scratch/requirements.txt"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: "${python[@]}" --require-hashes \
  -r "$scratch/requirements.txt" -d "$scratch" ||
  fail "pip could not fetch nvidia-cudnn-frontend $version, see above" 'check the network, then run this again'
# All of it or nothing: the folder gets its name last.
mkdir -p "$(dirname "$folder")" "$scratch/out" &&
  python3 -m zipfile -e "$scratch"/*.whl "$scratch/out" &&
  mkdir -p "$scratch/new" && mv "$scratch/out/include" "$scratch/new/include" &&
  cp "$scratch"/out/*.dist-info/licenses/LICENSE* "$scratch/new/" 2>/dev/null
[ -e "$scratch/new/include/cudnn_frontend.h" ] ||
  fail "the package has no include/cudnn_frontend.h" "please open an issue"
rm -rf "$folder.new" && cp -r "$scratch/new" "$folder.new" && { mv -T "$folder.new" "$folder" 2>/dev/null || rm -rf "$folder.new"; }
printf 'Headers of cudnn_frontend %s are in %s\n' "$version" "$folder"
