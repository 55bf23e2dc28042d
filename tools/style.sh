#!/usr/bin/env bash
# Checks the form of the sources: clang-format, line length, shellcheck, and clang-tidy on changed files. The last
# line is 'N passed, N failed', with ', N skipped' where a tool is missing (tools/setup.sh --style installs them).
set -u

usage() {
  cat <<'TEXT'
Usage: tools/style.sh [--fix] [--since COMMIT] [--tidy-files N]
  --fix           formats the C++ files instead of checking them
  --since COMMIT  clang-tidy checks what changed since then (the commit before HEAD)
  --tidy-files N  at most so many files, those with the most changed lines first (6: clang-tidy takes seconds a file)
TEXT
}

fix=false since=HEAD~1 most=6
while [ $# -gt 0 ]; do
  case $1 in
    --fix) fix=true ;;
    --since) since=${2:-} && shift ;;
    --tidy-files) most=${2:-} && shift ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'style.sh: unknown option %s\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
if ! git rev-parse --quiet --verify HEAD >/dev/null; then
  printf 'skipped: this is not a git repository, so the list of sources is unknown\n0 passed, 0 failed, 1 skipped\n'
  exit 0
fi
if ! git rev-parse --quiet --verify "$since" >/dev/null; then
  printf 'style.sh: commit %s does not exist: only uncommitted changes are checked\n' "$since"
  since=HEAD
fi

passed=0 failed=0 skipped=0
count() {  # name, exit status
  if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && printf 'failed: %s\n' "$1"; fi
}
there() {  # whether a tool is installed
  command -v "$1" >/dev/null && return
  printf 'skipped: %s is not installed; tools/setup.sh --style installs it\n' "$1"
  skipped=$((skipped + 1))
  return 1
}

mapfile -t cxx < <(git ls-files -- '*.cpp' '*.h' '*.cu')
mapfile -t scripts < <(git ls-files | while IFS= read -r f; do
  case $f in
    *.sh) printf '%s\n' "$f" ;;
    *.*) ;;
    *) if head -n 1 "$f" 2>/dev/null | grep -qE '^#!.*\b(bash|sh)$'; then printf '%s\n' "$f"; fi ;;
  esac
done; git ls-files -- '.ci/*')

if there clang-format; then
  if $fix; then
    clang-format -i "${cxx[@]}"
  else
    printf '%s\0' "${cxx[@]}" | xargs -0 -n 64 -P "$(nproc)" clang-format --dry-run -Werror
  fi
  count 'clang-format (tools/style.sh --fix fixes it)' $?
fi

# clang-format limits the lines of C++ files. In scripts and build files, only added lines are checked.
git diff -U0 "$since" -- '*.sh' '*.py' '*.build' '.ci/*' ':!tests/*/golden/*' |
  awk '/^\+\+\+ / { file = substr($0, 7) }
       /^\+[^+]/ && length > 121 { print file ": " length - 1 " characters, at most 120: " $0; bad = 1 }
       END { exit bad }'
count 'line length' $?

if there shellcheck; then
  shellcheck "${scripts[@]}"
  count shellcheck $?
fi

# Neither a build folder nor precompiled headers: so a file that lacks an include is found as well.
if there clang-tidy; then
  mapfile -t changed < <(git diff --numstat --diff-filter=AMR "$since" -- 'src/*.cpp' ':!src/*.inc.cpp' \
    ':!src/backend/cuda/module/*' ':!src/comm/links/modules/*' | sort -rn | cut -f3)
  if [ "${#changed[@]}" -gt "$most" ]; then
    printf 'clang-tidy: %d of %d changed files\n' "$most" "${#changed[@]}"
    changed=("${changed[@]:0:$most}")
  fi
  status=0
  if [ "${#changed[@]}" -gt 0 ]; then
    # shellcheck disable=SC2016  # the inner shell expands it
    printf '%s\0' "${changed[@]}" | xargs -0 -n 1 -P "$(nproc)" sh -c '
      clang-tidy --quiet "$1" -- -std=c++20 -Isrc -DDPT_ONEDNN=0 -DDPT_JPEG=1 -DDPT_PNG=1 \
        -DDPT_WEBP=1 -DDPT_TIFF=1 "-DDPT_VERSION=\"0\"" 2>&1 |
        grep -vE "^[0-9]+ warnings? generated|^Suppressed|^Use -header-filter"
      [ "$?" -eq 1 ]' sh  # nothing is left
    status=$?
  fi
  count 'clang-tidy' "$status"
fi

printf '%d passed, %d failed' "$passed" "$failed"
if [ "$skipped" -gt 0 ]; then printf ', %d skipped' "$skipped"; fi
printf '\n'
[ "$failed" -eq 0 ]
