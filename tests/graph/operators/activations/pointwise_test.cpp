#include <doctest/doctest.h>

#include "graph/formulas/activations.h"
#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("relu and its gradient are torch's") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Given y{f64({1, 8}), run_op("relu", {x})};
  CHECK(close(y.content, {0, 0, 0, 0, 0, 0.5, 3, 4.5}));
  CHECK(close(run_op("relu_gradient", {y, ones}), {0, 0, 0, 0, 0, 1, 1, 1}));
}

TEST_CASE("relu6 and its gradient are torch's") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 5, 7.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Given y{f64({1, 8}), run_op("relu6", {x})};
  CHECK(close(y.content, {0, 0, 0, 0, 0, 0.5, 5, 6}));
  CHECK(close(run_op("relu6_gradient", {y, ones}), {0, 0, 0, 0, 0, 1, 1, 0}));
}

TEST_CASE("leaky_relu and its gradient are torch's") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Given y{f64({1, 8}), run_op("leaky_relu", {x}, formula::LeakyRelu{.negative_slope = 0.2})};
  CHECK(close(y.content, {-0.7000000000000001, -0.6000000000000001, -0.2, -0.05, 0, 0.5, 3, 4.5}));
  CHECK(close(run_op("leaky_relu_gradient", {x, ones}, formula::LeakyRelu{.negative_slope = 0.2}),
              {0.2, 0.2, 0.2, 0.2, 0.2, 1, 1, 1}));
}

TEST_CASE("elu and its gradient are torch's") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Given y{f64({1, 8}), run_op("elu", {x}, formula::Elu{.alpha = 0.7})};
  CHECK(close(y.content, {-0.6788618316043771, -0.6651490521424952, -0.4424843911799903,
                          -0.1548394518500166, 0, 0.5, 3, 4.5}));
  CHECK(close(run_op("elu_gradient", {x, ones}, formula::Elu{.alpha = 0.7}),
              {0.02113816839562295, 0.03485094785750476, 0.2575156088200096, 0.5451605481499834,
               0.7, 1, 1, 1}));
}

TEST_CASE("selu and its gradient are torch's") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Given y{f64({1, 8}), run_op("selu", {x})};
  CHECK(close(y.content,
              {-1.705009340957283, -1.670568728767112, -1.111330737812563, -0.388890197478119, 0,
               0.5253504936777402, 3.152102962066441, 4.728154443099662}));
  CHECK(close(run_op("selu_gradient", {x, ones}),
              {0.05308999989009366, 0.08753061208026487, 0.646768603034814, 1.369209143369258,
               1.758099340847377, 1.05070098735548, 1.05070098735548, 1.05070098735548}));
}

TEST_CASE("gelu is torch's exact one") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Given y{f64({1, 8}), run_op("gelu", {x})};
  CHECK(close(y.content,
              {-0.0008142017766243903, -0.00404969409489031, -0.158655253931457,
               -0.1003234185792691, 0, 0.3457312306370066, 2.99595030590511, 4.499984710470939}));
  CHECK(close(run_op("gelu_gradient", {x, ones}),
              {-0.00282176035362462, -0.01194564720418392, -0.08331547058768635, 0.304626645116364,
               0.5, 0.8674951246561629, 1.011945647204184, 1.000068529161856}));
}

TEST_CASE("gelu with tanh is torch's approximation") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Given y{f64({1, 8}), run_op("gelu_tanh", {x})};
  CHECK(close(y.content,
              {-0.0006161976553737403, -0.003637392081772994, -0.1588080093917232,
               -0.100324649298315, 0, 0.3457140098251439, 2.996362607918227, 4.499994863262588}));
  CHECK(close(run_op("gelu_tanh_gradient", {x, ones}),
              {-0.002422643760116733, -0.01158416663096965, -0.08296408384578252,
               0.3046459048489396, 0.5, 0.8673699035346424, 1.01158416663097, 1.000029322270443}));
}

TEST_CASE("silu and its gradient are torch's") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Given y{f64({1, 8}), run_op("silu", {x})};
  CHECK(close(y.content,
              {-0.1025928076297471, -0.1422776195327004, -0.2689414213699951, -0.1094558747785505,
               0, 0.3112296656009273, 2.8577223804673, 4.450558758162331}));
  CHECK(close(run_op("silu_gradient", {x, ones}),
              {-0.07027335282771814, -0.08810410601516962, 0.07232948812851325, 0.3762899784298023,
               0.5, 0.7399611873026519, 1.088104106015169, 1.03791109111942}));
}

