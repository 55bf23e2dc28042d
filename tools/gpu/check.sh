#!/usr/bin/env bash
# Everything that only a GPU can show, in one command and under ten minutes, from the bundle of tools/gpu/bundle.sh:
# the device's kernels against the CPU's reference implementations, loss curves against the CPU's, repeatability, modes,
# times compared with PyTorch's, then memory errors and races (compute-sanitizer). Writes report.md and a log per check.
# Libraries are loaded from where dptrain looks (docs/gpu.md) and from the nvidia packages of python3. PyTorch,
# nvidia-smi and compute-sanitizer are used if they are installed. Every check runs, even if an earlier one failed.
# Exit code 0: all passed; 1: something failed; 2: the checks could not start; 77: no GPU was found.
set -u

usage() {
  cat <<'TEXT'
Usage: check.sh [--seconds N] [--tiny] [FOLDER of the report]
  --seconds N  what does not fit into N seconds is left out, and said so (600)
  --tiny       tries all out at small sizes; times mean nothing then
TEXT
}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 2
tiny=false seconds=600 out=$here/report
while [ $# -gt 0 ]; do
  case $1 in
    --tiny) tiny=true ;;
    --seconds) seconds=${2:?} && shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) out=$1 ;;
  esac
  shift
done
# shellcheck source=tools/gpu/common.sh
. "$here/common.sh" || exit 2
find_programs check.sh
# What an earlier check left would pass for this one's.
rm -rf "$out/logs" "$out/runs" && mkdir -p "$out/logs" "$out/runs" && out=$(cd "$out" && pwd) && cd "$out" || exit 2

report=$out/report.md
: >"$report"
say() { printf '%s\n' "$*" | tee -a "$report"; }
show() { { printf '```\n'; cat "$@"; printf '```\n'; } | tee -a "$report"; }
finish() {  # exit code
  printf 'The report is %s\n' "$report"
  exit "$1"
}

say "# dptrain on a GPU, $(date -u +%Y-%m-%d), commit $(cat "$here/commit" 2>/dev/null || echo unknown)"
if $tiny; then say 'Small sizes: this only shows that everything runs; times are meaningless.'; fi
say ''
# The loader's words alone where this machine's libc is too old.
timeout -k 5 120 "${dptrain[@]}" doctor >logs/doctor 2>&1 || say "dptrain doctor ended with code $?:"
timeout -k 5 60 nvidia-smi --query-gpu=name,driver_version,memory.used,utilization.gpu,clocks.sm,clocks.mem,power.limit,ecc.mode.current \
  --format=csv >logs/nvidia-smi 2>&1
show logs/doctor logs/nvidia-smi
gpus=$(grep -c '^\[x\] cuda:[0-9]' logs/doctor)
if [ "$gpus" -eq 0 ]; then
  say 'No GPU that dptrain can use was found: nothing was checked.'
  finish 77
fi

passed=0 failed=0 left_out=0
# check NAME SECONDS COMMAND...: its output goes to logs/NAME.
check() {
  local name=$1 limit=$2 left=$((seconds - SECONDS)) start=$SECONDS status
  shift 2
  if [ "$left" -lt 2 ]; then
    left_out=$((left_out + 1))
    say "- [ ] $name: left out, the limit of $seconds s was reached"
    return 1
  fi
  [ "$limit" -le "$left" ] || limit=$left
  timeout -k 5 "$limit" "$@" >"logs/$name" 2>&1 </dev/null
  status=$?
  if [ $status -eq 0 ]; then
    passed=$((passed + 1))
    say "- [x] $name ($((SECONDS - start)) s)"
    return 0
  fi
  failed=$((failed + 1))
  case $status in
    124 | 137) say "- [ ] $name: not done after $limit s; logs/$name ends with" ;;
    *) say "- [ ] $name: exit code $status; logs/$name ends with" ;;
  esac
  tail -n 8 "logs/$name" | cut -c 1-300 | sed 's/^/      /' | tee -a "$report"
  return 1
}
skip() { say "- skipped: $1: $2"; }

