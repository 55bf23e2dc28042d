#!/bin/sh
# Fails when an object compiled for one instruction set defines a symbol outside of its namespace:
# the linker could put it in the place of another file's. See isa.h.
#
#   check_symbols.sh libsimd_avx512.a simd_avx512 [library namespace]...
status=0
while [ $# -ge 2 ]; do
  # Sanitizers add names of their own.
  strangers=$(nm -g -C --defined-only "$1" | awk 'NF == 3 || NF > 3 {print}' |
              grep -v "dpt::$2::" | grep -v -E ' (__asan|__odr_asan|__ubsan|__tsan|_ZTI|DW\.ref)')
  if [ -n "$strangers" ]; then
    echo "$1 defines more than dpt::$2:"
    echo "$strangers"
    status=1
  fi
  shift 2
done
exit $status
