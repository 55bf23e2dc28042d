// The training loop and the evaluation of an exported program.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "export/torch_parts.h"
#include "formats/python_call.h"
#include "optim/optimizer.h"

namespace dpt {
namespace {

class TrainingText {
 public:
  explicit TrainingText(const TorchFacts& facts) : f_(facts), spec_(facts.spec) {}

  std::string text() const { return evaluation() + groups() + train(); }

 private:
  bool scheduled() const { return spec_.schedule.schedule || spec_.schedule.warmup > 0; }
  bool by_step() const { return schedule_interval(spec_.schedule) == "step"; }

  // The weight of these samples' loss in a mean.
  std::string weight(std::string_view x, std::string_view y) const {
    return weight(f_.divisor, x, y);
  }
  static std::string weight(Divisor divisor, std::string_view x, std::string_view y) {
    switch (divisor) {
      case Divisor::one:
        return "1";
      case Divisor::targets:
        return fmt::format("weight_of(criterion, {})", y);
      case Divisor::samples:
      case Divisor::positions:
      case Divisor::elements:
      case Divisor::half_elements:
        break;
    }
    return fmt::format("len({})", x);
  }

  std::string criterion() const {
    const std::string out = type_of<LossType>(spec_.loss).torch(spec_.loss.settings);
    return f_.last_extent() ? "LastExtent" + out.substr(out.find('(')) : out;
  }

  std::string scaler() const {
    if (!f_.mixed.scaler.on) return "";
    const ScalerSettings &s = f_.mixed.scaler, usual;
    PythonCall call("torch.amp.GradScaler");
    call.expression("\"cpu\"").key("init_scale", s.init_scale, usual.init_scale);
    call.key("growth_factor", s.growth_factor, usual.growth_factor)
        .key("backoff_factor", s.backoff_factor, usual.backoff_factor)
        .key("growth_interval", s.growth_interval, usual.growth_interval);
    return call.str();
  }

  std::string optimizer() const {
    const auto& type = type_of<OptimizerType>(spec_.optimizer);
    std::any settings = spec_.optimizer.settings;
    if (f_.query.lr) settings = type.with(settings, *f_.query.lr, {});
    const std::string call = type.torch(settings);
    // Splits "optim.SGD(model.parameters(), lr=0.1)" into the class and its other arguments.
    constexpr std::string_view kFirst = "(model.parameters()";
    const size_t at = call.find(kFirst);
    const std::string name = call.substr(0, at), rest = call.substr(at + kFirst.size());
    const std::string parameters = f_.query.groups.empty() ? "model.parameters()"
                                   : f_.wraps_ddp()        ? "parameter_groups(model.module)"
                                                           : "parameter_groups(model)";
    if (f_.ddp && f_.query.exchange.shard_states)
      return fmt::format("ZeroRedundancyOptimizer({}, optimizer_class={}{}", parameters, name,
                         rest);
    return fmt::format("{}({}{}", name, parameters, rest);
  }

  // A function with the settings of each parameter; empty: all have the optimizer's.
  std::string groups() const {
    if (f_.query.groups.empty()) return "";
    std::string groups;
    for (const TorchGroup& g : f_.query.groups) {
      constexpr size_t kMostColumns = 100, kMargin = 8;
      const std::string settings =
          fmt::format("{{\"lr\": {}, \"weight_decay\": {}}}", python(g.lr), python(g.weight_decay));
      std::string line =
          fmt::format("([\"{}\"], {}),\n", fmt::join(g.parameters, "\", \""), settings);
      if (line.size() >= kMostColumns - kMargin)
        line = fmt::format("(\n    [\n        \"{}\",\n    ],\n    {},\n),\n",
                           fmt::join(g.parameters, "\",\n        \""), settings);
      groups += line;
    }
    return filled("groups", {{"groups", groups}});
  }

  static constexpr std::string_view kWeightedSampler =
      "WeightedRandomSampler(weights, len(weights))";

  // Empty: the loader has an order of its own.
  std::string sampler() const {
    if (!f_.shares_order())
      return f_.weighted() && spec_.data.reshuffle ? std::string(kWeightedSampler) : "";
    PythonCall call(f_.weighted() ? "WeightedShare" : "DistributedSampler");
    call.expression(f_.weighted() ? "weights" : "data");
    call.expression("num_replicas", f_.ddp ? "RANKS" : "1");
    call.expression("rank", f_.ddp ? "rank" : "0").key("shuffle", spec_.data.shuffle, true);
    if (f_.ddp)
      call.key("seed", spec_.data.sampler_seed, int64_t{0})
          .key("drop_last", spec_.data.drop_last, false);
    else
      call.expression("seed", "SEED");
    return call.str();
  }

  bool one_order() const {
    return sampler().empty() && spec_.data.shuffle && !spec_.data.reshuffle;
  }

  std::string loader() const {
    PythonCall call("DataLoader");
    call.expression("data").expression("batch_size", "BATCH_SIZE");
    if (!sampler().empty())
      call.expression("sampler", "sampler");
    else if (one_order())
      call.expression("sampler", "order");
    else
      call.key("shuffle", spec_.data.shuffle, false);
    return call.key("drop_last", spec_.data.drop_last, false).str();
  }

