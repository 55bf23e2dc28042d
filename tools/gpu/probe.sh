#!/usr/bin/env bash
# Tests what runs on a machine with a GPU, and how fast, one phase at a time; see usage below.
set -u

usage() {
  cat <<'TEXT'
Usage: probe.sh [--seconds N] [--tiny] PHASE [FOLDER]
  probe.sh A report-A

Unpack the bundle of tools/gpu/bundle.sh anywhere on a machine with a GPU and run the phases in turn:

  A  the machine, captures and replays, every operator by itself, five steps of an MLP
  B  an MLP, ResNet-18 in four precisions and a GPT against the losses of CPUs; how fast ResNet-50 starts;
     speed of the MLP and of ResNet-50
  C  the time of every kernel of a step, launch gap, memory bandwidth, algorithms
  D  the same training in PyTorch: eager, in a CUDA graph, compiled; dptrain and PyTorch take turns
  E  compute-sanitizer, dp, ddp and pipelines with several replicas on one GPU, NCCL with one rank

A phase takes at most N seconds (540). Each probe is a separate process with a time limit; its result is
written before the next one begins, and a probe that fails or hangs does not stop the others.
FOLDER (default: report-PHASE) gets at most five files:

  report.md     a line for each probe, with what it found
  logs.txt      the first and last lines that each probe printed
  plans.txt     which algorithm each operation got (DPTRAIN_LOG_PLANS)
  files.tar.gz  complete logs, losses and benchmark tables
  state         the probe that is running; `done` at the end

  --seconds N   probes that do not fit into N seconds are left out and listed in the report
  --tiny        small sizes: shows that everything runs; times are meaningless

Exit codes: 0 every probe passed, 1 one failed or was left out, 2 wrong command line or no bundle,
77 no GPU that dptrain can use was found.
TEXT
}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 2
tiny=false seconds=540 words=()
wrong() {
  printf 'probe.sh: %s; see --help\n' "$*" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    --tiny) tiny=true ;;
    --seconds)
      [ $# -gt 1 ] || wrong '--seconds needs a number'
      seconds=$2
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    -*) wrong "unknown option $1" ;;
    *) words+=("$1") ;;
  esac
  shift
done
phase=${words[0]:-}
case $phase in [A-E]) ;; *) wrong 'name a phase: A, B, C, D or E' ;; esac
case $seconds in '' | *[!0-9]*) wrong "--seconds $seconds is not a number" ;; esac
out=${words[1]:-report-$phase}
# shellcheck source=tools/gpu/common.sh
. "$here/common.sh" || exit 2
find_programs probe.sh
set_models

# Whole logs and runs lie here until the end, since a folder that is carried back may hold few files.
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/logs" "$work/runs" "$work/plans" && out=$(cd "$out" && pwd) && cd "$work" || exit 2
rm -f "$out/report.md" "$out/logs.txt" "$out/plans.txt" "$out/files.tar.gz" "$out/state"
report=$out/report.md
: >"$report" || exit 2
# Plans of the phase itself: of other ones the machine may have any.
export TORCHINDUCTOR_CACHE_DIR=$work/inductor DPTRAIN_PLAN_CACHE=$work/plan-cache

say() { printf '%s\n' "$*" | tee -a "$report"; }
passed=0 failed=0 left_out=0

