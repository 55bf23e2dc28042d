#include <cmath>

#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("activations let nan through and have torch's values of large numbers") {
  struct Row {
    const char* op;
    double large, small;  // of 1e4 and -1e4
  };
  for (const Row& row :
       {Row{.op = "elu", .large = 1e4, .small = -1},
        Row{.op = "gelu", .large = 1e4, .small = 0},
        Row{.op = "hardswish", .large = 1e4, .small = 0},
        Row{.op = "hardsigmoid", .large = 1, .small = 0},
        Row{.op = "hardtanh", .large = 1, .small = -1},
        Row{.op = "mish", .large = 1e4, .small = 0},
        Row{.op = "leaky_relu", .large = 1e4, .small = -100},
        Row{.op = "relu6", .large = 6, .small = 0},
        Row{.op = "relu", .large = 1e4, .small = 0},
        Row{.op = "selu", .large = 10507.009873554804, .small = -1.7580993408473766},
        Row{.op = "sigmoid", .large = 1, .small = 0},
        Row{.op = "silu", .large = 1e4, .small = 0},
        Row{.op = "softplus", .large = 1e4, .small = 0},
        Row{.op = "tanh", .large = 1, .small = -1},
        Row{.op = "celu", .large = 1e4, .small = -1},
        Row{.op = "softsign", .large = 1e4 / 10001, .small = -1e4 / 10001},
        Row{.op = "logsigmoid", .large = 0, .small = -1e4},
        Row{.op = "hardshrink", .large = 1e4, .small = -1e4},
        Row{.op = "softshrink", .large = 9999.5, .small = -9999.5},
        Row{.op = "tanhshrink", .large = 9999, .small = -9999},
        Row{.op = "threshold", .large = 1e4, .small = 0}}) {
    CAPTURE(row.op);
    // The tolerance is that of a value rounded to f32.
    const auto y = run_op(row.op, {{f32({1, 3}), {NAN, 1e4, -1e4}}});
    CHECK(std::isnan(y[0]));
    CHECK(y[1] == doctest::Approx(row.large).epsilon(1e-7));
    CHECK(y[2] == doctest::Approx(row.small).epsilon(1e-7));
  }
}

}  // namespace dpt
