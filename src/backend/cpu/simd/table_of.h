// Selects the kernels of an instruction set. Not for .inc.cpp files.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <mutex>

#include "backend/cpu/simd/simd.h"

namespace dpt {

// The functions with this name that an .inc.cpp file defines, in the order of Isa.
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

// The table of this type for an instruction set. `parts` add their functions to it at the first
// call; they are compiled for the instruction set, so only those of `isa` are called. REQUIRES:
// this CPU supports `isa`; every call passes the same parts.
template <class Table>
const Table& table_of(Isa isa, std::initializer_list<AddOfEachIsa<Table>> parts) {
  static std::array<Table, kIsas> tables{};
  static std::array<std::once_flag, kIsas> filled;
  const auto at = static_cast<size_t>(isa) < kIsas ? static_cast<size_t>(isa) : 0;
  std::call_once(filled[at], [&] {
    for (const AddOfEachIsa<Table>& add : parts) add[at](tables[at]);
  });
  return tables[at];
}

}  // namespace dpt
