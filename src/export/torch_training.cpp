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

  std::string text() const {
    return (spec_.evaluate.on ? evaluation() : "") + groups() +
           section(f_.ddp ? "def train(rank, store, arguments):\n" : "def train(arguments):\n") +
           indent(setup() + epochs() + ending(), 4);
  }

 private:
  bool scheduled() const { return spec_.schedule.schedule || spec_.schedule.warmup > 0; }
  bool by_step() const { return schedule_interval(spec_.schedule) == "step"; }

  // The weight of these samples' loss in a mean.
  std::string weight(std::string_view x, std::string_view y) const {
    switch (f_.divisor) {
      case Divisor::one:
        return "1";
      case Divisor::targets:
        return fmt::format("weight_of(criterion, {})", y);
      case Divisor::samples:
      case Divisor::positions:
      case Divisor::elements:
        break;
    }
    return fmt::format("len({})", x);
  }

  std::string setup() const {
    std::string out;
    if (f_.ddp)
      out +=
          "dist.init_process_group(\n"
          "    \"gloo\", init_method=f\"file://{store}\", rank=rank, world_size=RANKS\n"
          ")\n"
          "torch.set_num_threads(max(1, os.cpu_count() // RANKS))\n";
    out += "data = train_data()\n";
    if (spec_.evaluate.on) out += "test = test_data()\n";
    out += "torch.manual_seed(SEED)\n";
    out +=
        "model = make_model()\n"
        "if arguments.weights:\n"
        "    model.load_state_dict(read_weights(arguments.weights))\n";
    if (f_.ddp) out += "model = DistributedDataParallel(model)\n";
    if (const auto half = f_.query.exchange.compress; f_.ddp && half)
      out += fmt::format("model.register_comm_hook(None, default_hooks.{}_compress_hook)\n",
                         *half == DType::bf16 ? "bf16" : "fp16");
    if (spec_.ema)
      out += fmt::format("averaged = AveragedModel({}, multi_avg_fn=get_ema_multi_avg_fn({}))\n",
                         bare_model(), python(*spec_.ema));
    std::string criterion = type_of<LossType>(spec_.loss).torch(spec_.loss.settings);
    if (f_.last_extent()) criterion = "LastExtent" + criterion.substr(criterion.find('('));
    out += fmt::format("criterion = {}\noptimizer = {}\n", criterion, optimizer());
    if (scheduled())
      out +=
          fmt::format("scheduler = {}\n",
                      torch_schedule(spec_.schedule, by_step() ? f_.query.steps : f_.query.epochs));
    if (warms_up_apart()) out += fmt::format("warmup = {}\n", torch_warmup(spec_.schedule));
    if (f_.mixed.scaler.on) {
      const ScalerSettings &s = f_.mixed.scaler, usual;
      PythonCall call("torch.amp.GradScaler");
      call.expression("\"cpu\"").key("init_scale", s.init_scale, usual.init_scale);
      call.key("growth_factor", s.growth_factor, usual.growth_factor)
          .key("backoff_factor", s.backoff_factor, usual.backoff_factor)
          .key("growth_interval", s.growth_interval, usual.growth_interval);
      out += fmt::format("scaler = {}\n", call.str());
    }
    return out + loader() + "losses = []\n";
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
                                   : f_.ddp                ? "parameter_groups(model.module)"
                                                           : "parameter_groups(model)";
    if (f_.ddp && f_.query.exchange.shard_states)
      return fmt::format("ZeroRedundancyOptimizer({}, optimizer_class={}{}", parameters, name,
                         rest);
    return fmt::format("{}({}{}", name, parameters, rest);
  }

  // A function with the settings of each parameter; empty: all have the optimizer's.
  std::string groups() const {
    if (f_.query.groups.empty()) return "";
    std::string body = "named = dict(model.named_parameters())\ngroups = [\n";
    for (const TorchGroup& g : f_.query.groups) {
      constexpr size_t kMostColumns = 100;
      const std::string names = fmt::format("\"{}\"", fmt::join(g.parameters, "\", \""));
      const std::string settings =
          fmt::format("{{\"lr\": {}, \"weight_decay\": {}}}", python(g.lr), python(g.weight_decay));
      const std::string line = fmt::format("    ([{}], {}),\n", names, settings);
      if (line.size() < kMostColumns - 4) {
        body += line;
        continue;
      }
      body += "    (\n        [\n";
      for (const std::string& name : g.parameters)
        body += fmt::format("            \"{}\",\n", name);
      body += fmt::format("        ],\n        {},\n    ),\n", settings);
    }
    body +=
        "]\n"
        "return [{\"params\": [named[name] for name in names], **settings} for names, settings in "
        "groups]\n";
    return section("def parameter_groups(model):\n" + indent(body, 4));
  }

  std::string loader() const {
    const DataSpec& data = spec_.data;
    PythonCall call("DataLoader");
    call.expression("data").expression("batch_size", "BATCH_SIZE");
    std::string out;
    if (f_.ddp || spec_.reproducible_shards) {
      PythonCall sampler("DistributedSampler");
      sampler.expression("data").expression("num_replicas", f_.ddp ? "RANKS" : "1");
      sampler.expression("rank", f_.ddp ? "rank" : "0").key("shuffle", data.shuffle, true);
      if (f_.ddp)
        sampler.key("drop_last", data.drop_last, false);
      else
        sampler.expression("seed", "SEED");
      out += fmt::format("sampler = {}\n", sampler.str());
      call.expression("sampler", "sampler");
    } else if (data.shuffle && !data.reshuffle) {
      out +=
          "torch.empty((), dtype=torch.int64).random_()  # what a DataLoader draws first\n"
          "order = list(RandomSampler(data))  # the same in every epoch\n";
      call.expression("sampler", "order");
    } else {
      call.key("shuffle", data.shuffle, false);
    }
    return out + fmt::format("loader = {}\n", call.key("drop_last", data.drop_last, false).str());
  }

  std::string epochs() const {
    const DataSpec& data = spec_.data;
    std::string body;
    if ((f_.ddp || spec_.reproducible_shards) && data.shuffle && data.reshuffle)
      body += "sampler.set_epoch(epoch)\n";
    body += "total, weight = 0.0, 0\n";
    body += "for x, y in loader:\n" + indent(step(), 4);
    body += f_.divisor == Divisor::targets ? "mean = total / weight if weight else math.nan\n"
                                           : "mean = total / weight\n";
    if (f_.ddp) body += "if rank == 0:\n    ";
    body += "print(f\"Epoch [{epoch + 1}/{EPOCHS}], Loss: {mean:.4f}\")\n";
    if (spec_.evaluate.on) body += evaluate_call();
    // With a test loss, evaluate_call() passes it to the scheduler instead.
    if (scheduled() && !by_step() && !(f_.needs_metric() && spec_.evaluate.on))
      body += f_.needs_metric() ? step_by("mean") : "scheduler.step()\n";
    if (warms_up_apart())
      body += fmt::format("if epoch < {}:\n    warmup.step()\n", spec_.schedule.warmup);
    if (spec_.steps) body += "if len(losses) == STEPS:\n    break\n";
    return "for epoch in range(EPOCHS):\n" + indent(body, 4);
  }

  // SequentialLR accepts no schedule that depends on a loss.
  bool warms_up_apart() const { return f_.needs_metric() && spec_.schedule.warmup > 0; }
  std::string step_by(std::string_view metric) const {
    const std::string call = fmt::format("scheduler.step({})\n", metric);
    if (!warms_up_apart()) return call;
    return fmt::format("if epoch >= {}:\n    {}", spec_.schedule.warmup, call);
  }

  std::string step() const {
    const bool scales = f_.mixed.scaler.on, counts = scheduled() && by_step();
    std::string out = "optimizer.zero_grad()\n" + gradient() + clip();
    if (f_.deferred()) out += "move_statistics(model)\n";
    if (!scales) out += "optimizer.step()\n";
    std::string then;  // what follows an update
    if (spec_.ema) then += fmt::format("averaged.update_parameters({})\n", bare_model());
    if (counts) then += "scheduler.step()\n";
    if (scales && !then.empty()) out += "scale = scaler.get_scale()\n";
    if (scales) out += "scaler.step(optimizer)\nscaler.update()\n";
    if (scales && !then.empty())
      out += "if scaler.get_scale() >= scale:  # else the step was skipped\n" + indent(then, 4);
    else
      out += then;
    const bool mean = f_.divisor != Divisor::one;
    const std::string count = weight("x", "y");
    std::string counted = count;
    if (f_.ddp && !f_.global_loss()) {
      counted = "1";  // rank 0's own mean over steps, as PyTorch's tutorials print it
    } else if (f_.ddp && f_.divisor == Divisor::targets) {
      out += fmt::format(
          "count = {}\n"
          "loss = sum_over_ranks(loss * count if count else 0.0)\n"
          "count = sum_over_ranks(count)\n"
          "loss = loss / count if count else math.nan\n",
          count);
      counted = "count";
    } else if (f_.ddp && mean) {
      out += fmt::format(
          "count = sum_over_ranks({0})\n"
          "loss = sum_over_ranks(loss * {0}) / count\n",
          count);
      counted = "count";
    } else if (f_.ddp) {
      out += "loss = sum_over_ranks(loss)\n";
    }
    out += "losses.append(loss)\n";
    const std::string add = counted == "1"
                                ? "total += loss\nweight += 1\n"
                                : fmt::format("total += loss * {0}\nweight += {0}\n", counted);
    out += f_.divisor == Divisor::targets
               ? "if not math.isnan(loss):  # else all targets are ignored\n" + indent(add, 4)
               : add;
    if (spec_.steps) out += "if len(losses) == STEPS:\n    break\n";
    return out;
  }

  std::string in_autocast(const std::string& lines) const {
    if (f_.autocast.empty()) return lines;
    return fmt::format("with torch.autocast(\"cpu\", dtype=torch.{}):\n", f_.autocast) +
           indent(lines, 4);
  }

  std::string forward(std::string_view x) const {
    return f_.forwards_replicas() ? fmt::format("forward_replicas(model, {})", x)
                                  : fmt::format("model({})", x);
  }

  // Forward and backward pass; afterwards `loss` is a Python number.
  std::string gradient() const {
    // DistributedDataParallel averages over ranks, which is wrong for a loss that is a sum.
    const bool sum = f_.ddp && f_.divisor == Divisor::one;
    const auto backward = [&](std::string loss) {
      if (sum) loss = fmt::format("({} * RANKS)", loss);
      if (f_.mixed.scaler.on) loss = fmt::format("scaler.scale({})", loss);
      return fmt::format("{}.backward(){}\n", loss,
                         sum ? "  # DistributedDataParallel divides by RANKS" : "");
    };
    if (f_.query.accumulate == 1)
      return in_autocast(fmt::format("loss = criterion({}, y)\n", forward("x"))) +
             backward("loss") + "loss = loss.item()\n";
    const bool targets = f_.divisor == Divisor::targets;
    const std::string output = forward("x_part");
    std::string loop = in_autocast(fmt::format("part = criterion({}, y_part)\n", output));
    if (targets)
      loop = fmt::format("share = {} / whole if whole else 0\n", weight("x_part", "y_part")) +
             // Without counted targets the loss would be 0 / 0.
             in_autocast(fmt::format("output = {}\n"
                                     "part = criterion(output, y_part) * share if share else "
                                     "output.sum() * 0\n",
                                     output));
    else if (f_.divisor != Divisor::one)
      loop = fmt::format("share = {} / {}\n", weight("x_part", "y_part"), weight("x", "y")) +
             in_autocast(fmt::format("part = criterion({}, y_part) * share\n", output));
    loop += backward("part");
    const std::string add = "loss += part.item()\n";
    const std::string begin =
        targets ? fmt::format("whole = {}\nloss = 0.0 if whole else math.nan\n", weight("x", "y"))
                : "loss = 0.0\n";
    if (!f_.ddp)
      return begin + "for x_part, y_part in zip(x.chunk(ACCUMULATE), y.chunk(ACCUMULATE)):\n" +
             indent(loop + add, 4);
    // Ranks exchange gradients once per step, like dptrain's.
    return begin +
           "parts = list(zip(x.chunk(ACCUMULATE), y.chunk(ACCUMULATE)))\n"
           "for number, (x_part, y_part) in enumerate(parts, 1):\n"
           "    with model.no_sync() if number < len(parts) else contextlib.nullcontext():\n" +
           indent(loop, 8) + indent(add, 4);
  }

  std::string clip() const {
    std::string out;
    if (f_.mixed.scaler.on && (spec_.clip.max_norm || spec_.clip.value))
      out += "scaler.unscale_(optimizer)\n";
    if (spec_.clip.max_norm) {
      PythonCall call("nn.utils.clip_grad_norm_");
      call.expression("model.parameters()").key("max_norm", *spec_.clip.max_norm);
      out += call.key("norm_type", spec_.clip.norm_type, 2).str() + "\n";
    }
    if (spec_.clip.value)
      out += fmt::format("nn.utils.clip_grad_value_(model.parameters(), {})\n",
                         python(*spec_.clip.value));
    return out;
  }

  std::string evaluation() const {
    std::string loop = "output = model(x)\n";
    const std::string count = weight("x", "y");
    loop = in_autocast(loop);
    if (!f_.autocast.empty()) loop += "output = output.float()\n";
    const bool targets = f_.divisor == Divisor::targets;
    if (targets)
      loop += fmt::format(
          "count = {}\n"
          "if count:  # else all targets are ignored, and their mean is nan\n"
          "    total += criterion(output, y).item() * count\n"
          "    weight += count\n",
          count);
    else
      loop += count == "1" ? "total += criterion(output, y).item()\n"
                           : fmt::format(
                                 "total += criterion(output, y).item() * {0}\n"
                                 "weight += {0}\n",
                                 count);
    const std::string_view kept = f_.query.ignores ? " & (y != criterion.ignore_index)" : "";
    if (f_.by_class())
      loop += fmt::format("right += ({0}output.argmax(dim={1}) == y{2}{3}).sum().item()\n",
                          kept.empty() ? "" : "(", f_.last_extent() ? -1 : 1,
                          kept.empty() ? "" : ")", kept);
    const bool positions = f_.by_class() && (f_.query.ignores || f_.query.target.shape.rank() > 1);
    if (positions)
      loop += f_.query.ignores ? "positions += (y != criterion.ignore_index).sum().item()\n"
                               : "positions += y.numel()\n";
    std::string body = "model.eval()\ntotal = 0.0\n";
    if (count != "1") body += "weight = 0\n";
    if (f_.by_class()) body += positions ? "right = positions = 0\n" : "right = 0\n";
    body +=
        fmt::format("for x, y in DataLoader(data, batch_size={}):\n", spec_.evaluate.batch_size) +
        indent(loop, 4) + "model.train()\n";
    body += targets        ? "return total / weight if weight else math.nan"
            : count == "1" ? "return total"
                           : "return total / weight";
    if (f_.by_class())
      body += f_.query.ignores ? ", right / positions if positions else math.nan"
              : positions      ? ", right / positions"
                               : ", right / len(data)";
    body += "\n";
    return section("@torch.no_grad()\ndef evaluate(model, criterion, data):\n" + indent(body, 4));
  }

  std::string_view bare_model() const { return f_.ddp ? "model.module" : "model"; }
  // With `ema`, evaluations and the saved file have the averaged weights. Its buffers, such as
  // running statistics, are the model's.
  std::string_view result_model() const { return spec_.ema ? "averaged.module" : bare_model(); }

  std::string evaluate_call() const {
    std::string out = f_.by_class() ? "test_loss, accuracy" : "test_loss";
    out += fmt::format(" = evaluate({}, criterion, test)\n", result_model());
    if (f_.ddp) out += "if rank == 0:\n    ";
    out += f_.by_class() ? "print(f\"Test loss: {test_loss:.4f}, accuracy: {accuracy:.4f}\")\n"
                         : "print(f\"Test loss: {test_loss:.4f}\")\n";
    if (f_.needs_metric()) out += step_by("test_loss");
    if (spec_.evaluate.every == 1) return out;
    return fmt::format("if (epoch + 1) % {} == 0:\n", spec_.evaluate.every) + indent(out, 4);
  }

  std::string ending() const {
    std::string out = f_.ddp ? "if rank == 0 and arguments.losses:\n" : "if arguments.losses:\n";
    out +=
        "    lines = [\n"
        "        f'{{\"step\": {step}, \"loss\": {loss:.9g}}}\\n' for step, loss in "
        "enumerate(losses, 1)\n"
        "    ]\n"
        "    Path(arguments.losses).write_text(\"\".join(lines))\n";
    out += fmt::format("if {}arguments.save:\n    write_weights({}.state_dict(), arguments.save)\n",
                       f_.ddp ? "rank == 0 and " : "", result_model());
    if (f_.ddp) out += "dist.destroy_process_group()\n";
    return out;
  }

  const TorchFacts& f_;
  const Spec& spec_;
};

}  // namespace

bool TorchFacts::needs_metric() const {
  return spec.schedule.schedule && type_of<ScheduleType>(spec.schedule.schedule).needs_metric;
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
  return output.rank() > 2 && class_dim_of(spec, output) > 1;
}

std::string torch_training(const TorchFacts& facts) { return TrainingText(facts).text(); }

}  // namespace dpt
