#!/usr/bin/env bash
# Packs this build's programs as tools/gpu/bundle.sh does for a machine with a GPU, unpacks them, and runs probe.sh on a
# machine whose GPU is a fake. Arguments: the build's folder, the fake module, any library.
set -u
build=$(realpath "$1") module=$(realpath "$2") library=$(realpath "$3")
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0
wrong() {
  printf 'FAILED: %s\n' "$*"
  failed=1
}
here=$scratch/dptrain-gpu report=$scratch/report
probe() {  # wanted exit code, arguments
  local wanted=$1 code
  shift
  # From another folder than the bundle's.
  (cd / && PATH=$scratch/path:$PATH "$here/probe.sh" "$@" "$report") >"$scratch/out" 2>&1
  code=$?
  [ "$code" = "$wanted" ] && return
  wrong "exit code of probe.sh $* is $code, not $wanted"
  tail -n 100 "$scratch/out"
}
says() { grep -qE -e "$1" "$report/report.md" || wrong "the report does not say: $1"; }
script() { printf '#!/usr/bin/env bash\n%s\n' "$2" >"$1" && chmod +x "$1"; }

"$source/tools/gpu/bundle.sh" --no-build --build "$build" "$scratch/b.tar.gz" || exit 1
tar -xzf "$scratch/b.tar.gz" -C "$scratch" || exit 1
mkdir "$scratch/path" "$scratch/driver"
script "$scratch/path/compute-sanitizer" 'shift 4; exec "$@"'  # one that watches nothing
export DPTRAIN_CUDA_MODULE=$module DPTRAIN_CUDA_PATH=$scratch/driver DPT_FAKE_GPUS=1

probe 2 A
probe 2 --only nothing first
probe 2 --seconds 0 first
probe 77 --tiny first
says 'No GPU that dptrain can use was found: nothing else was tested.'
says 'find library=libcuda'

ln -s "$library" "$scratch/driver/libcuda.so.1"
begin=$SECONDS
probe 0 --tiny first
printf 'all probes: %s s\n' $((SECONDS - begin))
says ' 0 failed, 0 left out'
for name in losses-mlp bits-mlp-uncaptured losses-resnet18-fp16 bits-resnet50-cached memcheck-train losses-pipeline; do
  says "[ ,]$name( |,|$)|^$name( |,)"
done
says '[0-9]+ results agree, 0 do not'
says 'capture: a graph of 2 nodes'
says 'launch gap: '
says 'bandwidth: copy'
says 'dptrain resnet50-fp16 .* samples/s'
says 'us x +1 .* linear cublaslt f32'
if [ -e "$here/bin/libdptrain_gloo.so" ]; then says 'losses-nccl'; fi
[ "$(find "$report" -type f | wc -l)" -le 8 ] || wrong 'there are more than eight files'
[ "$(wc -c <"$report/report.md")" -le 9216 ] || wrong 'the report has more than 9 KB'
tail -n 3 "$report/report.md" | diff - <(tail -n 3 "$scratch/out") || wrong 'the report is not printed last'
grep -q '^node.*cublaslt' "$report/plans.txt" || wrong 'plans.txt has no node'
tar -tzf "$report/files.tar.gz" | grep -q 'runs/mlp/metrics.jsonl' || wrong 'files.tar.gz has no losses'

# Own kernels in a library's place are reported, and are no success.
DPT_FAKE_LIBRARIES=0 DPT_OPERATORS=attention probe 1 --tiny --only 'conformance,first-call-outside,train-gpt*' first
says '^- \[ \] first-call-outside: '
says '^- \[ \] conformance: '
says 'conformance: \[ \] attention cudnn bf16: 3 of 3 .* an own kernel ran instead: the fake GPU has no libraries'
says "[0-9]+ kernels of this GPU's programs are dptrain's own instead of a library's"
says 'refused: '
if grep -q 'losses-gpt\|bandwidth' "$report/report.md"; then wrong '--only runs other probes, too'; fi

# What fails or hangs stops nothing, a failed run is tried again, and what has no time is reported.
cp "$here/bin/dptrain" "$scratch/dptrain"
rm "$here/bin/dptrain" "$here/bin/unit"
script "$here/bin/unit" 'case $* in
  *captured*) echo "3 cases failed"; exit 1 ;;
  *outside* | *between*) sleep 60 ;;
esac'
# shellcheck disable=SC2016  # the script expands it
script "$here/bin/dptrain" 'case $* in *out=runs/mlp*) [ "${DPTRAIN_PLAN_CACHE:-}" = off ] || exit 9 ;; esac
'"LD_LIBRARY_PATH=$here/lib exec $scratch/dptrain"' "$@"'
probe 1 --tiny --seconds 20 --only 'capture,first-call-outside,*-mlp,first-cudnn*,memcheck-train' first
says '^- \[ \] capture: exit code 1 '
says '3 cases failed'
says '^- \[ \] first-call-outside: not done after '
says '^- \[ \] train-mlp: exit code 9 '
says 'tried again with DPTRAIN_PLAN_THREADS=1: exit code 9 after 0 s; DPTRAIN_PLAN_CACHE=off: passes'
says '^- losses-mlp: needs train-mlp'
probe 1 --tiny --seconds 8 --only 'launch-gap,bandwidth' first
says '^- \[ \] launch-gap: not done after '
says '^- bandwidth: no time was left'

# After a failed gate nothing else runs.
script "$here/bin/dptrain" 'case $* in *out=runs/first*) echo "error: unknown symbol" >&2; exit 3 ;; esac
'"LD_LIBRARY_PATH=$here/lib exec $scratch/dptrain"' "$@"'
probe 1 --tiny first
says 'The gate failed: nothing else was tested.'
says '^- \[ \] train-first: exit code 3 '
says "The loader's log"
if grep -q 'train-mlp' "$report/report.md"; then wrong 'probes run after a failed gate'; fi
if [ $failed -ne 0 ]; then cat "$report/report.md"; fi
exit $failed
