// What a source file needs to be compiled for several instruction sets.
//
// Note [one source, three instruction sets]: `name.inc.cpp` in this folder is compiled three times,
// with the compiler flags of an instruction set and -DDPT_ISA=simd_baseline, simd_avx2 or
// simd_avx512 (meson.build, list isa_sources). It puts everything into namespace dpt::DPT_ISA, so
// the three copies have different names. Such a file must define no other symbols: if an inline
// function of a header is compiled with AVX-512 here and without it elsewhere, the linker keeps
// only one of them, possibly the AVX-512 one, for the whole program. Therefore:
//   - Include only C headers, <immintrin.h>, and headers of this folder or of formulas, whose
//     functions are DPT_SIMD or DPT_FORMULA (static and always inlined). No <algorithm>, <cmath>,
//     <vector>, and nothing that throws.
//   - To add a file, list it in isa_sources, declare its entry points for each instruction set in a
//     header, as tables.h does (DPT_FOR_EACH_ISA), and select them by simd_kernels().isa.
// tests/backend/cpu/simd/check_symbols.sh checks the symbols of the object files.
#pragma once

#ifndef DPT_ISA  // a header that is compiled on its own
#define DPT_ISA simd_baseline
#endif

// Marks helpers of .inc.cpp files and of headers for them: they must never exist as symbols.
#define DPT_SIMD [[gnu::always_inline]] static inline

// For loops with a constant number of iterations whose arrays must become registers. Disabled under
// sanitizers, where speed does not matter and clang took two minutes for the checks of all
// iterations.
#ifdef __clang__
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DPT_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define DPT_UNROLL _Pragma("clang loop unroll(full)")
#endif
#else
#define DPT_UNROLL _Pragma("GCC unroll 64")
#endif

// Declares a function once for every instruction set.
#define DPT_FOR_EACH_ISA(declaration) \
  namespace simd_baseline {           \
  declaration;                        \
  }                                   \
  namespace simd_avx2 {               \
  declaration;                        \
  }                                   \
  namespace simd_avx512 {             \
  declaration;                        \
  }
