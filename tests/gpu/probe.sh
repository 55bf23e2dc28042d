#!/usr/bin/env bash
# All phases of tools/gpu/probe.sh as it is unpacked from a bundle, on a machine whose GPUs are fakes.
# Arguments: dptrain, the unit tests, the fake module, any library.
set -u
dptrain=$(realpath "$1") unit=$(realpath "$2") module=$(realpath "$3") library=$(realpath "$4")
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
here=$scratch/bundle
mkdir -p "$here/bin" "$here/lib" "$scratch/path" "$scratch/driver"
cp "$source"/tools/gpu/{probe.sh,common.sh,torch_gpu.py} "$here/"
ln -s "$source/configs" "$here/configs"
ln -s "$dptrain" "$here/bin/dptrain"
failed=0
wrong() {
  printf 'FAILED: %s\n' "$*"
  failed=1
}
phase() {  # wanted exit code, arguments
  local wanted=$1 code
  shift
  report=$scratch/report-${*: -1}
  # From another folder than the bundle's.
  (cd / && PATH=$scratch/path:$PATH "$here/probe.sh" --tiny "$@" "$report") >"$scratch/out" 2>&1
  code=$?
  [ "$code" = "$wanted" ] || { wrong "exit code of probe.sh $* is $code, not $wanted"; cat "$scratch/out"; }
}
says() { grep -qE -e "$1" "$report/report.md" || wrong "${report##*/} does not say: $1"; }
script() { printf '#!/usr/bin/env bash\n%s\n' "$2" >"$1" && chmod +x "$1"; }

phase 2 A  # there is no bin/unit
ln -s "$unit" "$here/bin/unit"
phase 2 F
# A sanitizer that watches nothing, a Python with a torch that answers at once, no profiler.
script "$scratch/path/compute-sanitizer" 'shift 4; exec "$@"'
# shellcheck disable=SC2016  # the script expands it
script "$scratch/path/python3" 'case $* in *torch_gpu.py*) echo "torch ${*: -3:1} ${*: -1} 9.0 us a step 11 samples/s" ;; *find_spec*) exit 1 ;; esac'

export DPTRAIN_CUDA_MODULE=$module DPTRAIN_CUDA_PATH=$scratch/driver DPT_FAKE_GPUS=1
phase 77 A
says 'No GPU that dptrain can use was found: nothing was tested.'
ln -s "$library" "$scratch/driver/libcuda.so.1"
# The losses that a bundle carries, of CPUs.
# shellcheck source=tools/gpu/common.sh
tiny=true && . "$here/common.sh" && find_programs tests/gpu/probe.sh && set_models
cpu_metrics "$here/cpu" || wrong 'the CPU has no losses'
for name in A B C D E; do
  phase 0 $name
  says ' 0 failed, 0 left out'
  [ "$(cat "$report/state")" = "done" ] || wrong "phase $name does not say that it is done"
  [ "$(find "$report" -type f | wc -l)" -le 8 ] || wrong "phase $name leaves more than eight files"
  grep -c '^- \[x\]' "$report/report.md"
done
report=$scratch/report-A
says '^- \[x\] first-cudnn-call-inside '
says 'replay: three times with the same results'
says '^- \[x\] operators-others '
says 'attention cudnn bf16: [0-9]+ comparisons, at most'
says '^- \[x\] bits-mlp-captured '
says '[0-9]+ plans, [0-9.]+ s; the slowest:'
grep -q '^node.*cublaslt' "$report/plans.txt" || wrong 'plans.txt has no node'
tar -tzf "$report/files.tar.gz" | grep -q 'runs/mlp-captured/metrics.jsonl' || wrong 'files.tar.gz has no losses'
report=$scratch/report-B
for precision in fp32 tf32 bf16 fp16; do says "^- \[x\] losses-resnet18-$precision "; done
says '^- \[x\] losses-gpt '
says 'dptrain resnet50-fp16 .* samples/s'
report=$scratch/report-C
says 'launch gap: '
says 'bandwidth: copy'
says 'sum of [0-9]+ nodes: '
report=$scratch/report-D
says 'torch mlp-fp32 eager 9.0 us a step'
says 'dptrain resnet50-tf32-1 '
report=$scratch/report-E
says 'NCCL: one rank, captured'
for name in dp-shared ddp-shared pipeline pipeline-processes pipelines; do says "^- \[x\] losses-$name "; done
says '^- \[x\] memcheck-train '
# Own kernels in a library's place are told, and are no success unless they are announced.
DPT_FAKE_LIBRARIES=0 phase 1 --seconds 120 A
says '^- \[ \] first-call-outside: '
says '^- \[ \] operators-attention: '
says 'conformance: \[ \] attention cudnn bf16: 3 of 3 comparisons failed; first with .* an own kernel ran instead: the fake GPU has no libraries'
says 'not as planned, [0-9]+ lines:'
says "[0-9]+ kernels of this GPU's programs are dptrain's own instead of a library's"
grep -q 'refused: the fake GPU has no libraries' "$report/plans.txt" || wrong 'plans.txt does not say what was refused'
export DPT_FAKE_LIBRARIES=0 DPT_OPERATORS=attention
"${unit[@]}" '-tc=kernels agree with the reference on a GPU*' >"$scratch/out" && wrong 'a fallback passes'
DPT_ANNOUNCED_FALLBACKS='attention:cudnn:bf16 attention:cudnn:f16' "${unit[@]}" '-tc=kernels agree with the reference on a GPU*' \
  >"$scratch/out" || wrong 'a fallback that was announced fails'
unset DPT_FAKE_LIBRARIES DPT_OPERATORS

# What fails or hangs stops nothing, and what has no time is told.
rm "$here/bin/unit"
script "$here/bin/unit" 'case $* in *captured*) echo "3 cases failed"; exit 1 ;; *outside*) exec sleep 60 ;; esac'
phase 1 --seconds 30 A
says '^- \[ \] capture: exit code 1 '
says '3 cases failed'
says '^- \[ \] first-call-outside: not done after '
says 'left out, the limit of 30 s was reached'
if [ $failed -ne 0 ]; then tail -n 200 "$scratch"/report-*/report.md; fi
exit $failed
