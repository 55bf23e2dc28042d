#!/usr/bin/env bash
# Builds dptrain and its tests, and runs every test. The last line is 'N passed, N failed', with ', N skipped' if tests
# lacked data, libraries or hardware. Each doctest case counts as one test, and so does every other test.
set -u

usage() {
  cat <<'TEXT'
Usage: tools/test.sh [--clang] [--sanitize|--tsan] [-j N] [--no-sudo] [--dry-run] [MESON-TEST-WORD...]
       tools/test.sh --all [-j N] [--no-sudo] [ARGUMENTS of meson test]
  --clang     with clang, each file compiled alone, in build-test/clang (with gcc, in build)
  --sanitize  with AddressSanitizer and UndefinedBehaviorSanitizer, in build-test/
  --tsan      with ThreadSanitizer, by clang: the tests of comm, data and train with several threads
  --all       every compiler, plain and with --sanitize, then --tsan
  -j N        compile with N processes (as many as there are cores)
  --no-sudo   passed on to tools/setup.sh
  --dry-run   print what would be run without running it
Other words go to 'meson test': --suite unit, --repeat 3, the name of a test, ...
Without options, it tests the folder 'build', and makes it as README.md does if it is missing. With CXXFLAGS=-g1 in the
environment, a new build with sanitizers reports line numbers and takes a sixth longer.
TEXT
}

compiler=gcc all=false sanitize=false tsan=false dry_run=false jobs=$(nproc) setup=(--yes) rest=()
while [ $# -gt 0 ]; do
  case $1 in
    --clang) compiler=clang setup+=(--clang) ;;
    --all) all=true ;;
    --sanitize) sanitize=true ;;
    --tsan) tsan=true compiler=clang setup+=(--clang) ;;
    -j) jobs=${2:-} && shift ;;
    -j*) jobs=${1#-j} ;;
    --no-sudo) setup+=(--no-sudo) ;;
    -y | --yes) ;;
    --dry-run) dry_run=true setup+=(--dry-run) ;;
    -h | --help) usage; exit 0 ;;
    *) rest+=("$1") ;;
  esac
  shift
done
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
cd "$here" || exit 1

if $all; then
  each=(-j "$jobs")
  case " ${setup[*]} " in *' --no-sudo '*) each+=(--no-sudo) ;; esac
  case " ${setup[*]} " in *' --dry-run '*) each+=(--dry-run) ;; esac
  lines=() sums=(0 0 0) broken=false
  for configuration in '' --sanitize --clang '--clang --sanitize' --tsan; do
    printf '\n== tools/test.sh %s ==\n' "$configuration"
    output=$(mktemp) || exit 1
    # shellcheck disable=SC2086  # one or two options
    tools/test.sh $configuration "${each[@]}" "${rest[@]}" 2>&1 | tee "$output"
    [ "${PIPESTATUS[0]}" -eq 0 ] || broken=true
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$output" | tail -n 1)
    rm "$output"
    lines+=("tools/test.sh $configuration: ${line:-nothing was run}")
    mapfile -t counts < <(grep -oE '[0-9]+' <<<"${line:-0 passed, 0 failed}")
    for i in 0 1 2; do sums[i]=$((sums[i] + ${counts[i]:-0})); done
  done
  printf '\n'
  printf '%s\n' "${lines[@]}"
  printf '%d passed, %d failed' "${sums[0]}" "${sums[1]}"
  if [ "${sums[2]}" -gt 0 ]; then printf ', %d skipped' "${sums[2]}"; fi
  printf '\n'
  ! $broken
  exit
fi

case $jobs in
  '' | *[!0-9]* | 0) printf 'test.sh: -j needs a number above 0\n' >&2; exit 2 ;;
esac

