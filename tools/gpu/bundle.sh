#!/usr/bin/env bash
# Packs all that tools/gpu/check.sh needs on a machine with a GPU into one file of at most 64 MB: programs, the CUDA
# module for every kind of GPU, the libraries that they want beside libc, specs. That machine needs a driver, the
# libraries of CUDA and cuDNN (NCCL for several GPUs), and a libc not much older than this one's. Nothing is compiled there.
set -u

usage() { printf 'Usage: tools/gpu/bundle.sh [-j N] [FILE]   (FILE: dptrain-gpu.tar.gz)\n'; }
jobs=$(nproc) file=dptrain-gpu.tar.gz
while [ $# -gt 0 ]; do
  case $1 in
    -j) jobs=${2:?} && shift ;;
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
tools/cudnn_frontend.sh || fail "the headers of cuDNN's front end can't be had, see above" 'mend it, then run this again'
build='build-gpu'
[ -e $build/build.ninja ] ||
  meson setup $build -Dcuda=enabled -Doptimization=2 -Ddebug=false ||
  fail "meson could not set up $build, see above" "remove $build and run this again once it is mended"
ninja -C $build -j "$jobs" src/dptrain tests/unit src/backend/cuda/module/libdptrain_cuda.so ||
  fail "the build in $build failed, see above" 'mend it, then run this again'

scratch=$(mktemp -d) || exit 1
trap 'rm -r "$scratch"' EXIT
top=$scratch/dptrain-gpu
mkdir -p "$top/bin" "$top/lib/gcc"
strip -o "$top/bin/dptrain" $build/src/dptrain
strip -o "$top/bin/unit" $build/tests/unit
cp $build/src/backend/cuda/module/libdptrain_cuda.so "$top/bin/"
# What these want, but not libc's own parts and not CUDA's.
ldd "$top/bin/dptrain" "$top/bin/unit" | awk '$3 ~ "^/" { print $3 }' | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)\.so' | xargs -r cp -L -t "$top/lib"
# The compiler's own want a newer libc than the programs do, so they are for machines whose own are too old.
mv "$top"/lib/libstdc++.so.* "$top"/lib/libgcc_s.so.* "$top/lib/gcc/"
"$top/bin/dptrain" doctor | grep -q '^\[x\] cuda ' ||
  fail "$top/bin/dptrain can't load the module beside it" "$build/src/dptrain doctor says why; remove $build and run this again"
cp -r configs "$top/"
cp tools/gpu/check.sh tools/gpu/torch_gpu.py "$top/"
git rev-parse HEAD >"$top/commit" 2>/dev/null || true
tar -C "$scratch" -czf "$file" dptrain-gpu || fail "$file can't be written" 'free some space, or name another file'
size=$(stat -c %s "$file")
[ "$size" -le 64000000 ] || fail "$file has $size bytes, more than 64 MB" 'find out what grew'
printf '%s: %d MB. On the machine with the GPU:\n  tar -xzf %s && dptrain-gpu/check.sh\n' "$file" $((size / 1000000)) \
  "$(basename "$file")"
