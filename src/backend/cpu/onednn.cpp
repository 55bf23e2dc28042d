#include "backend/cpu/kernels.h"

#if DPT_ONEDNN
#include <dlfcn.h>
#include <fmt/format.h>

#include "backend/cpu/onednn.h"

namespace dpt::onednn {

// Never destroyed, since oneDNN's own globals are destroyed before ours when the program ends.
dnnl::engine& engine() {
  static auto* cpu =
      new dnnl::engine(dnnl::engine::kind::cpu, 0);  // NOLINT(cppcoreguidelines-owning-memory)
  return *cpu;
}

void use_one_core() {
  // Looked up by name, since it is unknown which OpenMP library oneDNN uses.
  using SetThreads = void (*)(int);
  static const auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(1);
}

namespace {

std::string refuses(const TensorDesc& d, const std::string& against_bf16) {
  if (d.shape.elements() == 0) return "it takes no empty tensors";
  if (d.dtype == DType::f32) return "";
  if (d.dtype == DType::bf16) return against_bf16;
  return fmt::format("it computes in f32, not {}", name_of(d.dtype));
}

}  // namespace

std::string refuses_bf16_without_amx() {
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_amx ? ""
                                                                         : "this CPU has no AMX";
}

// Where VDPBF16PS is slow, so is oneDNN: on an Emerald Rapids without AMX, a 3x3 convolution of 64
// channels took 10.4 ms in f32 and 20.7 ms in bf16 (oneDNN 2.6). On an EPYC of Zen 4 it took half
// the time of f32.
std::string refuses_bf16(Bf16Products asked) {
  if (asked != Bf16Products::fma && refuses_bf16_without_amx().empty()) return "";
  if (std::string reason = refuses_instruction(asked); !reason.empty()) return reason;
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16
             ? ""
             : "oneDNN was told not to use AVX512-BF16";
}

std::string refuses(const KernelQuery& query, const std::string& against_bf16) {
  for (const auto* side : {&query.in, &query.out})
    for (const TensorDesc& d : *side)
      if (std::string reason = refuses(d, against_bf16); !reason.empty()) return reason;
  return "";
}

dnnl::memory::data_type type_of(const TensorDesc& desc) {
  return desc.dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

}  // namespace dpt::onednn

#endif