  std::string train() const {
    const auto half = f_.query.exchange.compress;
    const int64_t every = spec_.evaluate.every;
    // With a test loss, test() passes it to the scheduler instead.
    const bool by_epoch = scheduled() && !by_step() && !(f_.needs_metric() && spec_.evaluate.on);
    const std::string schedule =
        !scheduled() ? ""
                     : torch_schedule(spec_.schedule, by_step() ? f_.query.steps : f_.query.epochs);
    return filled("train",
                  {{"ddp", f_.ddp},
                   {"wraps_ddp", f_.wraps_ddp()},
                   {"averages", f_.query.average_every > 0},
                   {"compress", !f_.ddp || !half       ? ""
                                : *half == DType::bf16 ? "bf16"
                                                       : "fp16"},
                   {"ema", spec_.ema ? python(*spec_.ema) : ""},
                   {"bare_model", bare_model()},
                   {"criterion", criterion()},
                   {"optimizer", optimizer()},
                   {"scheduler", schedule},
                   {"warmup", warms_up_apart() ? torch_warmup(spec_.schedule) : ""},
                   {"warmup_epochs", spec_.schedule.warmup},
                   {"scaler", scaler()},
                   {"sampler", sampler()},
                   {"weighted", f_.weighted()},
                   {"one_order", one_order()},
                   {"order", f_.weighted() ? kWeightedSampler : "RandomSampler(data)"},
                   {"loader", loader()},
                   {"set_epoch", f_.shares_order() && spec_.data.shuffle && spec_.data.reshuffle},
                   {"step", step()},
                   {"by_targets", by_targets()},
                   {"test", test()},
                   {"every", spec_.evaluate.on && every != 1 ? std::to_string(every) : ""},
                   {"steps_by_mean", by_epoch && f_.needs_metric()},
                   {"steps_by_epoch", by_epoch && !f_.needs_metric()},
                   {"limited", spec_.steps.has_value()},
                   {"result_model", result_model()}});
  }

  // SequentialLR accepts no schedule that depends on a loss.
  bool warms_up_apart() const { return f_.needs_metric() && spec_.schedule.warmup > 0; }
  std::string step() const {
    const bool scales = f_.mixed.scaler.on;
    const bool sums = f_.ddp && f_.global_loss(), one = f_.divisor == Divisor::one;
    // Without a global loss, rank 0 has its own mean over steps, as PyTorch's tutorials print it.
    const std::string count = weight("x", "y");
    const std::string counted = (f_.ddp && !sums) || one ? "1" : sums ? "count" : count;
    return filled("step",
                  {{"gradient", gradient()},
                   {"unscales", scales && (spec_.clip.max_norm || spec_.clip.value)},
                   {"clip_norm", clip_norm()},
                   {"clip_value", spec_.clip.value ? python(*spec_.clip.value) : ""},
                   {"deferred", f_.deferred()},
                   {"scales", scales},
                   {"after", filled("after_update", {{"ema", spec_.ema.has_value()},
                                                     {"bare_model", bare_model()},
                                                     {"by_step", scheduled() && by_step()}})},
                   {"sums_targets", sums && by_targets()},
                   {"sums_means", sums && !by_targets() && !one},
                   {"sums_losses", sums && one},
                   {"count", count},
                   {"by_targets", by_targets()},
                   {"factor", counted == "1" ? "" : " * " + counted},
                   {"weight", counted},
                   {"averages", f_.query.average_every > 0},
                   {"limited", spec_.steps.has_value()}});
  }

  bool by_targets() const { return f_.divisor == Divisor::targets; }

  std::string in_autocast(const std::string& lines) const {
    return filled("autocast", {{"autocast", f_.autocast}, {"lines", lines}});
  }

  std::string model_of(std::string_view x) const {
    return f_.forwards_replicas() ? fmt::format("forward_replicas(model, {})", x)
                                  : fmt::format("model({})", x);
  }

  enum class Pass { whole, part, part_of_targets, test };
  std::string forward(Pass pass, const std::string& output, bool share = false) const {
    return in_autocast(filled("forward", {{"whole", pass == Pass::whole},
                                          {"part", pass == Pass::part},
                                          {"part_of_targets", pass == Pass::part_of_targets},
                                          {"test", pass == Pass::test},
                                          {"share", share},
                                          {"output", output}}));
  }

