#include "inference/trained_model.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cpu/kernels.h"
#include "base/error.h"
#include "base/flush_subnormals.h"
#include "base/machine.h"
#include "checkpoint/named_tensors.h"
#include "data/readers/bytes.h"
#include "engine/cpu/binding.h"
#include "inference/evaluation_graph.h"

namespace dpt {
namespace {

// Samples that are computed together: enough for fast products, few enough for the caches.
// Constant, because kernels may sum in another order for another number of samples.
constexpr int64_t kTogether = 32;

}  // namespace

// A program bound to memory of its own. Thread: one.
class TrainedModel::Runner {
 public:
  Runner(const Program& program, std::byte* weights)
      : memory_(allocate_bytes(size_of_arenas(program))),
        binding_(program, pointers(program, weights), kParts, kStages) {}

  std::byte* input() const { return binding_.input(); }

  // Returns the output, row-major.
  void run(std::byte* out) {
    binding_.run(Part::forward);
    const TensorView y = binding_.view(binding_.program().graph.output);
    copy_layout(y.desc.shape, sizeof(float), y.desc.layout, y.data, Layout::plain, out);
  }

 private:
  static constexpr Part kParts[] = {Part::forward};
  static constexpr int kStages[] = {0};

  static size_t size_of_arenas(const Program& p) { return p.arena[0].kept + p.arena[0].scratch; }
  Binding::BufferPointers pointers(const Program& p, std::byte* weights) const {
    return {.weights = weights,
            .gradients = nullptr,
            .activations = {memory_.get()},
            .scratch = {memory_.get() + p.arena[0].kept}};
  }

  std::shared_ptr<std::byte[]> memory_;
  Binding binding_;
};

TrainedModel::TrainedModel(const Spec& spec, const TensorDesc& sample, const std::string& weights)
    : spec_(spec), sample_(sample) {
  const Graph graph = evaluation_graph(spec_, sample_, 1, cpu_passes(), cpu_kernels());
  output_ = graph[graph.output].desc.shape.tail(1);
  layout_ = flat_layout(graph);
  const size_t bytes = layout_.total * sizeof(float);
  need_memory(bytes, "the model", "use a machine with more memory");
  weights_ = allocate_bytes(bytes);
  std::memset(weights_.get(), 0, bytes);
  const Program& program = program_for(1);
  read_weights(program.graph, program.location, reinterpret_cast<float*>(weights_.get()), weights,
               Fault::data);
}

TrainedModel::~TrainedModel() = default;

const Program& TrainedModel::program_for(int64_t samples) {
  const auto found = programs_.find(samples);
  if (found != programs_.end()) return found->second;
  Graph graph = evaluation_graph(spec_, sample_, samples, cpu_passes(), cpu_kernels());
  return programs_.emplace(samples, compile(std::move(graph), cpu_kernels(), layout_))
      .first->second;
}

void TrainedModel::run(int64_t samples, const Fill& fill, std::span<float> out) {
  const auto width = static_cast<size_t>(output_.elements());
  require(out.size() == static_cast<size_t>(samples) * width, "room for all outputs");
  const int64_t rest = samples % kTogether, parts = (samples + kTogether - 1) / kTogether;
  const Program* const whole = samples >= kTogether ? &program_for(kTogether) : nullptr;
  const Program* const last = rest > 0 ? &program_for(rest) : whole;
  std::atomic<int64_t> next = 0;
  std::exception_ptr failed;
  std::mutex mutex;
  const auto work = [&] {
    try {
      const FlushSubnormals flush;
      std::unique_ptr<Runner> runner;
      const Program* bound = nullptr;
      for (int64_t part = next++; part < parts; part = next++) {
        const Program* const program = part + 1 == parts ? last : whole;
        if (program != bound) runner = std::make_unique<Runner>(*program, weights_.get());
        bound = program;
        const int64_t first = part * kTogether;
        fill(first, std::min(kTogether, samples - first), runner->input());
        runner->run(reinterpret_cast<std::byte*>(&out[static_cast<size_t>(first) * width]));
      }
    } catch (...) {
      next = parts;
      const std::lock_guard lock(mutex);
      if (!failed) failed = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    const auto threads = std::min(static_cast<int64_t>(usable_cores().size()), parts);
    for (int64_t i = 1; i < threads; ++i) others.emplace_back(work);
    work();
  }
  if (failed) std::rethrow_exception(failed);
}

void TrainedModel::run_one(std::span<const std::byte> input, std::span<float> out) {
  const FlushSubnormals flush;
  const Program& program = program_for(1);
  if (!kept_) kept_ = std::make_unique<Runner>(program, weights_.get());
  require(input.size() == program.graph[program.graph.input].desc.bytes(), "one input");
  require(std::cmp_equal(out.size(), output_.elements()), "room for its output");
  std::ranges::copy(input, kept_->input());
  kept_->run(reinterpret_cast<std::byte*>(out.data()));
}

}  // namespace dpt
