// The functions that formulas call, for float and double. The CPU kernels' vector types bring their
// own overloads, which are found by argument-dependent lookup.
#pragma once

#include <math.h>

#include "graph/formulas/formulas.h"

namespace dpt::formula {

DPT_FORMULA float exp(float x) { return ::expf(x); }
DPT_FORMULA double exp(double x) { return ::exp(x); }
DPT_FORMULA float expm1(float x) { return ::expm1f(x); }
DPT_FORMULA double expm1(double x) { return ::expm1(x); }
DPT_FORMULA float log(float x) { return ::logf(x); }
DPT_FORMULA double log(double x) { return ::log(x); }
DPT_FORMULA float log1p(float x) { return ::log1pf(x); }
DPT_FORMULA double log1p(double x) { return ::log1p(x); }
DPT_FORMULA float tanh(float x) { return ::tanhf(x); }
DPT_FORMULA double tanh(double x) { return ::tanh(x); }
DPT_FORMULA float erf(float x) { return ::erff(x); }
DPT_FORMULA double erf(double x) { return ::erf(x); }
DPT_FORMULA float abs(float x) { return ::fabsf(x); }
DPT_FORMULA double abs(double x) { return ::fabs(x); }
DPT_FORMULA float reciprocal(float x) { return 1 / x; }  // REQUIRES: x >= 1 or nan
DPT_FORMULA double reciprocal(double x) { return 1 / x; }
DPT_FORMULA float select(bool c, float a, float b) { return c ? a : b; }
DPT_FORMULA double select(bool c, double a, double b) { return c ? a : b; }

}  // namespace dpt::formula