  // Forward and backward pass of a batch or of a part of it.
  std::string part(bool whole) const {
    // DistributedDataParallel averages over ranks, which is wrong for a loss that is a sum.
    const bool sums = f_.wraps_ddp() && f_.divisor == Divisor::one;
    std::string loss = whole ? "loss" : "part", share;
    if (sums) loss = fmt::format("({} * RANKS)", loss);
    if (f_.mixed.scaler.on) loss = fmt::format("scaler.scale({})", loss);
    if (!whole && by_targets())
      share = fmt::format("{} / whole if whole else 0", weight("x_part", "y_part"));
    else if (!whole && f_.divisor != Divisor::one)
      share = fmt::format("{} / {}", weight("x_part", "y_part"), weight("x", "y"));
    const Pass pass = whole ? Pass::whole : by_targets() ? Pass::part_of_targets : Pass::part;
    return filled("part",
                  {{"share", share},
                   {"forward", forward(pass, model_of(whole ? "x" : "x_part"), !share.empty())},
                   {"scaled_loss", loss},
                   {"sums", sums}});
  }

  // Forward and backward passes; afterwards `loss` is a Python number. Ranks exchange gradients
  // once per step, like dptrain's.
  std::string gradient() const {
    const bool whole = f_.query.accumulate == 1;
    return filled("gradient", {{"whole", whole},
                               {"part", part(whole)},
                               {"by_targets", by_targets()},
                               {"weight", weight("x", "y")},
                               {"ddp", f_.wraps_ddp()}});
  }

  std::string clip_norm() const {
    if (!spec_.clip.max_norm) return "";
    PythonCall call("nn.utils.clip_grad_norm_");
    call.expression("model.parameters()").key("max_norm", *spec_.clip.max_norm);
    return call.key("norm_type", spec_.clip.norm_type, 2).str();
  }

  std::string evaluation() const {
    if (!spec_.evaluate.on) return "";
    const std::string weight_of_batch = weight(f_.test_divisor, "x", "y");
    const bool by_targets = f_.test_divisor == Divisor::targets;
    const bool one = weight_of_batch == "1", ignores = f_.query.ignores;
    const bool positions = f_.by_class && (ignores || f_.test_target.shape.rank() > 1);
    std::string output = forward(Pass::test, "model(x)");
    if (!f_.autocast.empty()) output += "output = output.float()\n";
    return filled("evaluate",
                  {{"weight", one ? "" : weight_of_batch},
                   {"by_class", f_.by_class},
                   {"positions", !positions ? ""
                                 : ignores  ? "(y != criterion.ignore_index).sum().item()"
                                            : "y.numel()"},
                   {"batch_size", spec_.evaluate.batch_size},
                   {"forward", output},
                   {"by_targets", by_targets},
                   {"by_samples", !by_targets && !one},
                   {"sums", one},
                   {"ignores", ignores},
                   {"class_dim", f_.last_extent() ? -1 : 1},
                   {"loss", by_targets ? "total / weight if weight else math.nan"
                            : one      ? "total"
                                       : "total / weight"},
                   {"accuracy", ignores     ? "right / positions if positions else math.nan"
                                : positions ? "right / positions"
                                            : "right / len(data)"}});
  }

  std::string_view bare_model() const { return f_.wraps_ddp() ? "model.module" : "model"; }
  // The model that evaluations and the saved file have, which may be one with averaged weights. Its
  // buffers, such as running statistics, are the model's.
  std::string result_model() const {
    if (spec_.ema) return "averaged.module";
    if (!f_.averaged_state().empty()) return fmt::format("averaged({}, optimizer)", bare_model());
    return std::string(bare_model());
  }

  // The evaluation of an epoch; empty: there is none.
  std::string test() const {
    if (!spec_.evaluate.on) return "";
    return filled(
        "test", {{"by_class", f_.by_class},
                 {"result_model", result_model()},
                 {"ddp", f_.ddp},
                 {"needs_metric", f_.needs_metric()},
                 {"warmup_epochs", warms_up_apart() ? std::to_string(spec_.schedule.warmup) : ""}});
  }

  const TorchFacts& f_;
  const Spec& spec_;
};

}  // namespace

bool TorchFacts::needs_metric() const {
  return spec.schedule.schedule && type_of<ScheduleType>(spec.schedule.schedule).needs_metric;
}

std::string TorchFacts::averaged_state() const {
  const auto& type = type_of<OptimizerType>(spec.optimizer);
  const int state = type.average_state(spec.optimizer.settings);
  if (state < 0) return "";
  return type.states(spec.optimizer.settings, false)[static_cast<size_t>(state)];
}

bool TorchFacts::deferred() const { return query.deferred_batch_norm && !graph.updates.empty(); }

bool TorchFacts::norms_replicas() const {
  return graph.sync_points(Part::forward) > 0 && query.replicas > 1 && spec.sync_batch_norm == ddp;
}

bool TorchFacts::forwards_replicas() const {
  return norms_replicas() && !ddp && spec.parallel.what->name == "dp" && !spec.reproducible_shards;
}

bool TorchFacts::global_loss() const {
  return spec.log.loss != "rank0" || needs_metric() || divisor == Divisor::one;
}

bool TorchFacts::last_extent() const {
  const Shape& output = graph[graph.output].desc.shape;
  return type_of<LossType>(spec.loss).classes && output.rank() > 2 &&
         class_dim_of(spec, output) > 1;
}

std::string torch_training(const TorchFacts& facts) { return TrainingText(facts).text(); }

}  // namespace dpt
