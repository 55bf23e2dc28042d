// As src/pch/standard.h, with the test framework.
#ifndef DPT_PCH_STANDARD_H  // gcc warns of a pragma in a header that it compiles itself
#define DPT_PCH_STANDARD_H

#include <any>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#endif
