#!/usr/bin/env bash
# Packs all that tools/gpu/probe.sh needs on a machine with a GPU into one file of at most 48 MiB; see usage below.
set -u

usage() {
  cat <<'TEXT'
Usage: tools/gpu/bundle.sh [-j N] [--build FOLDER] [--no-build] [FILE]

Writes FILE (dptrain-gpu.tar.gz): the programs, the CUDA module, the module for gloo, the libraries that they need
except libc, specs, probe.sh, and the losses of this machine's CPUs, which probe.sh compares a GPU's with. The file has
at most 48 MiB and can be unpacked anywhere. The machine with the GPU needs a driver, the libraries of CUDA and cuDNN
(NCCL for several GPUs), Python 3.8, and a libc not much older than this one's; nothing is compiled there.

  -j N            compile N files at a time
  --build FOLDER  a meson build with CUDA, which is brought up to date (default: build-gpu; created if missing,
                  optimized and for compute capability 9.0 only)
  --no-build      take the programs of that build as they are

Exit codes: 0 written, 1 failed, 2 wrong command line.
TEXT
}
jobs=$(nproc) file=dptrain-gpu.tar.gz build=build-gpu compile=true most=$((48 << 20))
while [ $# -gt 0 ]; do
  case $1 in
    -j) jobs=${2:?} && shift ;;
    --build) build=${2:?} && shift ;;
    --no-build) compile=false ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) file=$1 ;;
  esac
  shift
done
file=$(realpath -m "$file") build=$(realpath -m "$build")
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
fail() {  # what happened, what to do
  printf 'bundle.sh: error: %s\n  %s\n' "$1" "$2" >&2
  exit 1
}

gloo=src/comm/links/modules/libdptrain_gloo.so
options=(-Dcuda=enabled -Dtests=enabled -Doptimization=2 -Ddebug=false -Dgpu_archs=90 -Dfolder_units=all)
programs=(src/dptrain tests/unit src/backend/cuda/module/libdptrain_cuda.so)
if $compile; then
  # Without them the module has no convolutions.
  tools/cudnn_frontend.sh ||
    fail "the headers of cuDNN's front end could not be downloaded, see above" 'fix it, then run this again'
  [ -e "$build/build.ninja" ] ||
    meson setup "$build" "${options[@]}" ||
    fail "meson could not set up $build, see above" "fix the error, remove $build, then run this again"
  # Not where libgloo-dev is missing.
  if ninja -C "$build" -t query $gloo >/dev/null 2>&1; then programs+=("$gloo"); fi
  ninja -C "$build" -j "$jobs" "${programs[@]}" ||
    fail "the build in $build failed, see above" 'fix it, then run this again'
elif [ -e "$build/$gloo" ]; then
  programs+=("$gloo")
fi

scratch=$(mktemp -d) || exit 1
trap 'rm -r "$scratch"' EXIT
top=$scratch/dptrain-gpu
mkdir -p "$top/bin" "$top/lib/gcc"
for program in "${programs[@]}"; do
  strip -o "$top/bin/${program##*/}" "$build/$program" ||
    fail "$build/$program was not found" 'run this without --no-build'
done
# The libraries that these need, except those of libc and CUDA.
find "$top/bin" -type f ! -name libdptrain_cuda.so -exec ldd {} + | awk '$3 ~ "^/" { print $3 }' | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)\.so' | xargs -r cp -L -t "$top/lib"
# The compiler's libraries need a newer libc than the programs do, so they are used only if the machine's are too old.
mv "$top"/lib/libstdc++.so.* "$top"/lib/libgcc_s.so.* "$top/lib/gcc/"
env -u DPTRAIN_CUDA_MODULE "$top/bin/dptrain" doctor | grep -q '^\[x\] cuda ' ||
  fail "$top/bin/dptrain cannot load the module next to it" \
    "$build/src/dptrain doctor reports why; remove $build and run this again"
[ -e "$top/bin/libdptrain_gloo.so" ] ||
  printf 'bundle.sh: without the module for gloo (libgloo-dev): NCCL will not be tried with two ranks\n' >&2
cp -r configs "$top/"
cp tools/gpu/probe.sh tools/gpu/*.py "$top/"
# The losses on CPUs, computed by the bundled programs.
python3 -B "$top/probes.py" ||
  fail "training on this machine's CPUs failed, see above" 'run it by hand to see its full output'
git rev-parse HEAD >"$top/commit" 2>/dev/null || true
tar -C "$scratch" -cf - dptrain-gpu | gzip >"$file" ||
  fail "$file cannot be written" 'free some space, or name another file'
size=$(stat -c %s "$file")
[ "$size" -le $most ] || fail "$file has $size bytes, more than 48 MiB" 'build for fewer kinds of GPU: -Dgpu_archs=90'
printf '%s: %d MiB. On the machine with the GPU:\n  tar -xzf %s && dptrain-gpu/probe.sh first report\n' \
  "$file" $((size >> 20)) "$(basename "$file")"