# Tests check what the code does, benchmarks how fast: so a short build. Kernels have their own flags. Optimizing
# the sanitizers' checks takes longer than the tests do without it. Sanitizers keep some of their symbols in the
# program, which --no-undefined would refuse.
short=(-Dtests=enabled -Ddebug=false) targets=(all meson-test-prereq) environment=()
if $tsan; then
  build=build-test/tsan environment=(CXXFLAGS=-g1)
  options=("${short[@]}" -Dwerror=true -Db_sanitize=thread -Db_lundef=false -Doptimization=1 -Db_pch=false
    -Dfolder_units=all)
elif $sanitize; then
  build=build-test/$compiler-sanitize
  options=("${short[@]}" "-Db_sanitize=address,undefined" -Db_lundef=false -Doptimization=0 -Dfolder_units=all)
  # Using a null pointer ends the program anyway; checking for it first takes an eighth of the compile time.
  environment=("CXXFLAGS=-fno-sanitize=null ${CXXFLAGS:-}")
  # Sanitizers make gcc warn of what is not there.
  if [ "$compiler" = clang ]; then options+=(-Dwerror=true); fi
elif [ "$compiler" = clang ]; then
  build=build-test/clang targets+=(src/libheaders_alone.a)
  options=("${short[@]}" -Dwerror=true -Doptimization=1 -Db_pch=false)
else
  build=build options=(--buildtype=release)
fi
if [ "$compiler" = clang ]; then
  cxx=clang++
  # Meson looks for ccache only where no compiler is named.
  if command -v ccache >/dev/null; then cxx='ccache clang++'; fi
  environment+=("CXX=$cxx")
fi
# Clones share what ccache holds. But a precompiled header of clang names the folder it was made in.
export CCACHE_BASEDIR=$here CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
if [ "$compiler" = clang ]; then export CCACHE_HASHDIR=1; else export CCACHE_NOHASHDIR=1; fi

fail() {  # what happened, what to do; the last line counts the step as one failed test
  printf 'test.sh: error: %s\n  %s\n' "$1" "$2" >&2
  printf '0 passed, 1 failed\n'
  exit 1
}

run() {  # shows a command; runs it unless --dry-run
  printf '+ %s\n' "$*"
  $dry_run || "$@"
}

# Whether a program with ThreadSanitizer starts. With clang 14 it fails, always or sometimes, if addresses are too
# random for it (vm.mmap_rnd_bits over 28).
tsan_runs() {
  local folder ok=true
  folder=$(mktemp -d) || return 1
  printf 'int main() {}\n' >"$folder/t.cpp"
  clang++ -fsanitize=thread "$folder/t.cpp" -o "$folder/t" || ok=false
  for _ in 1 2 3 4 5 6 7 8; do $ok && { "$folder/t" >/dev/null 2>&1 || ok=false; }; done
  rm -r "$folder"
  $ok
}

tools/setup.sh "${setup[@]}" || fail "tools/setup.sh failed, see above" "fix the reported problem, then run this again"
if $tsan; then
  if ! $dry_run && ! tsan_runs; then
    printf 'skipped: ThreadSanitizer does not run; vm.mmap_rnd_bits is %s, "sysctl vm.mmap_rnd_bits=28" may help\n' \
      "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo unknown)"
    printf '0 passed, 0 failed, 1 skipped\n'
    exit 0
  fi
  targets=(tests/unit)
fi
# With sanitizers, each program takes GNU's linker ten seconds.
if [ "$compiler" = clang ] && command -v ld.lld >/dev/null; then export CXX_LD=lld; fi
if ! [ -e "$build/build.ninja" ]; then
  run env "${environment[@]}" meson setup "$build" "${options[@]}" ||
    fail "meson could not set up $build, see above and $build/meson-logs/meson-log.txt" \
      "fix the error, remove $build, then run this again"
