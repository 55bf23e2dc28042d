// Runs an optimizer as tests/fixtures/optimizers.json did with PyTorch's: a 2-3-1 sigmoid net in
// double, MSE over all samples, 1001 steps.
#pragma once

#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "graph/optimizer_step.h"
#include "optim/fixture.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace dpt::optim_test {

// Weights of Linear(2,3), its bias, those of Linear(3,1): torch's order of parameters().
using Weights = std::array<double, 13>;

struct Samples {
  std::vector<double> inputs, targets;  // [N, 2], [N, 1]
};

// The gradient of mean((net(x) - y)^2); adds the loss to `loss`.
inline Weights net_gradient(const Weights& w, const Samples& samples, double& loss) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  Weights g{};
  const auto n = static_cast<double>(samples.targets.size());
  for (size_t i = 0; i < samples.targets.size(); ++i) {
    const double* x = &samples.inputs[2 * i];
    std::array<double, 3> h{};
    double sum = w[12];
    for (size_t j = 0; j < 3; ++j) {
      h[j] = sigmoid(w[2 * j] * x[0] + w[2 * j + 1] * x[1] + w[6 + j]);
      sum += w[9 + j] * h[j];
    }
    const double y = sigmoid(sum), error = y - samples.targets[i];
    loss += error * error / n;
    const double dsum = 2 * error / n * y * (1 - y);
    g[12] += dsum;
    for (size_t j = 0; j < 3; ++j) {
      g[9 + j] += dsum * h[j];
      const double dh = dsum * w[9 + j] * h[j] * (1 - h[j]);
      g[6 + j] += dh;
      g[2 * j] += dh * x[0];
      g[2 * j + 1] += dh * x[1];
    }
  }
  return g;
}

// One weight with its states, as a back end would update it.
struct Element {
  double& weight;
  std::array<double*, 3> state;
  double gradient;

  template <class Formula>
  void operator()(const Formula& s) const {
    formula::update(s, weight, state.data(), gradient);
  }
};

// Weights with exactly the buffers that the optimizer asked for: one that it uses and did not ask
// for is a null pointer.
class Trainer {
 public:
  Trainer(const OptimizerType& type, std::any options, bool cycles_momentum = false)
      : type_(type), options_(std::move(options)) {
    const std::vector<std::string> names = type_.states(options_, cycles_momentum);
    REQUIRE(names.size() <= 3);
    for (size_t s = 0; s < names.size(); ++s)
      if (!names[s].empty()) states_[s].assign(Weights{}.size(), type_.initial_state(options_));
  }

  void step(Weights& w, const Weights& gradient, const Momenta& momenta = {}) {
    step(w, gradient, type_.lr(options_), momenta);
  }
  void step(Weights& w, const Weights& gradient, double lr, const Momenta& momenta) {
    const OptimizerStep scalars = type_.step(options_, ++t_, lr, momenta);
    for (size_t i = 0; i < w.size(); ++i) {
      Element e{w[i], {}, gradient[i]};
      for (size_t s = 0; s < 3; ++s)
        if (!states_[s].empty()) e.state[s] = &states_[s][i];
      std::visit(e, scalars);
    }
  }

  const std::vector<double>& state(size_t s) const { return states_[s]; }

 private:
  const OptimizerType& type_;
  std::any options_;
  std::array<std::vector<double>, 3> states_;
  int64_t t_ = 0;
};

inline double largest_difference(const Weights& ours, const std::vector<double>& torchs) {
  REQUIRE(ours.size() == torchs.size());
  double largest = 0;
  for (size_t i = 0; i < ours.size(); ++i)
    largest = std::max(largest, std::abs(ours[i] - torchs[i]));
  return largest;
}

// A loss that goes to zero is a difference of numbers near one: it keeps no digit below 1e-14.
inline bool near(double ours, double torchs) {
  return std::abs(ours - torchs) <= 1e-9 * std::abs(torchs) + 1e-14;
}