# probe NAME SECONDS COMMAND...: its output goes to logs/NAME. Gives whether it passed.
probe() {
  local name=$1 limit=$2 left=$((seconds - SECONDS)) start=$SECONDS status
  shift 2
  if [ "$left" -lt 2 ]; then
    left_out=$((left_out + 1))
    say "- [ ] $name: left out, the limit of $seconds s was reached"
    return 1
  fi
  [ "$limit" -le "$left" ] || limit=$left
  printf '%s\n' "$name" >"$out/state"
  DPTRAIN_LOG_PLANS=$work/plans/$name timeout -k 5 "$limit" "$@" >"logs/$name" 2>&1 </dev/null &
  local child=$! waited=0
  # A process within a call of the driver may survive SIGKILL, and then so does its timeout.
  while kill -0 "$child" 2>/dev/null && [ "$waited" -lt $((10 * (limit + 15))) ]; do
    sleep 0.1
    waited=$((waited + 1))
  done
  if kill -0 "$child" 2>/dev/null; then
    status=137
    disown "$child"
  else
    wait "$child"
    status=$?
  fi
  # Tests that find no GPU, or that are not there, pass: that must not look like a GPU that passed.
  if [ $status -eq 0 ] && grep -qE 'skipped: |test cases: +0 ' "logs/$name"; then status=77; fi
  local took=$((SECONDS - start)) planned
  planned=$(grep -c 'not as planned: ' "logs/$name")
  if [ $status -eq 0 ]; then
    passed=$((passed + 1))
    say "- [x] $name ($took s)"
  else
    failed=$((failed + 1))
    case $status in
      124 | 137) say "- [ ] $name: not done after $limit s; its log ends with" ;;
      *) say "- [ ] $name: exit code $status after $took s; its log ends with" ;;
    esac
    tail -n 8 "logs/$name" | cut -c 1-300 | sed 's/^/      /' | tee -a "$report"
  fi
  if [ "$planned" -gt 0 ]; then
    say "      not as planned, $planned lines:"
    grep 'not as planned: ' "logs/$name" | sort -u | head -n 5 | cut -c 1-300 | sed 's/^/      /' | tee -a "$report"
  fi
  {
    printf '==== %s: exit code %s after %s s\n' "$name" "$status" "$took"
    if [ "$(wc -l <"logs/$name")" -le 200 ]; then
      cut -c 1-500 "logs/$name"
    else
      head -n 60 "logs/$name" | cut -c 1-500
      printf '[...]\n'
      tail -n 120 "logs/$name" | cut -c 1-500
    fi
  } >>"$out/logs.txt"
  if [ -s "plans/$name" ] && [ "$(stat -c %s "$out/plans.txt" 2>/dev/null || printf 0)" -lt 4000000 ]; then
    { printf '==== %s\n' "$name"; head -n 3000 "plans/$name"; } >>"$out/plans.txt"
  fi
  return "$status"
}
# The lines of a probe's log that have what was found, into the report.
facts() {  # name, pattern of grep -E, most lines
  [ -e "logs/$1" ] || return
  grep -hE -e "$2" "logs/$1" | head -n "${3:-40}" | cut -c 1-300 | sed 's/^probe: //; s/^/      /' | tee -a "$report"
}
skip() { say "- skipped: $1: $2"; }

