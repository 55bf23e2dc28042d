#if DPT_ONEDNN

#include "backend/cpu/onednn.h"

#include <memory>
#include <new>

#include <dlfcn.h>
#include <fmt/format.h>

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

std::byte* scratch(size_t bytes) {
  constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, kLine); }
  };
  thread_local std::unique_ptr<std::byte, Free> memory;
  thread_local size_t size = 0;
  if (bytes > size) {
    memory.reset(static_cast<std::byte*>(::operator new(bytes, kLine)));
    size = bytes;
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

#endif
