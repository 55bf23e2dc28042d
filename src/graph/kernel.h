// How one operator is run on one device: what a kernel is asked, what it is given, and the ordered
// lists in which a back end offers its kernels.
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

// One node as a kernel sees it: what goes in, what comes out, the operator's settings.
struct KernelQuery {
  std::string_view op;
  std::vector<TensorDesc> in, out;
  std::any attrs;
  // How many samples the tensors hold, and the largest shard of the batch (program.h, note
  // [groups]). A kernel that sums in one of several orders chooses by the latter. 0: it is not
  // known.
  int64_t samples = 0, largest_shard = 0;
  DType rounds = DType::f32;  // a half: the first result, f32, is rounded to its numbers
};

// What changes from step to step. Note [randomness]: whatever is random is a function of these and
// of an element's place, so that no mode, device or number of workers can change it.
struct StepContext {
  uint64_t seed = 0;
  uint64_t step = 0;         // optimizer steps done, over all epochs
  int64_t first_sample = 0;  // the place of the shard's first sample in the global batch
  bool last_chunk = true;    // of those that a pipeline is given at once
};

struct KernelArgs {
  std::span<const TensorView> in, out;
  const StepContext* context = nullptr;
};

// Prepared once for fixed shapes, run every step. run() is called by one thread at a time for each
// set of arguments and allocates nothing.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelArgs& args) = 0;
  // Rows [begin, end) of the only result, a matrix whose elements are sums over samples, to `out`
  // in the place of its own: the bits that run() gives. continued: `out` holds the sums over
  // earlier samples, which go on; the bits are those of one call with all of them. REQUIRES: a type
  // that makes rows.
  virtual void run_rows(const KernelArgs& args, int64_t begin, int64_t end, bool continued,
                        std::byte* out);
};

// One row of an ordered list: best first, the first that does not refuse is taken.
struct KernelType {
  std::string_view op, name;  // "linear", "avx512"
  // Empty: takes it; else the reason. Whether it takes halves depends on no number of samples.
  std::string (*refuses)(const KernelQuery& query);
  std::unique_ptr<Kernel> (*prepare)(const KernelQuery& query);
  bool makes_rows = false;  // its kernels have run_rows()
  bool by_sample = false;   // a sample's results have the same bits whatever the number of samples
  bool rounds = false;      // its kernels do what KernelQuery::rounds asks for
};

}  // namespace dpt
