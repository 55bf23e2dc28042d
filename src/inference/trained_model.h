// TrainedModel: the forward pass of a model with trained weights, for predictions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "graph/program/program.h"
#include "spec/spec.h"

namespace dpt {

// Computes in float32 on this machine's cores, whatever precision and devices the spec names.
class TrainedModel {
 public:
  // sample: the type and shape of an input after transforms. weights: a file of safetensors or
  // torch.save with all parameters and buffers. Throws Error{spec} as evaluation_graph(),
  // Error{data} if the file does not fit the model. REQUIRES: `spec` outlives the model.
  TrainedModel(const Spec& spec, const TensorDesc& sample, const std::string& weights);
  ~TrainedModel();
  TrainedModel(const TrainedModel&) = delete;
  TrainedModel& operator=(const TrainedModel&) = delete;

  const Shape& output() const { return output_; }  // of a sample

  // Writes samples first to first + count - 1 to `to`, one after another.
  using Fill = std::function<void(int64_t first, int64_t count, std::byte* to)>;
  // Computes out[samples, output()] on all cores. A sample's output does not depend on the number
  // of cores. fill: called by any thread, several at once; if it throws, run() throws that. Thread:
  // one call at a time.
  void run(int64_t samples, const Fill& fill, std::span<float> out);

  // Computes the output of one sample in this thread, without preparing anything again. REQUIRES:
  // `input` is a sample, `out` has room for output(). Thread: one call at a time.
  void run_one(std::span<const std::byte> input, std::span<float> out);

 private:
  class Runner;
  const Program& program_for(int64_t samples);

  const Spec& spec_;
  TensorDesc sample_;
  Shape output_;
  FlatLayout layout_;
  std::shared_ptr<std::byte[]> weights_;
  std::map<int64_t, Program> programs_;  // by their number of samples
  std::unique_ptr<Runner> kept_;         // of run_one()
};

}  // namespace dpt