fi
run ninja -C "$build" -j "$jobs" "${targets[@]}" ||
  fail "the build in $build failed, see the first error above" "fix it or remove $build, then run this again"

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# Shorter stacks of allocations, and less freed memory that is kept, save a tenth of the time.
export ASAN_OPTIONS=malloc_context_size=8:quarantine_size_mb=32:${ASAN_OPTIONS:-}
# Sanitizers slow everything down: longer limits keep slow tests from timing out.
slow=1
if $sanitize; then slow=5; fi
log=$build/meson-logs/testlog.txt
$dry_run || rm -f "$log"
if $tsan; then
  # Where threads meet. Not what forks ranks, which is refused where there is more than one thread:
  # ThreadSanitizer has one of its own, and sees the threads of one process only.
  files='*tests/comm/*,*tests/data/*,*tests/parallel/*,*tests/train/same_bits_test*,*tests/session/batch_partitioner_test*'
  files+=',*tests/train/hosts_test*'  # pretended hosts, each with threads and a link in memory
  files+=',*tests/engine/cpu/pipeline_test*,*tests/engine/cpu/deferred_batch_norm_test*'  # pipelines, placement, hybrids
  rest=(unit "--test-args=--no-skipped-summary -sf=$files -sfe=*launcher_test*" "${rest[@]}")
  # Reports go to files, since tests that run a spec keep its standard error for themselves.
  reports=$here/$build/meson-logs/tsan
  $dry_run || rm -f "$reports".*
  export TSAN_OPTIONS="halt_on_error=1:log_path=$reports:suppressions=$here/tools/tsan.supp"
fi
export DPT_SLOWEST=10
# One more than there are cores, since some tests mostly wait for the processes that they start.
run meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier "$slow" \
  --num-processes $(($(nproc) + 1)) "${rest[@]}"
status=$?
if $dry_run; then exit 0; fi
if $tsan; then cat "$reports".* 2>/dev/null; fi
[ -e "$log" ] || fail "meson test ran nothing and left no $log" "see its output above"

# A block of the log: "=== 2/7 ===", "test: NAME", "result: exit status 0", and what the test printed.
summary=$(awk '
  function close_block() {
    if (!open) return
    open = 0
    ok = (result == "exit status 0"); skip = (result == "exit status 77")
    if (cases) {
      passed += p - unfit; failed += f; skipped += s + unfit + left_out
      if (!ok && !skip && f == 0) failed++   # died outside its cases: a leak, a signal
    }
    else if (ok) passed++
    else if (skip) skipped++
    else failed++
  }
  /^=+ [0-9]+\/[0-9]+ =+$/ { close_block(); open = 1; result = ""; cases = unfit = left_out = 0 }
  open && result == "" && /^result: / { result = substr($0, 9); sub(/^ +/, "", result) }
  open && /^\[doctest\] test cases:/ {
    split($0, part, "|"); p = part[2] + 0; f = part[3] + 0; s = part[4] + 0; cases = 1
  }
  open && /^skipped case: / { unfit++ }
  open && /^left out: / { left_out++ }
  END {
    close_block()
    printf "%d passed, %d failed", passed, failed
    if (skipped) printf ", %d skipped", skipped
    printf "\n"
    exit failed > 0 || passed == 0
  }' "$log")
counted=$?
# What tests/main.cpp says of cases: '12.34 s  NAME', and why some were skipped.
slowest=$(sed -n 's/^slow: //p' "$log" | sort -rn | head -n 10)
if [ -n "$slowest" ]; then printf 'The slowest cases:\n%s\n' "$slowest"; fi
sed -n -e '/^skipped: /p' -e 's/^skipped case: .*\t/skipped: /p' \
  -e 's/^left out: .*/skipped: not for this build/p' "$log" | sort | uniq -c | sed 's/^ *\([0-9]*\) \(.*\)/\2 (\1)/'
if [ "$status" -ne 0 ] || [ "$counted" -ne 0 ]; then
  printf 'The whole log: %s\n' "$here/$log"
  printf '%s\n' "$summary"
  exit 1
fi
printf '%s\n' "$summary"
