// Precompiled header with what most files include (meson's b_pch). It only shortens the build:
// every file still includes what it uses, which the clang build checks by not using this header.
#ifndef DPT_PCH_STANDARD_H  // gcc warns about `#pragma once` in a header that it compiles
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