TEST_CASE("sigmoid and its gradient are torch's") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Given y{f64({1, 8}), run_op("sigmoid", {x})};
  CHECK(close(y.content,
              {0.02931223075135632, 0.04742587317756678, 0.2689414213699951, 0.4378234991142019,
               0.5, 0.6224593312018546, 0.9525741268224334, 0.9890130573694068}));
  CHECK(close(run_op("sigmoid_gradient", {y, ones}),
              {0.02845302387973556, 0.04517665973091214, 0.1966119332414819, 0.2461340827375983,
               0.25, 0.2350037122015945, 0.045176659730912, 0.01086622972222524}));
}

TEST_CASE("tanh and its gradient are torch's") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Given y{f64({1, 8}), run_op("tanh", {x})};
  CHECK(close(y.content,
              {-0.9981778976111987, -0.9950547536867305, -0.7615941559557649, -0.2449186624037091,
               0, 0.4621171572600098, 0.9950547536867305, 0.9997532108480275}));
  CHECK(close(run_op("tanh_gradient", {y, ones}),
              {0.003640884720487358, 0.009866037165440166, 0.4199743416140261, 0.940014848806378, 1,
               0.7864477329659274, 0.009866037165440166, 0.0004935173990594991}));
}

TEST_CASE("softplus and its gradient are torch's") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Given y{f64({1, 8}), run_op("softplus", {x}, formula::Softplus{.beta = 2, .threshold = 3})};
  CHECK(close(y.content, {0.0004557332268871224, 0.001237842568865225, 0.06346400552148625,
                          0.2370384920900533, 0.3465735902799726, 0.6566308437591114, 3, 4.5}));
  CHECK(close(run_op("softplus_gradient", {x, ones}, formula::Softplus{.beta = 2, .threshold = 3}),
              {0.0009110511944006454, 0.002472623156634775, 0.1192029220221175, 0.3775406687981455,
               0.5, 0.7310585786300049, 1, 1}));
}

TEST_CASE("hardswish and its gradient are torch's") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Given y{f64({1, 8}), run_op("hardswish", {x})};
  CHECK(close(y.content,
              {0, 0, -0.3333333333333333, -0.1145833333333333, 0, 0.2916666666666667, 3, 4.5}));
  CHECK(close(run_op("hardswish_gradient", {x, ones}),
              {0, 0, 0.1666666666666667, 0.4166666666666667, 0.5, 0.6666666666666666, 1, 1}));
}

TEST_CASE("mish and its gradient are torch's") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  CHECK(close(run_op("mish", {x}),
              {-0.1040957544863712, -0.1456474612756246, -0.3034014613741089, -0.129926963679141, 0,
               0.3752452113048951, 2.986535004967958, 4.498913714953316}));
  CHECK(close(run_op("mish_gradient", {x, ones}),
              {-0.07276041344326706, -0.09339311453232084, 0.05921675587739501, 0.4398156017218051,
               0.6, 0.8864243753577272, 1.021106910929444, 1.001907044168808}));
}

TEST_CASE("hardtanh and its gradient are torch's") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  const formula::Hardtanh given{.min_val = -0.5, .max_val = 2};
  const Given y{f64({1, 8}), run_op("hardtanh", {x}, given)};
  CHECK(close(y.content, {-0.5, -0.5, -0.5, -0.25, 0, 0.5, 2, 2}));
  CHECK(close(run_op("hardtanh_gradient", {y, ones}, given), {0, 0, 0, 1, 1, 1, 0, 0}));
  CHECK(close(run_op("hardtanh", {x}), {-1, -1, -1, -0.25, 0, 0.5, 1, 1}));
}

TEST_CASE("hardsigmoid and its gradient are torch's, whose 1 / 6 is a float") {
  const Given x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Given ones{f64({1, 8}), std::vector<double>(8, 1)};
  CHECK(close(run_op("hardsigmoid", {x}),
              {0, 0, 0.3333333333333333, 0.4583333333333333, 0.5, 0.5833333333333334, 1, 1}));
  CHECK(close(run_op("hardsigmoid_gradient", {x, ones}),
              {0, 0, 0.1666666716337204, 0.1666666716337204, 0.1666666716337204, 0.1666666716337204,
               0, 0}));
}

}  // namespace dpt
