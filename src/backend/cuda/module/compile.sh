#!/bin/sh
# compile.sh LOG NVCC ARGUMENTS...: compiles own kernels. The report of ptxas on registers and shared memory
# goes to LOG, which is printed if the compilation fails.
log=$1
shift
"$@" 2>"$log" && exit
status=$?
grep -v '^ptxas info' "$log" >&2
exit $status
