#!/usr/bin/env bash
# Everything that only a GPU can show, in one command and under ten minutes, from the bundle of tools/gpu/bundle.sh:
# the kernels on the device against the CPU's plain loops, memory and races by compute-sanitizer, loss curves against the
# CPU, the same bits twice, modes, then times beside PyTorch's. Writes report.md and a log of each check beside it.
# Exit code 0: all passed; 1: something failed; 77: there is no GPU, and nothing was shown.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1
case ${1:-} in
  '') out=$here/report ;;
  -*) printf 'Usage: check.sh [FOLDER of the report]\n'; exit 2 ;;
  *) out=$1 ;;
esac
mkdir -p "$out/logs" || exit 1
out=$(cd "$out" && pwd)
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
dptrain=$here/bin/dptrain unit=$here/bin/unit
report=$out/report.md
cd "$out" || exit 1

say() { printf '%s\n' "$*" | tee -a "$report"; }
: >"$report"
say "# dptrain on a GPU, $(date -u +%Y-%m-%d), commit $(cat "$here/commit" 2>/dev/null || echo unknown)"
say ''
say '```'
"$dptrain" doctor | tee -a "$report"
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.limit --format=csv 2>&1 | tee -a "$report"
say '```'
if ! "$dptrain" doctor | grep -q '^\[x\] cuda:0'; then
  say 'There is no GPU that dptrain can use: nothing was checked.'
  exit 77
fi

passed=0 failed=0
# check NAME SECONDS COMMAND...: its output goes to logs/NAME.
check() {
  local name=$1 limit=$2 start=$SECONDS status
  shift 2
  timeout "$limit" "$@" >"logs/$name" 2>&1
  status=$?
  case $status in
    0) passed=$((passed + 1)); say "- [x] $name ($((SECONDS - start)) s)" ;;
    124) failed=$((failed + 1)); say "- [ ] $name: not done after $limit s, see logs/$name" ;;
    *) failed=$((failed + 1)); say "- [ ] $name: exit code $status: $(tail -n 1 "logs/$name")" ;;
  esac
  return $status
}
skip() { say "- skipped: $1: $2"; }

# Fashion-MNIST's sizes, from a formula: no data has to be there.
mlp=("$here/configs/fmnist_single.yaml" 'data.dataset={synthetic_images: {samples: 12000, classes: 10, shape: [1, 28, 28]}}'
  optimizer.lr=0.001 'reproducible={shards: 1}' cores=1 log.every=1 epochs=1)
resnet=("$here/configs/large/resnet18.yaml" cores=1 log.every=1 steps=10)

# The same run on both: equal up to the order of sums.
curves() {  # name, arguments of train
  local name=$1
  shift
  check "train-cpu-$name" 120 "$dptrain" "$@" device=cpu "out=$out/cpu-$name" &&
    check "train-gpu-$name" 60 "$dptrain" "$@" device=cuda "out=$out/gpu-$name" &&
    check "losses-$name" 10 "$dptrain" compare "$out/gpu-$name" "$out/cpu-$name" --rtol 1e-3 --atol 1e-4
}
same_bits() {
  check "train-again-$1" 60 "$dptrain" "${@:2}" device=cuda "out=$out/again-$1" &&
    check "same-bits-$1" 10 "$dptrain" compare "$out/again-$1" "$out/gpu-$1" --rtol 0 --atol 0
}

say ''
say '## Numbers'
# A test that finds no GPU passes: that must not look like a GPU that passed.
conformance() { "$unit" -tc='*on a GPU*' && ! grep -q 'skipped: ' logs/conformance; }
export -f conformance
export unit
check conformance 120 bash -c conformance
if sanitizer=$(command -v compute-sanitizer); then
  for tool in memcheck racecheck; do
    check "$tool" 120 "$sanitizer" --tool "$tool" --error-exitcode 1 "$unit" -tc='*on a GPU*'
  done
else
  skip 'memcheck, racecheck' 'compute-sanitizer is not on the PATH (PyPI: nvidia-cuda-sanitizer-api)'
fi
curves mlp "${mlp[@]}" && same_bits mlp "${mlp[@]}"
# Each kernel by itself: what graphs leave out or do in another order shows here.
check train-uncaptured 60 "$dptrain" "${mlp[@]}" device=cuda graphs=false "out=$out/uncaptured" &&
  check same-bits-uncaptured 10 "$dptrain" compare "$out/uncaptured" "$out/gpu-mlp" --rtol 0 --atol 0
curves resnet18 "${resnet[@]}" && same_bits resnet18 "${resnet[@]}"
for precision in tf32 bf16 fp16; do
  check "precision-$precision" 60 "$dptrain" "${mlp[@]}" device=cuda "precision=$precision" "out=$out/$precision"
done
for mode in dp ddp; do
  check "mode-$mode" 60 "$dptrain" "${mlp[@]}" device=cuda "parallel=$mode" devices=1 "out=$out/$mode" &&
    check "losses-$mode" 10 "$dptrain" compare "$out/$mode" "$out/gpu-mlp" --rtol 1e-3 --atol 1e-4
done

say ''
say '## Times'
times() {  # name, arguments of bench
  check "bench-$1" 60 "$dptrain" bench "${@:2}" device=cuda --modes single --rounds 3 "out=$out/bench-$1" || return
  { printf '```\n'; cat "logs/bench-$1"; printf '```\n'; } | tee -a "$report"
}
times mlp "${mlp[@]}" data.batch_size=100
times resnet50 "$here/configs/large/resnet50.yaml" data.batch_size=128 precision=tf32
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  check torch 180 python3 "$here/torch_gpu.py"
  { printf '```\n'; cat logs/torch; printf '```\n'; } | tee -a "$report"
else
  skip 'times of PyTorch' 'python3 has no torch that sees a GPU'
fi

say ''
say "$passed passed, $failed failed"
printf 'The report is %s\n' "$report"
[ "$failed" -eq 0 ]
