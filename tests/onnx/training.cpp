#include <fmt/format.h>

#include "backend/cpu/update.h"
#include "graph/optimizer_step.h"
#include "onnx/nodes.h"
#include "optim/optimizer.h"

namespace dpt::onnx {
namespace {

// The scalars of dptrain's own optimizer at step t.
OptimizerStep step_of(std::string_view name, const std::string& settings, int64_t t, double lr) {
  used_words().emplace_back(name);
  SourceFile file{"settings", settings};
  Diagnostics d;
  const Choice c = golden::choice(optimizer_registry(), name, read_yaml(file, d));
  return static_cast<const OptimizerType*>(c.what)->step(c.settings, t, lr, {});
}

// The formula alone: ONNX's step T = 0 has no correction of the moments, which torch's every step
// has, and from T = 1 on it adds epsilon before the correction, where torch adds it after.
OptimizerStep adam(const Case& c, double lr, double t) {
  if (t > 0) throw Inexpressible{"epsilon is added before the correction of the moments"};
  if (c.number("norm_coefficient_post", 0) != 0)
    throw Inexpressible{"weights that are scaled after the update"};
  used_words().emplace_back("adam");
  const double beta1 = c.number("alpha", 0.9), beta2 = c.number("beta", 0.999);
  return formula::Adam<double>{.step_size = lr,
                               .one_minus_beta1 = 1 - beta1,
                               .beta2 = beta2,
                               .one_minus_beta2 = 1 - beta2,
                               .inverse_correction = 1,
                               .eps = c.number("epsilon", 0),
                               .weight_decay = c.number("norm_coefficient", 0)};
}

// T counts from 0, torch's steps from 1.
OptimizerStep adagrad(const Case& c, double lr, double t) {
  return step_of("adagrad",
                 fmt::format("{{lr: {}, lr_decay: {}, weight_decay: {}, eps: {}}}", text(lr),
                             text(c.number("decay_factor", 0)),
                             text(c.number("norm_coefficient", 0)), text(c.number("epsilon", 0))),
                 static_cast<int64_t>(t) + 1, lr);
}

// Not torch's first step, which makes the buffer: ONNX's is given.
OptimizerStep momentum(const Case& c, double lr, double t) {
  return step_of(
      "sgd",
      fmt::format("{{lr: {}, momentum: {}, dampening: {}, weight_decay: {}, nesterov: {}}}",
                  text(lr), text(c.number("alpha", 0)), text(t > 0 ? 1 - c.number("beta", 0) : 0),
                  text(c.number("norm_coefficient", 0)), c.word("mode", "") == "nesterov"),
      static_cast<int64_t>(t) + 2, lr);
}

std::vector<float> floats(const Tensor& t) {
  std::vector<float> out;
  for (double x : t.data) out.push_back(static_cast<float>(x));
  return out;
}

}  // namespace

// Inputs: R, T, then all weights, all gradients, all states of the first kind, ...; outputs
// likewise without gradients.
std::vector<Comparison> run_training_case(const Case& c) {
  const size_t kinds = c.op == "Adam" ? 4 : 3, count = (c.inputs.size() - 2) / kinds;
  const double lr = c.inputs[0].data[0], t = c.inputs[1].data[0];
  const OptimizerStep step = c.op == "Adam"      ? adam(c, lr, t)
                             : c.op == "Adagrad" ? adagrad(c, lr, t)
                                                 : momentum(c, lr, t);
  std::vector<Comparison> out;
  for (size_t i = 0; i < count; ++i) {
    std::vector<std::vector<float>> buffers;  // weight, gradient, states
    for (size_t k = 0; k < kinds; ++k) buffers.push_back(floats(c.inputs[2 + k * count + i]));
    const float* gradient = buffers[1].data();
    UpdateArgs args;
    args.weight = buffers[0].data();
    for (size_t k = 2; k < kinds; ++k) args.state[k - 2] = buffers[k].data();
    args.shards = &gradient;
    args.shard_count = 1;
    args.end = buffers[0].size();
    run_update(step, args);
    for (size_t k = 0; k + 1 < kinds; ++k) {
      const std::vector<float>& got = buffers[k == 0 ? 0 : k + 1];
      const Tensor& want = c.outputs[k * count + i];
      out.push_back({want.name, {got.begin(), got.end()}, want.data, kRounded});
    }
  }
  return out;
}

}  // namespace dpt::onnx
