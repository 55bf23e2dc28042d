// What a source file needs to be compiled once for each instruction set.
//
// Note [one source, three instruction sets]: `name.inc.cpp` in this folder is compiled three times,
// with the flags and with -DDPT_ISA=simd_baseline, simd_avx2 or simd_avx512 (meson.build, list
// isa_sources), and puts everything into namespace dpt::DPT_ISA, so that it becomes three sets of
// functions with three names. Nothing else may leave such a file: an inline function of a header
// that is compiled with AVX-512 here and without it elsewhere is one symbol for the linker, which
// may keep the AVX-512 one for all. Therefore:
//   - include only C headers, <immintrin.h> and headers of this folder or of formulas, whose
//     functions are DPT_SIMD or DPT_FORMULA (static and always inlined); no <algorithm>, <cmath>,
//     <vector>, and nothing that throws;
//   - to add a file: list it in isa_sources, declare its entry points for each instruction set in
//     a header, as tables.h does (DPT_FOR_EACH_ISA), and choose by simd_kernels().isa.
// tests/backend/cpu/simd/check_symbols.sh looks at what the objects define.
#pragma once

#ifndef DPT_ISA  // a header that is compiled alone
#define DPT_ISA simd_baseline
#endif

// A helper of an .inc.cpp file or of vector.h: it must never exist as a symbol.
#define DPT_SIMD [[gnu::always_inline]] static inline

// Before a loop with a constant number of rounds whose arrays have to become registers. Not under
// sanitizers: nothing is fast there, and their checks of every round took clang two minutes.
#ifdef __clang__
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DPT_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define DPT_UNROLL _Pragma("clang loop unroll(full)")
#endif
#else
#define DPT_UNROLL _Pragma("GCC unroll 64")
#endif

// The function has a name of its own for every instruction set.
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
