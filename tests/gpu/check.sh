#!/usr/bin/env bash
# tools/gpu/check.sh as it is unpacked from a bundle, on a machine whose GPUs are fakes.
# Arguments: dptrain, the unit tests, the fake module, any library.
set -u
dptrain=$(realpath "$1") unit=$(realpath "$2") module=$(realpath "$3") library=$(realpath "$4")
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
bundle=$scratch/bundle
mkdir -p "$bundle/bin" "$bundle/lib" "$scratch/path" "$scratch/driver"
cp "$source"/tools/gpu/{check.sh,common.sh} "$bundle/"
ln -s "$source/configs" "$bundle/configs"
ln -s "$dptrain" "$bundle/bin/dptrain"
failed=0
expect() {  # what, actual, wanted
  [ "$2" = "$3" ] && return
  printf 'FAILED: %s is %s, not %s\n' "$1" "$2" "$3"
  failed=1
}
check() {  # wanted exit code, arguments
  local wanted=$1
  shift
  PATH=$scratch/path:$PATH "$bundle/check.sh" --tiny "$@" "$scratch/report" >"$scratch/out" 2>&1
  expect "exit code of check.sh $*" $? "$wanted"
}
says() { grep -qF -e "$1" "$scratch/report/report.md" || { printf 'FAILED: the report does not say: %s\n' "$1"; failed=1; }; }
script() { printf '#!/usr/bin/env bash\n%s\n' "$2" >"$1" && chmod +x "$1"; }

check 2  # there is no bin/unit
ln -s "$unit" "$bundle/bin/unit"
# A sanitizer that watches nothing; Python with no torch.
script "$scratch/path/compute-sanitizer" 'shift 4; exec "$@"'
script "$scratch/path/python3" 'exit 1'

export DPTRAIN_CUDA_MODULE=$module DPTRAIN_CUDA_PATH=$scratch/driver DPT_FAKE_GPUS=2
export DPT_OPERATORS=linear,attention  # tests/gpu/probe.sh compares all
check 77
says 'No GPU that dptrain can use was found: nothing was checked.'
ln -s "$library" "$scratch/driver/libcuda.so.1"
check 0
says ' 0 failed, 0 left out'
says '[x] conformance '
says ' results agree, 0 do not'
says 'Every operation ran as planned.'
says 'dptrain mlp-fp32 '
says '[x] bits-mlp-again '
says '[x] losses-ddp-2 '
says '[x] bits-ddp-2-again '
for name in gpt gpt-bf16 dp-shared dp-distributed ddp-shared pipeline pipeline-processes placed; do says "[x] losses-$name "; done
says 'machine: 2 x fake GPU; '
says '[x] memcheck-train '
grep -c '^- \[x\]' "$scratch/report/report.md"
# A failed check does not stop the others. Only `doctor` works here, so that the others end at once.
rm "$bundle/bin/unit" "$bundle/bin/dptrain"
script "$bundle/bin/unit" 'echo "conformance: [ ] linear: ended by signal 11"; echo "3 cases failed"; exit 1'
script "$bundle/bin/dptrain" "case \$1 in doctor | --version) exec '$dptrain' \"\$@\" ;; *) exit 9 ;; esac"
check 1
says '- [ ] conformance: exit code 1; logs/conformance ends with'
says '3 cases failed'
says ' 0 results agree, 1 do not'
says '- [ ] train-mlp: exit code 9; '
# Checks without time are in the report. None begins in the last two seconds.
check 1 --seconds 1
says '- [ ] conformance: left out, the limit of 1 s was reached'
says ' 0 failed, '
if [ $failed -ne 0 ]; then cat "$scratch/out" "$scratch/report/report.md"; fi
exit $failed