set_models
run() {  # name, seconds, arguments of train
  check "train-$1" "$2" "${dptrain[@]}" "${@:3}" "out=$out/runs/$1"
}
bits() {  # two names: losses and weights
  check "bits-$1" 30 "${dptrain[@]}" compare "runs/$1" "runs/$2" --rtol 0 --atol 0
}
losses() {  # two names, relative tolerance
  check "losses-$1" 30 "${dptrain[@]}" compare "runs/$1/metrics.jsonl" "runs/$2/metrics.jsonl" --rtol "$3" --atol 1e-4
}
# The same run on both differs by the order of sums, 1e-7 at first; batch norm makes more of it each step. The same run
# twice is the same to the bit.
against_cpu() {  # name, relative tolerance of losses, arguments of train
  run "$1" 60 "${@:3}" device=cuda
  run "$1-again" 60 "${@:3}" device=cuda
  run "$1-cpu" 120 "${@:3}" device=cpu
  losses "$1" "$1-cpu" "$2"
  bits "$1-again" "$1"
}

say ''
say '## Numbers'
conformance=('kernels agree with the reference on a GPU*')
# A test that finds no GPU passes: that must not look like a GPU that passed.
check conformance 300 "${unit[@]}" "-tc=${conformance[*]}" && grep -hE 'skipped: |test cases: +0 ' logs/conformance &&
  say '- [ ] conformance: it found no GPU' && failed=$((failed + 1))
# A line for each operator, row and type; those that failed are shown.
say "  $(grep -c '^conformance: \[x\]' logs/conformance) results agree, $(grep -c '^conformance: \[ \]' logs/conformance) do not"
grep -h '^conformance: \[ \]' logs/conformance | cut -c 1-300 | sed 's/^/      /' | tee -a "$report"
against_cpu mlp 1e-3 "${mlp[@]}"
# Each kernel by itself: what graphs leave out or do in another order shows here.
run uncaptured 60 "${mlp[@]}" device=cuda graphs=false
bits uncaptured mlp
against_cpu resnet18 0.02 "${resnet[@]}" optimizer.lr=0.001
# Of the numbers that are rounded bf16 keeps 8 bits, the others 11; a mean over a batch is nearer.
for precision in tf32 bf16 fp16; do
  run "$precision" 60 "${mlp[@]}" device=cuda "precision=$precision"
  losses "$precision" mlp 0.05
done
# Attention in halves is cuDNN's.
against_cpu gpt 1e-3 "${gpt[@]}"
run gpt-bf16 60 "${gpt[@]}" device=cuda precision=bf16
losses gpt-bf16 gpt 0.05
several() {  # name, arguments of train: replicas or stages against one CPU
  run "$1" 60 "${mlp[@]}" device=cuda "${@:2}"
  losses "$1" mlp-cpu 1e-3
}
twice='devices=[cuda:0, cuda:0]'
several dp-1 parallel=dp devices=1
# In the order of samples of torch's DistributedSampler, which is another one.
run ddp-1 60 "${mlp[@]}" device=cuda parallel=ddp devices=1
run ddp-1-cpu 120 "${mlp[@]}" device=cpu parallel=ddp devices=1
losses ddp-1 ddp-1-cpu 1e-3
# Two replicas on one GPU, whose gradients the CPUs sum; one computes the loss of both, or each its own.
several dp-shared parallel=dp "$twice"
several dp-distributed 'parallel={dp: {loss: distributed}}' "$twice"
run ddp-shared 60 "${mlp[@]}" device=cuda 'parallel={ddp: {backend: gloo}}' "$twice"
run ddp-shared-cpu 120 "${mlp[@]}" device=cpu parallel=ddp devices=2
losses ddp-shared ddp-shared-cpu 1e-3
# Two stages on one GPU: threads, processes, and layers that the spec places.
several pipeline 'parallel={pipeline: {stages: 2, chunks: 2}}' "$twice"
several pipeline-processes 'parallel={pipeline: {stages: 2, chunks: 2, processes: true}}' "$twice"
run placed 60 "${placed[@]}" device=cuda "$twice"
run placed-cpu 120 "${placed[@]}" device=cpu
losses placed placed-cpu 1e-3
if [ "$gpus" -gt 1 ]; then
  several dp-2 parallel=dp devices=2
  run ddp-2 60 "${mlp[@]}" device=cuda parallel=ddp devices=2
  run ddp-2-host 60 "${mlp[@]}" device=cuda 'parallel={ddp: {backend: gloo}}' devices=2
  losses ddp-2 ddp-2-host 1e-3
  run ddp-2-again 60 "${mlp[@]}" device=cuda parallel=ddp devices=2
  bits ddp-2-again ddp-2