// The schedule of a case, which counts steps; null: it has none.
inline std::unique_ptr<Schedule> schedule_of(const Node& test_case, double lr, int64_t steps) {
  const Node* given = find(test_case, "schedule");
  if (given == nullptr) return nullptr;
  Node::Entry named = given->entries.at(0);
  // The length of the run, which torch wants written.
  std::erase_if(named.value.entries,
                [](const Node::Entry& e) { return e.key.value == "total_steps"; });
  const ScheduleType& type = row(schedule_table(), named.key.value);
  return type.make(settings(type, named.value), lr, steps);
}

// All cases of one optimizer; returns how many, so that a test can say what it saw.
inline int check_golden_optimizer(std::string_view name) {
  const Document doc = fixture("optimizers");
  const Samples samples{numbers(at(at(doc.root, "inputs"), "data")),
                        numbers(at(at(doc.root, "targets"), "data"))};
  Weights initial{};
  std::ranges::copy(numbers(at(doc.root, "initial")), initial.begin());
  double loss = 0;
  CHECK(largest_difference(net_gradient(initial, samples, loss),
                           numbers(at(doc.root, "first_gradient"))) < 1e-15);  // a few roundings
  const std::vector<double> recorded = numbers(at(doc.root, "steps"));
  int cases = 0;
  for (const Node& c : at(doc.root, "cases").items) {
    const Node::Entry& named = at(c, "optimizer").entries.at(0);
    row(optimizer_table(), named.key.value);  // or no test would read this case
    if (named.key.value != name) continue;
    ++cases;
    CAPTURE(c.where.line);
    const OptimizerType& type = row(optimizer_table(), name);
    const std::any options = settings(type, named.value);
    const double lr = type.lr(options);
    const std::unique_ptr<Schedule> schedule =
        schedule_of(c, lr, static_cast<int64_t>(recorded.back()));
    const bool cycles = schedule && schedule->momentum(0);
    Momenta momenta;
    if (cycles) momenta = [&](int64_t step) { return *schedule->momentum(step - 1); };
    Trainer trainer(type, options, cycles);
    const Node* const averages = find(c, "averages");
    Weights w = initial;
    size_t next = 0;
    for (int64_t t = 1; next < recorded.size(); ++t) {
      loss = 0;
      const int64_t scheduled = type.uses_previous_lr ? std::max<int64_t>(t - 2, 0) : t - 1;
      trainer.step(w, net_gradient(w, samples, loss), schedule ? schedule->lr(scheduled) : lr,
                   momenta);
      if (static_cast<double>(t) != recorded[next]) continue;
      CAPTURE(t);
      // The gate of 1e-9: roundings of 1e-16 a step, which these cases do not let grow (they were
      // chosen so, see the fixture), but whose order is torch's own.
      const std::vector<double> expected = numbers(at(c, "parameters").items[next]);
      REQUIRE(expected.size() == w.size());
      for (size_t i = 0; i < w.size(); ++i) CHECK(near(w[i], expected[i]));
      CHECK(near(loss, number(at(c, "losses").items[next])));
      if (averages) {
        const std::vector<double> average = numbers(averages->items[next]);
        for (size_t i = 0; i < w.size(); ++i) CHECK(near(trainer.state(0)[i], average[i]));
      }
      ++next;
    }
  }
  return cases;
}

inline std::string optimizer_text(std::string_view name, const std::string& text) {
  const OptimizerType& type = row(optimizer_table(), name);
  return type.torch(settings(type, text));
}

inline std::vector<std::string> states(std::string_view name, const std::string& text,
                                       bool cycles_momentum = false) {
  const OptimizerType& type = row(optimizer_table(), name);
  return type.states(settings(type, text), cycles_momentum);
}

inline std::string optimizer_complaints(std::string_view name, const std::string& text) {
  return complaints(row(optimizer_table(), name), text);
}

}  // namespace dpt::optim_test
