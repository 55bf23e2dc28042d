#!/bin/sh
# compile.sh LOG NVCC ARGUMENTS...: compiles own kernels. LOG gets the report of ptxas on registers and shared memory;
# warnings and errors are printed as well.
log=$1
shift
"$@" 2>"$log"
status=$?
grep -vE '^ptxas info|^ +[0-9]+ bytes stack frame|^$' "$log" >&2
exit $status
