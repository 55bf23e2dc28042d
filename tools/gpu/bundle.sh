#!/usr/bin/env bash
# Packs all that tools/gpu/check.sh and tools/gpu/probe.sh need on a machine with a GPU into one file of at most
# 28 MiB; see usage below.
set -u

usage() {
  cat <<'TEXT'
Usage: tools/gpu/bundle.sh [-j N] [--build FOLDER] [FILE]

Writes FILE (dptrain-gpu.tar.gz): the programs, the CUDA module, the libraries that they need except libc, specs,
check.sh, probe.sh, and the losses of this machine's CPUs, which probe.sh compares a GPU's with. The file has at
most 28 MiB and can be unpacked anywhere. The machine with the GPU needs a driver, the libraries of CUDA and cuDNN
(NCCL for several GPUs), and a libc not much older than this one's; nothing is compiled there.

  -j N            compile N files at a time
  --build FOLDER  a meson build with CUDA, which is brought up to date (default: build-gpu; created if missing)

Exit codes: 0 written, 1 failed, 2 wrong command line.
TEXT
}
jobs=$(nproc) file=dptrain-gpu.tar.gz build=build-gpu tiny=false
while [ $# -gt 0 ]; do
  case $1 in
    -j) jobs=${2:?} && shift ;;
    --build) build=${2:?} && shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) file=$1 ;;
  esac
  shift
done
file=$(realpath -m "$file")
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
fail() {  # what happened, what to do
  printf 'bundle.sh: error: %s\n  %s\n' "$1" "$2" >&2
  exit 1
}

# Without them the module has no convolutions.
tools/cudnn_frontend.sh ||
  fail "the headers of cuDNN's front end could not be downloaded, see above" 'fix it, then run this again'
[ -e "$build/build.ninja" ] ||
  meson setup "$build" -Dcuda=enabled -Doptimization=2 -Ddebug=false ||
  fail "meson could not set up $build, see above" "fix the error, remove $build, then run this again"
ninja -C "$build" -j "$jobs" src/dptrain tests/unit src/backend/cuda/module/libdptrain_cuda.so ||
  fail "the build in $build failed, see above" 'fix it, then run this again'

scratch=$(mktemp -d) || exit 1
trap 'rm -r "$scratch"' EXIT
top=$scratch/dptrain-gpu
mkdir -p "$top/bin" "$top/lib/gcc"
strip -o "$top/bin/dptrain" "$build"/src/dptrain
strip -o "$top/bin/unit" "$build"/tests/unit
strip -o "$top/bin/libdptrain_cuda.so" "$build"/src/backend/cuda/module/libdptrain_cuda.so
# The libraries that these need, except those of libc and CUDA.
ldd "$top/bin/dptrain" "$top/bin/unit" | awk '$3 ~ "^/" { print $3 }' | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)\.so' | xargs -r cp -L -t "$top/lib"
# The compiler's libraries need a newer libc than the programs do, so they are used only if the machine's are too old.
mv "$top"/lib/libstdc++.so.* "$top"/lib/libgcc_s.so.* "$top/lib/gcc/"
"$top/bin/dptrain" doctor | grep -q '^\[x\] cuda ' ||
  fail "$top/bin/dptrain cannot load the module next to it" \
    "$build/src/dptrain doctor reports why; remove $build and run this again"
cp -r configs "$top/"
cp tools/gpu/{check.sh,probe.sh,common.sh,torch_gpu.py} "$top/"
# The losses on CPUs, computed by the bundled programs.
here=$top
# shellcheck source=tools/gpu/common.sh
. tools/gpu/common.sh && find_programs bundle.sh && set_models
cpu_metrics "$top/cpu" ||
  fail "training on this machine's CPUs failed, see above" 'run it by hand to see its full output'
git rev-parse HEAD >"$top/commit" 2>/dev/null || true
tar -C "$scratch" -cf - dptrain-gpu | gzip -9 >"$file" ||
  fail "$file cannot be written" 'free some space, or name another file'
size=$(stat -c %s "$file")
[ "$size" -le $((28 << 20)) ] || fail "$file has $size bytes, more than 28 MiB" 'build for fewer kinds of GPU: -Dgpu_archs=90'
printf '%s: %d MiB. On the machine with the GPU:\n  tar -xzf %s && dptrain-gpu/check.sh   or   dptrain-gpu/probe.sh A\n' \
  "$file" $((size >> 20)) "$(basename "$file")"
