// Turns thrown Error{spec} into reports with a place in the spec.
#pragma once

#include "base/error.h"
#include "spec/spec.h"

namespace dpt {

// Runs f and reports its Error{spec} to `d` at `where`. Other errors are thrown on.
template <class F>
void report_spec_error(Diagnostics& d, Span where, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    if (e.fault() != Fault::spec) throw;
    d.error(where, e.what());
  }
}

}  // namespace dpt
