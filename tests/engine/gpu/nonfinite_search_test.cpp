// The non-finite check on a GPU finds the layer, the parameter or the sample.
#include "engine/gpu/nonfinite_search.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "engine/gpu/gpu_runner.h"
#include "engine/some_weights.h"

namespace dpt {
namespace {

// A step of 8 samples.
constexpr const char* kSpec = R"(
data:
  dataset: {random: {samples: 8, in_features: 3, out_features: 2}}
  batch_size: 8
  shuffle: false
model: [{linear: 6, name: first}, {tanh: null, name: middle}, {linear: 2, name: last}]
loss: mse_loss
optimizer: {sgd: 0.1}
epochs: 1
)";

constexpr float kHuge = 3e38F;  // finite, but not twice that
constexpr const char* kNothing =
    "every layer's output is finite, so the non-finite value comes from the loss itself";

std::string search(OneGpu& one, const GpuRunner& r) {
  const auto step = r.step(0);
  return GpuNonFiniteSearch(one.worker, r.bindings, r.train.get(), nullptr, step->input)
      .run(step->input)
      .where;
}

TEST_CASE("a GPU finds the first layer whose output overflows, in every micro-batch") {
  for (const char* accumulate : {"accumulate=1", "accumulate=2"}) {
    CAPTURE(accumulate);
    OneGpu one(kSpec, {accumulate});
    set_some_weights(*one.session, one.buffers);
    const GpuRunner r(one);
    CHECK(search(one, r) == kNothing);
    for (const size_t parameter : {2, 3})
      set_parameter(*one.session, one.buffers, parameter, kHuge);
    one.update.upload(one.buffers);
    CHECK(search(one, r) == "the output of layer 'last' (linear) is the first that is not finite");
    for (const size_t parameter : {0, 1})
      set_parameter(*one.session, one.buffers, parameter, kHuge);
    one.update.upload(one.buffers);
    CHECK(search(one, r) == "the output of layer 'first' (linear) is the first that is not finite");
    CHECK(one.buffers.non_finite(0).instruction < kForward);  // of the first micro-batch
    set_some_weights(*one.session, one.buffers);
    one.update.upload(one.buffers);
    CHECK(search(one, r) == kNothing);  // what was found before is forgotten
  }
}

TEST_CASE("a GPU's search names a parameter of the host's buffers before any layer") {
  OneGpu one(kSpec);
  set_some_weights(*one.session, one.buffers);
  set_parameter(*one.session, one.buffers, 1, std::numeric_limits<float>::infinity());
  const GpuRunner r(one);
  CHECK(search(one, r) == "the values of parameter 'first.bias' were not finite before the step");
}

TEST_CASE("a GPU's search reads the samples of each micro-batch, resident or made by the host") {
  for (const bool resident : {true, false}) {
    CAPTURE(resident);
    OneGpu one(kSpec, {"accumulate=2"});
    set_some_weights(*one.session, one.buffers);
    const Table& inputs = one.session->data.train.inputs;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    // Nobody else has this data set.
    std::memcpy(const_cast<std::byte*>(inputs.data.get()) +
                    static_cast<size_t>(6 * inputs.step()) * sizeof nan,
                &nan, sizeof nan);
    const GpuRunner r(one, resident);
    CHECK(search(one, r) ==
          "sample 6 of the training set (counted from 0) has an input that is not finite");
    // The second micro-batch has samples 4 to 7, and the first layer is the first to read them.
    CHECK(one.buffers.non_finite(0).instruction / kForward == 1);
  }
}

}  // namespace
}  // namespace dpt
