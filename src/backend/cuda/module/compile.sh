#!/bin/sh
# compile.sh LOG NVCC ARGUMENTS...: compiles own kernels; what ptxas says of their registers and shared
# memory goes to LOG, and is shown where the compilation fails.
log=$1
shift
"$@" 2>"$log" && exit
status=$?
grep -v '^ptxas info' "$log" >&2
exit $status