ask() {  # name, seconds, the test case: of tests/backend/cuda/gpu_probes_test.cpp
  probe "$1" "$2" "${unit[@]}" "-tc=$3"
  facts "$1" '^probe: ' "${4:-40}"
}
run() {  # name, seconds, arguments of train
  probe "train-$1" "$2" "${dptrain[@]}" "${@:3}" "out=$work/runs/$1"
}
bits() {  # two names: losses and weights
  probe "bits-$1" 30 "${dptrain[@]}" compare "runs/$1" "runs/$2" --rtol 0 --atol 0
}
losses() {  # name, name of the CPU's losses in the bundle, relative tolerance
  if [ ! -e "$here/cpu/$2.jsonl" ]; then
    skip "losses-$1" "the bundle has no cpu/$2.jsonl"
    return
  fi
  probe "losses-$1" 30 "${dptrain[@]}" compare "runs/$1/metrics.jsonl" "$here/cpu/$2.jsonl" --rtol "$3" --atol 1e-4
}
times() {  # name, seconds, arguments of bench
  local rounds=(--rounds 3)
  if $tiny; then rounds=(--rounds 1 --seconds 0.01); fi
  probe "bench-$1" "$2" "${dptrain[@]}" bench "${@:3}" device=cuda --modes single "${rounds[@]}" "out=$work/runs/bench-$1" ||
    return
  say "      $(bench_row "dptrain $1" "runs/bench-$1/bench.csv")"
}
# Seconds until ResNet-50 has made two steps: with one thread that makes plans, with many, and with the plans of the
# run before. All three end in the same bits.
starts() {
  local name begin threads
  for name in one-thread threads cache; do
    threads=
    if [ $name = one-thread ]; then threads=1; fi
    if [ $name = threads ]; then rm -rf "$work/plans-of-starts"; fi
    begin=${EPOCHREALTIME/[^0-9]/}
    DPTRAIN_PLAN_THREADS=$threads DPTRAIN_PLAN_CACHE=$work/plans-of-starts \
      run "start-$name" 60 "${resnet50[@]}" "precision={fp16: {init_scale: 128}}" log.every=1 device=cuda steps=2 evaluate=false ||
      continue
    awk -v name=$name -v us=$((${EPOCHREALTIME/[^0-9]/} - begin)) -F '\t' '/^plan/ { ++plans; ms += $6 }
      / from cache$/ { ++cached } END { printf "start with %s: %.2f s; %d plans, %d of them from the cache, %.2f s of threads\n",
      name, us / 1e6, plans, cached, ms / 1e3 }' "plans/train-start-$name" | sed 's/^/      /' | tee -a "$report"
  done
  bits start-threads start-one-thread
  bits start-cache start-threads
}
conformance() {  # name, seconds, operators
  DPT_OPERATORS=$3 probe "operators-$1" "$2" "${unit[@]}" '-tc=kernels agree with the reference on a GPU*'
  [ -e "logs/operators-$1" ] || return
  say "      $(grep -c '^conformance: \[x\]' "logs/operators-$1") results agree, $(grep -c '^conformance: \[ \]' "logs/operators-$1") do not"
  facts "operators-$1" '^conformance: \[ \]' 60
  facts "operators-$1" '^conformance: \[x\] .* (cudnn|cublaslt) ' 60
}
# The slowest plans and what libraries refused, of all probes so far.
plans() {
  cat plans/* 2>/dev/null | grep '^plan' >all-plans || return
  say "      $(wc -l <all-plans) plans, $(awk -F'\t' '{ sum += $6 } END { printf "%.1f", sum / 1000 }' all-plans) s; the slowest:"
  sort -t "$(printf '\t')" -k 6 -gr all-plans | cut -f 3-6 | head -n 8 | sed 's/^/      /' | tee -a "$report"
  say "      refused: $(grep -c 'refused: ' all-plans)"
  grep 'refused: ' all-plans | cut -f 3-4 | sort -u | head -n 20 | cut -c 1-300 | sed 's/^/      /' | tee -a "$report"
}

say "# Phase $phase of dptrain on a GPU, $(date -u '+%Y-%m-%d %H:%M'), commit $(cat "$here/commit" 2>/dev/null || echo unknown)"
if $tiny; then say 'Small sizes: this only shows that everything runs; times are meaningless.'; fi
probe doctor 120 "${dptrain[@]}" doctor
facts doctor '^\[' 30
gpus=$(grep -c '^\[x\] cuda:[0-9]' logs/doctor)
if [ "$gpus" -eq 0 ]; then
  say 'No GPU that dptrain can use was found: nothing was tested.'
  printf 'done\n' >"$out/state"
  exit 77
fi

products=linear,linear_relu,linear_relu_mask,matmul,matmul_relu_gradient,linear_weight_gradient,linear_weight_bias_gradient
convolutions=convolution,convolution_relu,convolution_transpose,convolution_weight_gradient
norms=batch_norm,batch_norm_backward,layer_norm,layer_norm_backward,group_norm,group_norm_backward
pools=max_pool_bytes,max_pool_bytes_gradient,avg_pool,avg_pool_gradient,adaptive_avg_pool,adaptive_avg_pool_gradient
attention=attention,attention_gradient

phase_a() {
  # shellcheck disable=SC2016  # expanded by the shell that runs it
  probe machine 60 bash -c 'uname -srm; nproc; free -g | head -n 2; nvidia-smi; nvidia-smi -q -d CLOCK,POWER,ECC | head -n 80
    for tool in ncu nsys compute-sanitizer nvcc; do command -v $tool || echo "no $tool"; done
    python3 -c "import torch; print(\"torch\", torch.__version__, torch.version.cuda, torch.backends.cudnn.version())" || true'
  facts machine 'NVIDIA|^no |torch|MiB' 12
  ask capture 60 'a captured step on a GPU*'
  ask first-call-outside 60 'the first library call on a GPU is made outside*'
  ask first-call-inside 60 'the first library call on a GPU is made inside*'
  ask first-cudnn-call-inside 90 'the first call of cuDNN on a GPU*'
  conformance products 90 "$products"
  conformance attention 90 "$attention"
  conformance convolutions 120 "$convolutions"
  conformance norms 120 "$norms"
  conformance pools 90 "$pools"
  run mlp-uncaptured 60 "${mlp[@]}" device=cuda graphs=false steps=5
  run mlp-captured 60 "${mlp[@]}" device=cuda steps=5
  run mlp-again 60 "${mlp[@]}" device=cuda steps=5
  bits mlp-captured mlp-uncaptured
  bits mlp-again mlp-captured
  conformance others 150 "-$products,$convolutions,$norms,$pools,$attention"
  plans
}

phase_b() {
  run mlp 60 "${mlp120[@]}" device=cuda
  losses mlp mlp 1e-3
  run mlp-again 60 "${mlp120[@]}" device=cuda
  bits mlp-again mlp
  local precision how tolerance
  # Halves are rounded to 8 or 11 bits; their losses are means over a batch, and nearer.
  for precision in fp32 tf32 bf16 fp16; do
    # A scale at which no step overflows, since one that is skipped parts the losses.
    how=$precision tolerance=0.05
    case $precision in
      fp32) tolerance=0.02 ;;
      bf16) if $tiny; then tolerance=0.1; fi ;;
      fp16) how='{fp16: {init_scale: 128}}' ;;
    esac
    run "resnet18-$precision" 90 "${resnet[@]}" optimizer.lr=0.001 device=cuda "precision=$how"
    losses "resnet18-$precision" resnet18 "$tolerance"
  done
  run gpt 60 "${gpt[@]}" device=cuda
  losses gpt gpt 1e-3
  run gpt-bf16 60 "${gpt[@]}" device=cuda precision=bf16
  losses gpt-bf16 gpt 0.05
  starts
  times mlp-fp32 60 "${mlp120[@]}"
  times mlp-fp32-no-graphs 60 "${mlp120[@]}" graphs=false
  for precision in fp16 tf32 bf16 fp32; do
    times "resnet50-$precision" 80 "${resnet50[@]}" "precision=$precision"
  done
  plans
}

phase_c() {
  local precision
  ask launch-gap 60 'the time between two kernels on a GPU'
  ask bandwidth 60 'the memory bandwidth of a GPU'
  DPT_TIME_SPEC="${mlp120[*]}" ask kernels-mlp 90 'the time of every kernel of a step on a GPU'
  for precision in fp16 tf32; do
    DPT_TIME_SPEC="${resnet50[*]} precision=$precision" \
      ask "kernels-resnet50-$precision" 120 'the time of every kernel of a step on a GPU' 60
  done
  DPT_TIME_SPEC="${gpt[*]} precision=bf16" ask kernels-gpt-bf16 90 'the time of every kernel of a step on a GPU'
  if command -v ncu >/dev/null; then
    probe ncu-mlp 120 "${ours[@]}" ncu --csv --metrics gpu__time_duration.sum --launch-count 200 \
      "$here/bin/dptrain" "${mlp120[@]}" device=cuda graphs=false steps=3 evaluate=false "out=$work/runs/ncu"
    facts ncu-mlp '^"[0-9]+"' 40
  else
    skip ncu-mlp 'ncu is not there; the times above are those of replayed captures'
  fi
  plans
}

phase_d() {
  if ! timeout -k 5 60 python3 -c 'import torch; assert torch.cuda.is_available()' >logs/has-torch 2>&1; then
    skip torch "python3 has no torch that sees a GPU: $(tail -n 1 logs/has-torch)"
    times mlp-fp32 60 "${mlp120[@]}"
    return
  fi
  local round row form rounds=(1 2 3)
  if $tiny; then rounds=(1); fi
  # compiled-graph comes last: compiling takes longest.
  for round in "${rounds[@]}"; do
    for row in mlp-fp32 resnet50-fp16 resnet50-tf32; do
      case $row in
        mlp-fp32) times "$row-$round" 60 "${mlp120[@]}" ;;
        *) times "$row-$round" 60 "${resnet50[@]}" "precision=${row#resnet50-}" ;;
      esac
      for form in eager graph compiled compiled-graph; do
        probe "torch-$row-$form-$round" 90 python3 "$here/torch_gpu.py" --row "$row" --form "$form"
        facts "torch-$row-$form-$round" ' us a step | failed: '
      done
    done
  done
}

phase_e() {
  local twice='devices=[cuda:0, cuda:0]' four='devices=[cuda:0, cuda:0, cuda:0, cuda:0]' sanitizer tool
  ask nccl-one-rank 90 'NCCL with one rank on a GPU*'
  run dp-1 60 "${mlp120[@]}" device=cuda parallel=dp devices=1
  losses dp-1 mlp 1e-3
  run ddp-1 60 "${mlp120[@]}" device=cuda parallel=ddp devices=1
  losses ddp-1 mlp-ddp-1 1e-3
  # Replicas on one GPU, whose gradients the CPUs sum.
  run dp-shared 60 "${mlp120[@]}" device=cuda parallel=dp "$twice"
  losses dp-shared mlp 1e-3
  run ddp-shared 60 "${mlp120[@]}" device=cuda 'parallel={ddp: {backend: gloo}}' "$twice"
  losses ddp-shared mlp-ddp-2 1e-3
  run pipeline 60 "${mlp120[@]}" device=cuda 'parallel={pipeline: {stages: 2, chunks: 2}}' "$twice"
  losses pipeline mlp 1e-3
  run pipeline-processes 60 "${mlp120[@]}" device=cuda 'parallel={pipeline: {stages: 2, chunks: 2, processes: true}}' "$twice"
  losses pipeline-processes mlp 1e-3
  run pipelines 90 "${mlp120[@]}" device=cuda 'parallel={pipeline: {stages: 2, chunks: 2, data_parallel: 2, backend: gloo}}' "$four"
  losses pipelines mlp-ddp-2 1e-3
  sanitizer=$(find_sanitizer)
  if [ -z "$sanitizer" ]; then
    skip 'memcheck, racecheck, synccheck' 'compute-sanitizer is not there (PyPI: nvidia-cuda-sanitizer-api)'
    return
  fi
  for tool in memcheck racecheck synccheck; do
    # An error of the program that it watches is its own exit code.
    probe "$tool-train" 60 "${ours[@]}" "$sanitizer" --tool "$tool" --error-exitcode 99 \
      "$here/bin/dptrain" "${mlp[@]}" device=cuda steps=5 evaluate=true "out=$work/runs/$tool"
    DPT_CONFORMANCE_JOBS=0 DPT_OPERATORS=$attention,$products probe "$tool-operators" 90 "${ours[@]}" "$sanitizer" --tool "$tool" --error-exitcode 99 \
      "$here/bin/unit" '-tc=kernels agree with the reference on a GPU*'
  done
}

case $phase in
  A) phase_a ;;
  B) phase_b ;;
  C) phase_c ;;
  D) phase_d ;;
  E) phase_e ;;
esac
say ''
say "$passed passed, $failed failed, $left_out left out for lack of time; $SECONDS s"
# Weights are large, and nobody reads them.
find runs -name '*.safetensors' -delete 2>/dev/null
tar -czf "$out/files.tar.gz" logs plans runs 2>/dev/null
if [ "$(stat -c %s "$out/files.tar.gz" 2>/dev/null || printf 0)" -gt 15000000 ]; then
  tar -czf "$out/files.tar.gz" plans runs 2>/dev/null
fi
printf 'done\n' >"$out/state"
printf 'The report is %s\n' "$report"
[ $((failed + left_out)) -eq 0 ]
