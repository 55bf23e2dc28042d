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

// Without AMX, the only instruction for bf16 products runs at half the rate of f32's. A 3x3
// convolution of 64 channels took 10.4 ms in f32 and 20.7 ms in bf16 (oneDNN 2.6, Emerald Rapids).
std::string refuses(const TensorDesc& d) {
  if (d.shape.elements() == 0) return "it takes no empty tensors";
  if (d.dtype == DType::f32) return "";
  if (d.dtype != DType::bf16) return fmt::format("it computes in f32, not {}", name_of(d.dtype));
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_amx
             ? ""
             : "without AMX its bf16 is slower than f32";
}

}  // namespace

std::string refuses(const KernelQuery& query) {
  for (const auto* side : {&query.in, &query.out})
    for (const TensorDesc& d : *side)
      if (std::string reason = refuses(d); !reason.empty()) return reason;
  return "";
}

dnnl::memory::data_type type_of(const TensorDesc& desc) {
  return desc.dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

}  // namespace dpt::onednn

#endif
