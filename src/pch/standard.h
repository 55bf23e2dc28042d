// What most files include, parsed once (meson's b_pch). A shorter build and nothing else: every
// file still includes what it uses, which the build with clang checks by doing without this.
#ifndef DPT_PCH_STANDARD_H  // gcc warns of a pragma in a header that it compiles itself
#define DPT_PCH_STANDARD_H

#include <algorithm>
#include <any>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#endif
