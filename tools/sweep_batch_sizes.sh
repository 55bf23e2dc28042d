#!/usr/bin/env bash
# Trains a spec once for each batch size, then prints a table of loss, accuracy and samples per second.
set -u

usage() {
  cat <<'TEXT'
Usage: tools/sweep_batch_sizes.sh [--force] [--dptrain PATH] SPEC SIZE... [-- key=value ...]
  tools/sweep_batch_sizes.sh configs/fmnist_single.yaml 32 64 128 256 -- epochs=3

Trains SPEC once for each batch size, one run after the other, into sweeps/NAME/batch-SIZE (NAME: the
file's name without .yaml). A size sets data.batch_size_per_replica where SPEC has that key, else
data.batch_size. Then prints a table of all runs in sweeps/NAME and writes sweep.csv and sweep.svg there.

  --force         train every size anew; without it, a finished run is kept, a stopped one continues from its
                  newest checkpoint, and a sweep whose SPEC or key=value changed is refused
  --dptrain PATH  the program; default: build/src/dptrain of this checkout, else dptrain of PATH
  key=value       passed on to every run

A run that fails is reported, and the others are trained all the same. Ctrl-C saves the run in progress;
the same command continues the sweep.
Exit codes: 0 done, 1 a run failed, 2 wrong command line, 75 SIGUSR1, 130 Ctrl-C, 143 SIGTERM.
TEXT
}

say() { printf 'sweep_batch_sizes.sh: %s\n' "$*" >&2; }
wrong() {
  say "$*; see --help"
  exit 2
}

force=false dptrain='' words=() overrides=()
while [ $# -gt 0 ]; do
  case $1 in
    --force) force=true ;;
    --dptrain)
      [ $# -gt 1 ] || wrong '--dptrain needs a path'
      dptrain=$2
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    --)
      shift
      overrides=("$@")
      break
      ;;
    -*) wrong "unknown option $1" ;;
    *) words+=("$1") ;;
  esac
  shift
done
[ ${#words[@]} -gt 1 ] || wrong 'give a spec and at least one batch size'
spec=${words[0]} sizes=("${words[@]:1}")
[ -r "$spec" ] || wrong "the spec $spec cannot be read"
for size in "${sizes[@]}"; do
  case $size in
    '' | *[!0-9]* | 0*) wrong "the batch size '$size' is not a whole number above 0" ;;
  esac
done
for word in ${overrides[@]+"${overrides[@]}"}; do
  case $word in
    out=* | data.batch_size=* | data.batch_size_per_replica=*) wrong "$word: the sweep sets this key" ;;
    *=*) ;;
    *) wrong "'$word' after -- is not key=value" ;;
  esac
done

if [ -z "$dptrain" ]; then
  dptrain=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/src/dptrain
  [ -x "$dptrain" ] || dptrain=dptrain
fi
command -v "$dptrain" >/dev/null || wrong "$dptrain is not a program; build it, or give --dptrain PATH"

key=data.batch_size
if grep -Eq '^[^#]*\bbatch_size_per_replica[[:space:]]*:' "$spec"; then key=data.batch_size_per_replica; fi
name=${spec##*/}
folder=sweeps/${name%.y*ml}
mkdir -p "$folder" || exit 1

# Runs of other settings would stand in the table under these.
settings=$(cat "$spec" && printf 'argument %s\n' ${overrides[@]+"${overrides[@]}"})
if ! $force && [ -e "$folder/settings" ] && [ "$settings" != "$(cat "$folder/settings")" ]; then
  say "$folder holds a sweep with other settings; what changed (< before, > now):"
  diff "$folder/settings" <(printf '%s\n' "$settings") | grep '^[<>]' >&2
  say "rename $folder to keep it, or use --force to train anew"
  exit 2
fi
printf '%s\n' "$settings" >"$folder/settings" || exit 1

# A signal from the terminal reaches the run in progress too, which saves its weights and ends.
stopped=0 child=''
trap 'stopped=130' INT
trap 'stopped=143; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM

# Waits for the run through signals, so that it can save its weights.
train() {
  "$dptrain" "$@" >&2 &
  child=$!
  local code=0
  while true; do
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break
  done
  child=''
  return "$code"
}

failed=()
for size in "${sizes[@]}"; do
  out=$folder/batch-$size
  resume=(--resume auto)
  if $force; then resume=(); fi
  say "$key=$size -> $out"
  train "$spec" "$key=$size" ${overrides[@]+"${overrides[@]}"} "out=$out" ${resume[@]+"${resume[@]}"}
  code=$?
  case $code in 75 | 130 | 143) stopped=$code ;; esac
  if [ "$stopped" -ne 0 ]; then break; fi
  if [ "$code" -ne 0 ]; then
    say "batch size $size failed with exit code $code; the sweep continues without it"
    failed+=("$size")
  fi
done

if [ "$stopped" -ne 0 ]; then say 'stopped; the same command continues the sweep'; fi
result=0
if ! "$dptrain" runs "$folder" --sort "$key" --csv >"$folder/sweep.csv"; then
  rm -f "$folder/sweep.csv"
  result=1
else
  "$dptrain" runs "$folder" --sort "$key"
  if "$dptrain" runs "$folder" --sort "$key" --svg "$folder/sweep.svg" --x "$key" >/dev/null; then
    say "table: $folder/sweep.csv, picture: $folder/sweep.svg"
  fi
fi
if [ ${#failed[@]} -gt 0 ]; then
  say "failed: ${failed[*]}"
  result=1
fi
if [ "$stopped" -ne 0 ]; then exit "$stopped"; fi
exit $result
