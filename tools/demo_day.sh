#!/usr/bin/env bash
# A user's day on real data, from a first spec to a report: every part checks its own results.
set -u

usage() {
  cat <<'TEXT'
Usage: tools/demo_day.sh [--dry-run] [--quick] [--out DIR] [--dptrain PATH]
  --dry-run       print the commands, run nothing
  --quick         small parts of the data and few epochs; numbers are not checked
  --out DIR       where specs, runs and pages go; must be new or empty; default: a new folder in /tmp
  --dptrain PATH  the program; default: build/src/dptrain of this checkout, else dptrain of PATH

Needs Fashion-MNIST and Tiny Shakespeare in DPTRAIN_DATA, by default datasets/ of this checkout;
tools/fetch_data.sh loads what is missing. Takes about a minute on two cores.
Ends with exit code 0 if every check held, else 1.
DPTRAIN_PYTHON: a Python with the package tensorboard, to read the event files; default: python3.
TEXT
}

wrong() {
  printf 'demo_day.sh: %s; see --help\n' "$*" >&2
  exit 2
}

dry_run=false quick=false out='' dptrain=''
while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) dry_run=true ;;
    --quick) quick=true ;;
    --out | --dptrain)
      [ $# -gt 1 ] || wrong "$1 needs a value"
      if [ "$1" = --out ]; then out=$2; else dptrain=$2; fi
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
python=${DPTRAIN_PYTHON:-python3}
if [ -z "$dptrain" ]; then
  dptrain=$here/build/src/dptrain
  [ -x "$dptrain" ] || dptrain=$(command -v dptrain) || dptrain=
  if $dry_run; then dptrain=dptrain; fi
  [ -n "$dptrain" ] || wrong 'build dptrain first, or name it by --dptrain PATH'
fi
case $dptrain in */*) dptrain=$(cd "$(dirname "$dptrain")" && pwd)/$(basename "$dptrain") ;; esac
$dry_run || [ -x "$dptrain" ] || wrong "$dptrain is no program"

if $quick; then
  few='data.limit=3000' epochs=3 rungs=3 lines='steps=20 epochs=null evaluate.batch_size=16 data.dataset.stride=640'
else
  few='' epochs=30 rungs=9 lines='epochs=1 evaluate.batch_size=128'
fi

fail() {
  printf 'demo_day.sh: %s: %s\n' "$part" "$*" >&2
  [ -z "$out" ] || printf 'Everything so far is in %s\n' "$out" >&2
  exit 1
}

parts=() part='' began=0
finish() {
  [ -z "$part" ] || $dry_run || parts+=("$(printf '%4d s  %s' $((SECONDS - began)) "$part")")
}
begin() {
  finish
  part=$1 began=$SECONDS
  printf '\n== %s ==\n' "$part"
}

# The command as a shell would read it.
text_of() {
  local word text=''
  for word in "${@//"$dptrain"/dptrain}"; do
    case $word in *[][{}\ \'\"]*) word="'${word//\'/\'\\\'\'}'" ;; esac
    text+=" $word"
  done
  printf '%s' "${text# }"
}
# run COMMAND...: shows it and runs it; its two outputs go to the files `printed` and `messages`.
run() {
  printf '$ %s\n' "$(text_of "$@")"
  $dry_run && return 0
  "$@" >printed 2>messages && return 0
  local code=$?
  tail -n 12 messages >&2
  fail "\`$(text_of "$@")\` ended with exit code $code"
}
show() { $dry_run || sed 's/^/  /' "$1" | tail -n "${2:-4}"; }

has_file() {
  local file
  for file in "$@"; do $dry_run || [ -s "$file" ] || fail "there is no file $file"; done
}
# says FILE PATTERN: the file has a line that matches.
says() { $dry_run || grep -Eq "$2" "$1" || fail "$1 has no line like '$2'"; }
# between LOW NUMBER HIGH WHAT
between() {
  $dry_run && return
  awk -v low="$1" -v x="$2" -v high="$3" 'BEGIN { exit !(x ~ /^[-+0-9.e]+$/ && x + 0 >= low && x + 0 <= high) }' ||
    fail "$4 is ${2:-missing}, not $1 to $3"
  printf '  %s: %s\n' "$4" "$2"
}
good() { $quick || between "$@"; }
printed() { if $dry_run; then echo 0; else tail -n 1 printed; fi; }

if ! $dry_run; then
  if [ -z "$out" ]; then out=$(mktemp -d "${TMPDIR:-/tmp}/demo_day.XXXXXX") || exit 1; fi
  mkdir -p "$out" || exit 1
  out=$(cd "$out" && pwd) || exit 1
  [ -z "$(ls -A "$out")" ] || wrong "$out is not empty"
  cd "$out" || exit 1
fi

begin 'Data and first specs'
export DPTRAIN_DATA=${DPTRAIN_DATA:-$here/datasets}
for set in fashion_mnist tiny_shakespeare; do
  if ! $dry_run && ! "$dptrain" init $set --out probe.yaml >/dev/null 2>&1; then
    run "$here/tools/fetch_data.sh" $set --to "$DPTRAIN_DATA/$set"
  fi
  rm -f probe.yaml
  run "$dptrain" init $set
  has_file $set.yaml
  run "$dptrain" check $set.yaml
  says printed "$set.yaml: ok"
done

begin 'Learning rate'
run "$dptrain" lr-find fashion_mnist.yaml --svg lr.svg
lr=$(printed)
between 0.00005 "$lr" 0.05 'suggested learning rate'
has_file lr.svg
# shellcheck disable=SC2086  # $few: no word, or one
run "$dptrain" fashion_mnist.yaml $few "optimizer.lr=$lr" epochs=1 --print test.accuracy
good 0.8 "$(printed)" 0.9 'test accuracy after an epoch with it'

# The spec of the day: a held-out tenth, four metrics, the best weights, and an end by patience.
spec='data:
  dataset: fashion_mnist
  transforms: [to_tensor]
  batch_size: 128
  validation: 0.1
evaluate: {metrics: [accuracy, top3, f1, confusion_matrix]}
save: {best: accuracy}
early_stop: {patience: 2}
minutes: 5
model: [flatten, {linear: 128}, layer_norm, relu, {linear: 10}]
loss: cross_entropy
optimizer: {adam_w: {lr: 0.003, weight_decay: 0.05}}
no_decay: [bias, norm]
ema: 0.99
epochs: 30
log: {every: 50, tensorboard: true, grad_norms: true, noise_scale: true}
reproducible: {shards: 4}'
if $dry_run; then printf 'day.yaml:\n%s\n' "$spec"; else printf '%s\n' "$spec" >day.yaml; fi

begin 'Training with validation and early stopping'
# shellcheck disable=SC2086  # $few: no word, or one
run "$dptrain" day.yaml $few epochs=$epochs
show printed 3
$quick || says messages 'Stopped early .*: no better validation loss in 2 evaluations'
has_file runs/day/1/{best.safetensors,model.safetensors,results.csv,report.html,confusion_matrix.csv,metrics.jsonl}
says runs/day/1/metrics.jsonl '"noise_scale": [0-9].*"grad_norms": [{]"1.weight": [0-9]'
run "$dptrain" eval day.yaml --weights best
good 86 "$($dry_run || sed -n 's/.*Accuracy: \([0-9.]*\) %.*/\1/p' printed)" 92 \
  'accuracy in % of the best weights on the test set'
run "$dptrain" watch --once runs/day/1
says printed 'finished'

begin 'The same bits in three modes'
for mode in single dp ddp; do
  devices=2
  if [ $mode = single ]; then devices=1; fi
  # shellcheck disable=SC2086
  run "$dptrain" day.yaml $few epochs=2 name=$mode parallel=$mode devices=$devices --print weights.sha256
  show printed 1
done

begin 'Stop after a time, and resume'
# shellcheck disable=SC2086
run "$dptrain" day.yaml $few name=stopped minutes=0.01 epochs=2000 early_stop=null log=null
says messages 'Stopped after 0.01 minutes'
run "$dptrain" runs runs/stopped
says printed 'stopped'
# shellcheck disable=SC2086
run "$dptrain" day.yaml $few name=stopped minutes=0.01 epochs=2000 early_stop=null log=null --resume auto
says messages 'resuming from runs/stopped/1/checkpoints/step-'

begin 'A batch size by measurement'
# shellcheck disable=SC2086
run "$dptrain" day.yaml $few name=auto data.batch_size=auto epochs=1 --print test.accuracy
$dry_run || grep 'auto is' messages
says runs/auto/1/spec.resolved.yaml 'batch_size: [0-9]+'

begin 'Fine-tuning with another last layer'
# shellcheck disable=SC2086
run "$dptrain" day.yaml $few name=tuned 'initial_weights={file: runs/day/1/best.safetensors, partial: true}' \
  model[4].out_features=12 "freeze=['1']" lr_scale.sqrt=64 epochs=1 'evaluate.metrics=[accuracy]' --print test.accuracy
$dry_run || grep -E '^(initial weights|learning rate|frozen)' messages
says messages '^initial weights: 4 of 6 tensors from '
says messages '^frozen: 2 of 6 tensors'

begin 'Tiny Shakespeare, watched from another shell'
if ! $dry_run; then
  {
    for _ in {1..600}; do [ -e runs/tiny_shakespeare/1/metrics.jsonl ] || sleep 0.1; done
    exec "$dptrain" watch runs/tiny_shakespeare/1
  } >watched 2>&1 &
fi
# shellcheck disable=SC2086
run "$dptrain" tiny_shakespeare.yaml $lines 'evaluate.metrics=[accuracy,perplexity]' \
  schedule=cosine_annealing log.every=10 --print test.loss,test.perplexity
printf '$ %s\n' 'dptrain watch runs/tiny_shakespeare/1     # meanwhile'
$dry_run || wait
says watched '^epoch 1/1, step .*loss'
says watched '^runs/tiny_shakespeare/1: finished'
show watched 2
good 1.8 "$(printed | cut -d ' ' -f 1)" 2.5 'test loss after an epoch'
good 6 "$(printed | cut -d ' ' -f 2)" 12 'test perplexity'

begin 'Sweep of batch sizes and learning rates'
# shellcheck disable=SC2086
run "$dptrain" sweep day.yaml $few data.batch_size=64,128,256 optimizer.lr=1e-3..1e-1:log:3 epochs=2 \
  --seeds 2 --jobs auto
show printed 10
has_file sweeps/day/1/sweep.{html,csv,json}
$dry_run || [ "$(grep -c ',finished,' sweeps/day/1/sweep.csv)" = 18 ] || fail 'not all of 18 runs finished'
# shellcheck disable=SC2086
run "$dptrain" sweep day.yaml $few optimizer.lr=1e-3..1e-1:log:9 epochs=$rungs --halving name=halving
says printed 'dropped'
# shellcheck disable=SC2086
$quick || run "$dptrain" sweep day.yaml optimizer.lr=0.001,0.003 epochs=9 --until validation.accuracy=0.86 name=until
$quick || says messages 'reached validation.accuracy'

begin 'Speed-up of dp and ddp'
# shellcheck disable=SC2086
run "$dptrain" sweep day.yaml $few parallel=single,dp,ddp devices=1,2 data.batch_size=512 epochs=2 \
  reproducible=null log=null --jobs 1 cores=1 name=modes
show printed 6
says sweeps/modes/1/sweep.html 'ideal 2x'

begin 'Numbers for shell loops'
for batch in 64 256; do
  # shellcheck disable=SC2086
  run "$dptrain" day.yaml $few data.batch_size=$batch epochs=1 name=loop --print test.accuracy
  good 0.7 "$(printed)" 0.9 "test accuracy after one epoch with batch $batch"
done
run "$dptrain" runs runs/loop
show printed 3

begin 'Report of several runs'
run "$dptrain" report runs/day/1 runs/single/1 runs/dp/1 runs/ddp/1 --out several.html --svg several.svg
says printed 'runs/single/1, runs/dp/1, runs/ddp/1 .the same bits.'
has_file several.html several.svg
$dry_run || ! grep -lE '<script|(src|href)="(https?:|/)' several.html sweeps/*/1/sweep.html runs/*/*/report.html ||
  fail 'a page needs scripts or other files'

begin 'TensorBoard'
if $dry_run || "$python" -c 'import tensorboard' 2>/dev/null; then
  $dry_run || printf '%s' '"""The tags of the event files in a run directory, read as TensorBoard reads them."""
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
seen = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
seen.Reload()
tags = set(seen.Tags()["scalars"])
missing = {"loss", "step.loss", "validation.loss", "validation.accuracy", "lr", "noise_scale"} - tags
if missing:
    sys.exit(f"no tags {sorted(missing)}")
print(len(tags), "tags,", len(seen.Scalars("step.loss")), "losses of steps")
' >read_events.py
  run "$python" read_events.py runs/day/1
  show printed 1
else
  printf "  skipped: %s has no package tensorboard\n" "$python"
fi

finish
$dry_run && exit 0
printf '\nEverything held.\n'
printf '%s\n' "${parts[@]}"
printf '%4d s  in all\n' "$SECONDS"
printf 'Look at %s/runs/day/1/report.html, several.html, and sweeps/day/1/sweep.html.\n' "$out"
