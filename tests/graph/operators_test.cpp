// What holds for every operator: samples fit the shape rule, plain loops agree in both precisions,
// gradients agree with central differences.
#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.h"
#include "graph/operator.h"
#include "graph/sample_run.h"
#include "sanitizers.h"

namespace dpt {
namespace {

std::vector<HostTensor> inputs_of(const Sample& s, DType real) {
  std::mt19937 random(17);
  std::vector<HostTensor> in;
  for (size_t i = 0; i < s.query.in.size(); ++i) in.push_back(sample_input(s, i, real, random));
  return in;
}

// d sum(weights * results) / d input by the operator's gradient, for each input that has one.
// Weights of results are the upstreams; a loss has none, which means 1.
class GradientCheck {
 public:
  explicit GradientCheck(const Sample& s)
      : sample_(s), random_(17), run_(s, random_, false, DType::f64) {}

  size_t inputs() const { return sample_.query.in.size(); }
  bool rounds() const { return run_.graph[result()].desc.dtype != DType::f64; }
  bool has(size_t input) const { return run_.gradients[input] != kNoValue; }
  HostTensor& input(size_t i) { return run_.values[i]; }
  HostTensor& gradient(size_t i) { return value(run_.gradients[i]); }

  double weighted_sum() {
    std::vector<HostTensor> in(run_.values.begin(),
                               run_.values.begin() + static_cast<long>(inputs()));
    std::vector<HostTensor> out =
        run_reference(op(sample_.query.op), in, sample_.query.attrs, kSampleContext);
    if (run_.upstreams[0] == kNoValue) return out[0].get(0);
    double sum = 0;
    HostTensor& dy = value(run_.upstreams[0]);
    for (size_t i = 0; i < out[0].size(); ++i) sum += out[0].get(i) * dy.get(i);
    return sum;
  }

 private:
  ValueId result() const { return run_.graph.nodes[0].out[0]; }
  HostTensor& value(ValueId v) { return run_.values[static_cast<size_t>(v)]; }

  const Sample& sample_;
  std::mt19937 random_;
  SampleRun run_;
};

}  // namespace

TEST_CASE("every operator has samples, and the graph gives them the shapes of its shape rule") {
  for (const OperatorType& t : operator_table()) {
    CAPTURE(t.name);
    CHECK_FALSE(samples_of(t.name).empty());
    for (const Sample& s : samples_of(t.name)) {
      CHECK(s.query.op == t.name);
      CHECK(t.infer(s.query.in, s.query.attrs) == s.query.out);
      CHECK(s.ranges.size() <= s.query.in.size());
    }
  }
}

TEST_CASE("operators that compute gradients say so") {
  for (const OperatorType& t : operator_table()) {
    CAPTURE(t.name);
    const bool named = t.name.ends_with("_gradient") || t.name.ends_with("_backward");
    CHECK(t.is(Trait::backward) == (named && t.name != "scale_gradient"));
    CHECK((!t.is(Trait::backward) || t.gradient == nullptr));
  }
}

TEST_CASE("plain loops write every element, the same in single and double precision") {
  for (const OperatorType& t : operator_table())
    for (const Sample& s : samples_of(t.name)) {
      CAPTURE(t.name);
      CAPTURE(s.query.in[0].shape.str());
      auto single = inputs_of(s, DType::f32);
      std::vector<HostTensor> twice;
      for (HostTensor& x : single) {
        twice.emplace_back(TensorDesc{is_float(x.desc.dtype) ? DType::f64 : x.desc.dtype,
                                      x.desc.shape, x.desc.layout});
        for (size_t i = 0; i < x.size(); ++i) twice.back().set(i, x.get(i));
      }
      auto a = run_reference(t, single, s.query.attrs, kSampleContext);
      auto b = run_reference(t, twice, s.query.attrs, kSampleContext);
      for (size_t r = 0; r < a.size(); ++r) {
        CHECK(a[r].desc.dtype == s.query.out[r].dtype);
        for (size_t i = 0; i < a[r].size(); ++i) {
          const double x = a[r].get(i), y = b[r].get(i);
          // Sums are in double, so only the rounding of the result is left; dropout's scale and
          // additions are rounded too.
          INFO("result ", r, " element ", i, ": ", x, " and ", y);
          REQUIRE(std::abs(x - y) <= 4e-7 * std::max(1.0, std::abs(y)));
        }
      }
    }
}

TEST_CASE("every gradient agrees with central differences") {
  int checked = 0;
  for (const OperatorType& t : operator_table()) {
    if (t.gradient == nullptr) continue;
    for (const Sample& s : samples_of(t.name)) {
      if (!std::ranges::any_of(s.query.in, [](auto& d) { return is_float(d.dtype); })) continue;
      CAPTURE(t.name);
      CAPTURE(s.query.in[0].shape.str());
      GradientCheck check(s);
      if (check.rounds()) continue;  // a step, whatever the difference
      for (size_t i = 0; i < check.inputs(); ++i) {
        if (!check.has(i)) continue;
        REQUIRE(check.gradient(i).desc == check.input(i).desc);
        // About a hundred elements of a large input, in all of its rows and columns in turn: each
        // needs two runs of the operator.
        const size_t step = 1 + check.input(i).size() / (kSanitized ? 13 : 97);
        for (size_t e = 0; e < check.input(i).size(); e += step) {
          const double x = check.input(i).get(e), h = 1e-6;
          check.input(i).set(e, x + h);
          const double up = check.weighted_sum();
          check.input(i).set(e, x - h);
          const double down = check.weighted_sum();
          check.input(i).set(e, x);
          const double difference = (up - down) / (2 * h);
          // 1e-7: cancellation (1e-16 * |sum| / h) and the h^2 of the third derivative.
          INFO("input ", i, " element ", e, ": ", check.gradient(i).get(e), " and ", difference);
          REQUIRE(std::abs(check.gradient(i).get(e) - difference) <=
                  1e-7 * std::max(1.0, std::abs(difference)));
          ++checked;
        }
      }
    }
  }
  CHECK(checked > (kSanitized ? 1000 : 5000));
}

}  // namespace dpt
