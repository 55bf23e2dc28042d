#include "backend/cpu/kernels.h"

#if DPT_ONEDNN
#include <memory>
#include <new>

#include <dlfcn.h>
#include <fmt/format.h>

#include "backend/cpu/onednn.h"

namespace dpt::onednn {

// Never destroyed: oneDNN's own globals are gone before ours at the program's end.
dnnl::engine& engine() {
  static auto* cpu =
      new dnnl::engine(dnnl::engine::kind::cpu, 0);  // NOLINT(cppcoreguidelines-owning-memory)
  return *cpu;
}

void use_one_core() {
  // Found by name: which OpenMP library oneDNN brings is not ours to know.
  using SetThreads = void (*)(int);
  static const auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(1);
}

namespace {
thread_local size_t scratch_size = 0;
}

std::byte* scratch(size_t bytes) {
  constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, kLine); }
  };
  thread_local std::unique_ptr<std::byte, Free> memory;
  if (bytes > scratch_size) {
    memory.reset(static_cast<std::byte*>(::operator new(bytes, kLine)));
    scratch_size = bytes;
  }
  return memory.get();
}

std::string refuses(const KernelQuery& query) {
  for (const auto* side : {&query.in, &query.out})
    for (const TensorDesc& d : *side) {
      if (d.dtype != DType::f32) return fmt::format("it computes in f32, not {}", name_of(d.dtype));
      if (d.shape.elements() == 0) return "it takes no empty tensors";
    }
  return "";
}

}  // namespace dpt::onednn

size_t dpt::cpu_scratch_bytes() { return dpt::onednn::scratch_size; }

#else

size_t dpt::cpu_scratch_bytes() { return 0; }

#endif
