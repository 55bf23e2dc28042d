#include "graph/passes/passes.h"

#include <doctest/doctest.h>

#include "backend/cpu/kernels.h"
#include "backend/cuda/implementations/kernels.h"
#include "layers/lowered.h"

namespace dpt {
namespace {

const std::string kModel =
    "model:\n"
    "  - {linear: 8}\n"
    "  - batch_norm1d\n"
    "  - relu\n"
    "  - {linear: 4, checkpoint: true}\n"
    "  - {linear: 3}\n";

// A line for each pass: what it changed.
std::string changes_of(ModelQuery query) {
  ModelText text(kModel);
  query.input = real({4, 6});
  query.target = real({4, 3});
  std::vector<PassChange> changes;
  build_graph(text.spec, query, text.diagnostics, nullptr, &changes);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  std::string out;
  for (const PassChange& c : changes) out += fmt::format("{}: {}\n", c.name, c.text);
  return out;
}

}  // namespace

TEST_CASE("the passes of a CPU say what they change") {
  CHECK(changes_of({.passes = cpu_passes(), .kernels = cpu_kernels()}) ==
        "precision: not needed\n"
        "stage copies: not needed\n"
        "fuse: 9 operators (-1): -1 batch_norm, -1 relu, +1 batch_norm{relu}\n"
        "differentiate: 22 operators (+13): +1 all_reduce, +1 batch_norm_input_gradient{relu}, "
        "+1 batch_norm_sums{relu}, +1 batch_norm_weight_gradient, +3 linear_weight_gradient, "
        "+2 matmul, +1 mse_loss_gradient, +3 sum_rows\n"
        "fuse gradients: nothing\n"
        "recompute: 23 operators (+1): +1 linear\n"
        "widen halves: not needed\n"
        "layouts: nothing\n");
}

TEST_CASE("the passes of a GPU say what they change") {
  CHECK(changes_of({.passes = gpu_passes(),
                    .kernels = cuda_kernels(),
                    .precision = {.level = PrecisionPolicy::Level::autocast}}) ==
        "precision: 18 operators (+8): +8 cast, 5 values become bf16\n"
        "stage copies: not needed\n"
        "fuse: 17 operators (-1): -1 batch_norm, -1 relu, +1 batch_norm{relu}\n"
        "differentiate: 31 operators (+14): +1 all_reduce, +1 batch_norm_input_gradient{relu}, "
        "+1 batch_norm_sums{relu}, +1 batch_norm_weight_gradient, +1 cast, "
        "+3 linear_weight_gradient, +2 matmul, +1 mse_loss_gradient, +3 sum_rows\n"
        "fuse gradients: nothing\n"
        "recompute: 34 operators (+3): +2 cast, +1 linear\n"
        "fuse products: 31 operators (-3): -3 linear_weight_gradient, -3 sum_rows, "
        "+3 linear_weight_bias_gradient\n"
        "fuse batch norms: 24 operators (-7): -2 all_reduce, -1 batch_norm_input_gradient{relu}, "
        "-1 batch_norm_sums{relu}, -1 batch_norm_weight_gradient, -1 batch_norm{relu}, "
        "-1 channel_sums, -1 moments, -1 update_running, +1 batch_norm_backward{relu}, "
        "+1 batch_norm{relu,training}\n"
        "widen halves: nothing\n"
        "layouts: nothing\n");
}

TEST_CASE("passes that are not needed say so") {
  CHECK(changes_of({.differentiate = false, .fuse = false}) ==
        "precision: not needed\n"
        "stage copies: not needed\n"
        "fuse: not needed\n"
        "differentiate: not needed\n"
        "fuse gradients: not needed\n"
        "recompute: not needed\n");
}

}  // namespace dpt
