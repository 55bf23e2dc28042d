#!/usr/bin/env bash
# From a fresh checkout to a trained net: installs what is missing, builds, finds or downloads Fashion-MNIST (or
# generates images of the same format), trains configs/fmnist_ddp.yaml, and draws its loss.
set -u

usage() {
  cat <<'TEXT'
Usage: tools/first_run.sh [--dry-run] [--no-sudo] [--synthetic]
  --dry-run    print what would be done without doing it
  --no-sudo    passed on to tools/setup.sh: never call sudo
  --synthetic  train on synthetic images without looking for data
TEXT
}

dry_run=false synthetic=false setup=(--yes)
for word in "$@"; do
  case $word in
    --dry-run) dry_run=true setup+=(--dry-run) ;;
    --no-sudo) setup+=(--no-sudo) ;;
    --synthetic) synthetic=true ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'first_run.sh: unknown option %s\n' "$word" >&2; usage >&2; exit 2 ;;
  esac
done

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
cd "$here" || exit 1
build=build dptrain=build/src/dptrain spec=configs/fmnist_ddp.yaml results=runs/fmnist_ddp/latest
download_s=20

step() { printf '\n== %s ==\n' "$*"; }
fail() {  # what happened, what to do
  printf 'first_run.sh: error: %s\n  %s\n' "$1" "$2" >&2
  exit 1
}
run() {  # shows a command; runs it unless --dry-run
  printf '+ %s\n' "$*"
  $dry_run || "$@"
}

# Does the spec find its data? Asks the program, so that both look in the same folders.
has_data() { "$dptrain" check "$spec" >"$answer" 2>&1; }

# The last lines of an error message, indented.
quote() { tail -n 12 "$answer" | sed 's/^/  | /'; }

# The loss of each epoch in FILE (metrics.jsonl) as a chart of ten rows.
draw() {
  awk '
    /"epoch": *[0-9]/ && !/"step":/ && match($0, /"loss": *[-0-9.e+]+/) {
      y = substr($0, RSTART, RLENGTH); sub(/.*: */, "", y)
      loss[++n] = y + 0
    }
    END {
      if (n == 0) exit 1
      low = high = loss[1]
      for (i = 2; i <= n; i++) { if (loss[i] < low) low = loss[i]; if (loss[i] > high) high = loss[i] }
      rows = 10; span = high - low; if (span <= 0) span = 1
      every = int((n + 19) / 20)          # at most twenty columns
      for (r = rows - 1; r >= 0; r--) {
        label = ""
        if (r == rows - 1) label = sprintf("%.4f", high)
        if (r == 0) label = sprintf("%.4f", low)
        line = sprintf("  %9s |", label)
        for (i = 1; i <= n; i += every)
          line = line "  " (int((loss[i] - low) / span * (rows - 1) + 0.5) == r ? "*" : " ") " "
        print line
      }
      line = "       loss +"; numbers = "     epoch   "
      for (i = 1; i <= n; i += every) { line = line "----"; numbers = numbers sprintf("%3d ", i) }
      print line; print numbers
      printf "\n  from %.4f to %.4f in %d epoch%s\n", loss[1], loss[n], n, n == 1 ? "" : "s"
    }' "$1"
}

answer=$(mktemp) || fail "mktemp can't make a file" "is \${TMPDIR:-/tmp} full or not writable?"
trap 'rm -f "$answer"' EXIT

step 'Packages'
tools/setup.sh "${setup[@]}" || fail 'tools/setup.sh failed, see above' 'fix the reported problem, then run this again'

step 'Build'
if ! [ -e $build/build.ninja ]; then
  run meson setup $build --buildtype=release ||
    fail "meson could not set up $here/$build, see above" \
      "see $build/meson-logs/meson-log.txt; fix the error, remove $build, then run this again"
fi
run ninja -C $build ||
  fail "the build in $here/$build failed, see the first error above" \
    "after a pull, 'rm -r $build' and another run often help; otherwise please open an issue"

overrides=()
step 'Data'
if $dry_run; then
  printf '+ %s check %s   # does it find Fashion-MNIST?\n' $dptrain $spec
  printf '+ timeout %s tools/fetch_data.sh fashion_mnist   # if not\n' $download_s
  printf 'Else: data.dataset=synthetic_images\n'
elif $synthetic; then
  printf 'Synthetic images of ten classes, as requested: data.dataset=synthetic_images\n'
  overrides=(data.dataset=synthetic_images)
elif has_data; then
  printf 'Found Fashion-MNIST.\n'
else
  code=$?
  # 4: the data; anything else is wrong with the spec or the program, and no download fixes it.
  [ $code -eq 4 ] || { quote >&2; fail "'$dptrain check $spec' failed with exit code $code, see above" \
    "did $spec change? 'git checkout $spec' brings it back"; }
  quote
  printf 'Downloading it, for at most %s s.\n' $download_s
  if timeout $download_s tools/fetch_data.sh fashion_mnist </dev/null && has_data; then
    printf 'Found Fashion-MNIST.\n'
  else
    printf 'No Fashion-MNIST: training on synthetic images of the same format (28x28, ten classes).\n'
    printf 'With a network, tools/fetch_data.sh fashion_mnist gets the real ones.\n'
    overrides=(data.dataset=synthetic_images)
  fi
fi

step 'Training'
run "$dptrain" "$spec" "${overrides[@]}"
code=$?
[ $code -eq 0 ] || fail "training ended with exit code $code, see above" \
  "'$dptrain doctor' reports what this machine offers; '$dptrain check $spec' checks the spec alone"

step 'Loss'
if $dry_run; then
  printf 'The loss of each epoch, from %s/metrics.jsonl.\n' $results
else
  draw "$results/metrics.jsonl" ||
    fail "$results/metrics.jsonl holds no epoch" "run '$dptrain $spec' again and read its output"
fi
tail=${overrides[*]:+ ${overrides[*]}}
cat <<TEXT

Try next:
  $dptrain $spec epochs=3 optimizer.lr=0.003$tail     # any key of the spec can be set here
  $dptrain plan $spec$tail     # what each worker does in one step: nothing is run
  tools/test.sh     # every test
TEXT
