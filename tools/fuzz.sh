#!/usr/bin/env bash
# Builds the libFuzzer programs with clang, AddressSanitizer and UndefinedBehaviorSanitizer, and runs
# them one after another. Keeps inputs that fail in build-test/fuzz/findings; exits with 1 if there are any.
set -u

usage() {
  cat <<'TEXT'
Usage: tools/fuzz.sh [TARGET...] [--seconds N] [-j N]
  TARGET       spec idx idx_gzip npy csv cifar image safetensors torch_file json state hosts; default: all of them
  --seconds N  how long each runs (30)
  -j N         compile with N processes (as many as there are cores)
To make a finding a test, fix the bug, then copy the file to tests/fuzz/corpus/TARGET/found-NAME.
TEXT
}

seconds=30 jobs=$(nproc) targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=${2:-} && shift ;;
    -j) jobs=${2:-} && shift ;;
    -h | --help) usage; exit 0 ;;
    spec | idx | idx_gzip | npy | csv | cifar | image | safetensors | torch_file | json | state | hosts)
      targets+=("$1") ;;
    *) printf 'fuzz.sh: unknown target or option %s\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
case $seconds:$jobs in
  *[!0-9:]* | :* | *: | 0:* | *:0) printf 'fuzz.sh: --seconds and -j need numbers above 0\n' >&2; exit 2 ;;
esac
[ ${#targets[@]} -gt 0 ] || targets=(spec idx idx_gzip npy csv cifar image safetensors torch_file json state hosts)

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build="build-test/fuzz"
if ! command -v clang++ >/dev/null; then
  printf 'fuzz.sh: error: clang++ was not found\n  tools/setup.sh --clang installs it\n' >&2
  exit 1
fi
cxx=clang++
if command -v ccache >/dev/null; then cxx="ccache $cxx"; fi
if ! [ -e "$build/build.ninja" ]; then
  CXXFLAGS=-g1 CXX=$cxx meson setup "$build" -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false \
    -Doptimization=1 -Ddebug=false -Db_pch=false || exit 1
fi
ninja -C "$build" -j "$jobs" "${targets[@]/#/tests/fuzz/fuzz_}" || exit 1

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
found=()
for target in "${targets[@]}"; do
  # New inputs go to the first folder, the committed ones are only read.
  mkdir -p "$build/corpus/$target" "$build/findings/$target"
  printf '== %s, %s s ==\n' "$target" "$seconds"
  "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=4096 -timeout=5 -rss_limit_mb=2048 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="$build/findings/$target/" \
    "$build/corpus/$target" "tests/fuzz/corpus/$target" || found+=("$target")
done
if [ ${#found[@]} -gt 0 ]; then
  printf '%d of %d targets have findings: %s; see %s/findings\n' "${#found[@]}" "${#targets[@]}" "${found[*]}" "$build"
  exit 1
fi
printf 'no findings in %d targets\n' "${#targets[@]}"
