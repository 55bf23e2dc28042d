// The interface between graphs and back ends: what a kernel is asked, what it gets per step, and
// the entries of a back end's kernel list.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"

namespace dpt {

// One node as seen by a kernel: inputs, results and the operator's attributes.
struct KernelQuery {
  std::string_view op;
  std::vector<TensorDesc> in, out;
  std::any attrs;
  // Samples in the tensors, and in the largest shard of the batch (program.h, Note [shard groups]).
  // A kernel with several summation orders must choose by largest_shard. 0: unknown.
  int64_t samples = 0, largest_shard = 0;
  DType rounds = DType::f32;  // a half: the first result is f32, rounded to the half's precision
  DType rounded_inputs = DType::f32;  // a half: inputs that are f32 hold numbers of this half
};

// What changes from step to step. Note [randomness]: every random number is a function of these
// fields and of an element's index. So modes, devices and the number of workers do not change it.
struct StepContext {
  uint64_t seed = 0;
  uint64_t step = 0;         // optimizer steps done so far, over all epochs
  int64_t first_sample = 0;  // index of the shard's first sample in the global batch
  bool last_chunk = true;    // the last of the chunks that a pipeline is given at once
};

struct KernelArgs {
  std::span<const TensorView> in, out;
  const StepContext* context = nullptr;
};

// Prepared once for fixed shapes, then run every step. Calls with the same arguments come from one
// thread at a time. run() allocates nothing.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelArgs& args) = 0;
  // Computes rows [begin, end) of the kernel's only result, a matrix of sums over samples, and
  // writes them contiguously to `out` instead of the result's memory, with the bits that run()
  // gives. continued: adds to the sums over earlier samples in `out`; the bits are those of one
  // call with all samples. REQUIRES: the kernel's type has makes_rows.
  virtual void run_rows(const KernelArgs& args, int64_t begin, int64_t end, bool continued,
                        std::byte* out);
};

// An entry of a kernel list. Lists are ordered best first; the first entry that does not refuse is
// used.
struct KernelType {
  std::string_view op, name;  // "linear", "avx512"
  // Returns why the kernel cannot run this query, or an empty string if it can. Whether it accepts
  // halves must not depend on the number of samples.
  std::string (*refuses)(const KernelQuery& query);
  std::unique_ptr<Kernel> (*prepare)(const KernelQuery& query) = nullptr;  // null: it refuses all
  bool makes_rows = false;  // its kernels have run_rows()
  bool by_sample = false;   // a sample's results have the same bits whatever the number of samples
  bool rounds = false;      // its kernels do what KernelQuery::rounds asks for
};

}  // namespace dpt