else
  skip 'sums by NCCL' 'there is one GPU'
fi

say ''
say '## Times'
times() {  # name, arguments of bench
  local rounds=(--rounds 3)
  if $tiny; then rounds=(--rounds 1 --seconds 0.01); fi
  check "bench-$1" 60 "${dptrain[@]}" bench "${@:2}" device=cuda --modes single "${rounds[@]}" "out=$out/runs/bench-$1" ||
    return
  rows+=("$(bench_row "dptrain $1" "runs/bench-$1/bench.csv")")
}
rows=()
times mlp-fp32 "${mlp[@]}" data.batch_size=100
times mlp-fp32-no-graphs "${mlp[@]}" data.batch_size=100 graphs=false
times resnet50-tf32 "${resnet50[@]}" precision=tf32
times resnet50-fp16 "${resnet50[@]}" precision=fp16
if timeout -k 5 60 python3 -c 'import torch; assert torch.cuda.is_available()' >logs/has-torch 2>&1; then
  check torch 200 python3 "$here/torch_gpu.py"
  mapfile -t theirs < <(grep ' us a step \| failed: ' logs/torch)
  rows+=("${theirs[@]}")
else
  skip 'times of PyTorch' "python3 has no torch that sees a GPU: $(tail -n 1 logs/has-torch)"
fi
{
  grep -hs '^machine: ' logs/bench-* | sort -u
  printf '%s\n' "${rows[@]}"
} >logs/times
show logs/times
say 'Goals on an H200: mlp-fp32 50 us a step (600 steps: 30 ms); resnet50-tf32 3200 samples/s, resnet50-fp16 5000; no row'
say 'slower than the best form of PyTorch.'

# Last, since they take as long as there is.
say ''
say '## Not as planned'
grep -hs 'not as planned: ' logs/* | sort | uniq -c | cut -c 1-300 >not-as-planned
if [ -s not-as-planned ]; then
  tee -a "$report" <not-as-planned
else
  say 'Every operation ran as planned.'
fi

say ''
say '## Memory and races'
sanitizer=$(find_sanitizer)
short=("${mlp[@]}" device=cuda steps=5 evaluate=true)
if [ -n "$sanitizer" ]; then
  for tool in memcheck racecheck; do
    # An error of the program that it watches is its own exit code.
    sanitize=("$sanitizer" --tool "$tool" --error-exitcode 99)
    check "$tool-train" 60 "${ours[@]}" "${sanitize[@]}" "$here/bin/dptrain" "${short[@]}" "out=$out/runs/$tool"
    DPT_CONFORMANCE_JOBS=0 check "$tool" 150 "${ours[@]}" "${sanitize[@]}" "$here/bin/unit" "-tc=${conformance[*]}"
  done
else
  skip 'memcheck, racecheck' 'compute-sanitizer is not there (PyPI: nvidia-cuda-sanitizer-api)'
fi

say ''
say "$passed passed, $failed failed, $left_out left out for lack of time; $SECONDS s"
[ $((failed + left_out)) -eq 0 ] && [ "$passed" -gt 0 ]
finish $?
