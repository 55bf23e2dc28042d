// Which functions of a kernel table are those of an instruction set. Not for .inc.cpp files.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>

#include "backend/cpu/simd/simd.h"

namespace dpt {

// The functions of one name, in the order of Isa: what an .inc.cpp file defines.
#if defined(__x86_64__)
#define DPT_OF_EACH_ISA(function) \
  { simd_baseline::function, simd_avx2::function, simd_avx512::function }
inline constexpr size_t kIsas = 3;
#else
#define DPT_OF_EACH_ISA(function) \
  { simd_baseline::function }
inline constexpr size_t kIsas = 1;
#endif

template <class Table>
using AddOfEachIsa = std::array<void (*)(Table&), kIsas>;

// The one table of this type and instruction set, which each of `parts` has added its functions to.
// REQUIRES: the same parts whenever it is called.
template <class Table>
const Table& table_of(Isa isa, std::initializer_list<AddOfEachIsa<Table>> parts) {
  static const std::array<Table, kIsas> tables = [&] {
    std::array<Table, kIsas> out{};
    for (const AddOfEachIsa<Table>& add : parts)
      for (size_t i = 0; i < kIsas; ++i) add[i](out[i]);
    return out;
  }();
  const auto at = static_cast<size_t>(isa);
  return tables[at < kIsas ? at : 0];
}

}  // namespace dpt
