#!/usr/bin/env bash
# Trains a spec once for each batch size: a short form of `dptrain sweep`.
set -eu

usage() {
  cat <<'TEXT'
Usage: tools/sweep_batch_sizes.sh [--force] [--dptrain PATH] SPEC SIZE SIZE... [-- key=value ...]
  tools/sweep_batch_sizes.sh configs/fmnist_single.yaml 32 64 128 256 -- epochs=3

The same as `dptrain sweep SPEC data.batch_size=32,64,128,256 epochs=3`, which can do more: see dptrain sweep --help.
A size sets data.batch_size_per_replica if SPEC has that key, otherwise data.batch_size.

  --force         start a new sweep; without it, the same command continues one that was stopped
  --dptrain PATH  the program; default: build/src/dptrain of this checkout, otherwise dptrain on the PATH
TEXT
}

wrong() {
  printf 'sweep_batch_sizes.sh: %s; see --help\n' "$*" >&2
  exit 2
}

dptrain='' words=() more=()
while [ $# -gt 0 ]; do
  case $1 in
    --force) more+=(--new) ;;
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
      more+=("$@")
      break
      ;;
    -*) wrong "unknown option $1" ;;
    *) words+=("$1") ;;
  esac
  shift
done
[ ${#words[@]} -gt 2 ] || wrong 'give a spec and at least two batch sizes'
spec=${words[0]} sizes=("${words[@]:1}")
[ -r "$spec" ] || wrong "the spec $spec cannot be read"
if [ -z "$dptrain" ]; then
  dptrain=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/src/dptrain
  [ -x "$dptrain" ] || dptrain=dptrain
fi
key=data.batch_size
if grep -Eq '^[^#]*\bbatch_size_per_replica[[:space:]]*:' "$spec"; then key=data.batch_size_per_replica; fi
exec "$dptrain" sweep "$spec" "$key=$(IFS=,; printf '%s' "${sizes[*]}")" ${more[@]+"${more[@]}"}
