// The non-finite check on a GPU finds the layer, the parameter or the sample.
#include "engine/gpu/nonfinite_search.h"

#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "engine/gpu/gpu_runner.h"
#include "engine/searched_spec.h"
#include "engine/some_weights.h"

namespace dpt {
namespace {

std::string search(OneGpu& one, const GpuRunner& r) {
  const auto step = r.step(0);
  return GpuNonFiniteSearch(one.worker, r.bindings, r.train.get(), nullptr, step->input)
      .run(step->input)
      .where;
}

TEST_CASE("a GPU finds the first layer whose output overflows, in every micro-batch") {
  for (const char* accumulate : {"accumulate=1", "accumulate=2"}) {
    CAPTURE(accumulate);
    OneGpu one(kSearchedSpec, {accumulate});
    set_some_weights(*one.session, one.buffers);
    const GpuRunner r(one);
    CHECK(search(one, r) == kNothing);
    for (const size_t parameter : {2, 3})
      set_parameter(*one.session, one.buffers, parameter, kHuge);
    one.update.upload(one.buffers);
    CHECK(search(one, r) == first_not_finite("last", "linear"));
    for (const size_t parameter : {0, 1})
      set_parameter(*one.session, one.buffers, parameter, kHuge);
    one.update.upload(one.buffers);
    CHECK(search(one, r) == first_not_finite("first", "linear"));
    CHECK(one.buffers.non_finite(0).instruction < kForward);  // of the first micro-batch
    set_some_weights(*one.session, one.buffers);
    one.update.upload(one.buffers);
    CHECK(search(one, r) == kNothing);  // what was found before is forgotten
  }
}

TEST_CASE("a GPU's search names a parameter of the host's buffers before any layer") {
  OneGpu one(kSearchedSpec);
  set_some_weights(*one.session, one.buffers);
  set_parameter(*one.session, one.buffers, 1, std::numeric_limits<float>::infinity());
  const GpuRunner r(one);
  CHECK(search(one, r) == "the values of parameter 'first.bias' were not finite before the step");
}

TEST_CASE("a GPU's search reads the samples of each micro-batch, resident or made by the host") {
  for (const bool resident : {true, false}) {
    CAPTURE(resident);
    OneGpu one(kSearchedSpec, {"accumulate=2"});
    set_some_weights(*one.session, one.buffers);
    set_number(one.session->data.train.inputs, 6, std::numeric_limits<float>::quiet_NaN());
    const GpuRunner r(one, resident);
    CHECK(search(one, r) ==
          "sample 6 of the training set (counted from 0) has an input that is not finite");
    // The second micro-batch has samples 4 to 7, and the first layer is the first to read them.
    CHECK(one.buffers.non_finite(0).instruction / kForward == 1);
  }
}

}  // namespace
}  // namespace dpt
