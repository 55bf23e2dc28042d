// Cases that this machine or this build cannot run.
#pragma once

#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace dpt {

// Whether the case ends here: `if (skip_without(reads_png(), "libpng")) return;`. It then counts as
// skipped.
inline bool skip_without(bool there, std::string_view what) {
  if (!there) MESSAGE("skipped: needs ", std::string(what));
  return !there;
}

}  // namespace dpt
