#include "export/torch.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "data/dataset.h"
#include "export/torch_parts.h"
#include "formats/python_call.h"
#include "layers/initialisation.h"
#include "optim/precision.h"

namespace dpt {
namespace {

constexpr const char* kReadIdx = R"py(def read_idx(path):
    """A file of the MNIST format, gzipped or not, as a tensor of bytes."""
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    rank = data[3]
    shape = struct.unpack_from(f">{rank}I", data, 4)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8, offset=4 + 4 * rank).reshape(shape)
)py";

// Only .safetensors files need a package besides PyTorch.
constexpr const char* kWeightFiles = R"py(def read_weights(path):
    """The state dict in a .safetensors file, as dptrain's, or in a file of torch.save."""
    if Path(path).suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    return torch.load(path, weights_only=True)


def write_weights(state, path):
    if Path(path).suffix == ".safetensors":
        from safetensors.torch import save_file

        save_file(state, path)
    else:
        torch.save(state, path)
)py";

constexpr const char* kWeightOf = R"py(def weight_of(criterion, y):
    """What the mean divides by: the sum of the weights of these targets."""
    kept = y[y != criterion.ignore_index]
    return len(kept) if criterion.weight is None else criterion.weight[kept].sum().item()
)py";

// Flattens outputs [..., C] and targets to [samples, C] for the criterion. Placeholders: the class,
// and the last flattened target dimension (targets that are probabilities keep C).
constexpr const char* kLastExtent = R"py(class LastExtent({}):
    """The last extent of the output has the scores of each position."""

    def forward(self, output, target):
        return super().forward(output.flatten(0, -2), target.flatten(0, {}))
)py";

constexpr const char* kDeferStatistics = R"py(def defer_statistics(model):
    """Batch norm normalises each part by itself, and move_statistics comes once a batch."""
    for layer in model.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.track_running_stats:
            layer.sums = []
            layer.forward = functools.partial(deferred_forward, layer)


def deferred_forward(layer, x):
    if not layer.training:
        return type(layer).forward(layer, x)
    with torch.no_grad():
        over = [dim for dim in range(x.dim()) if dim != 1]
        wide = x.double()
        layer.sums.append((wide.sum(over), (wide**2).sum(over), x.numel() // x.shape[1]))
    return nn.functional.batch_norm(
        x, None, None, layer.weight, layer.bias, training=True, eps=layer.eps
    )


@torch.no_grad()
def move_statistics(model):
    """By the sums over all parts; the variance is the biased one, as in torch's Pipe."""
    for layer in model.modules():
        if getattr(layer, "sums", None):
            total, squares, count = (sum(each) for each in zip(*layer.sums))
            layer.sums.clear()
            layer.num_batches_tracked += 1
            part = layer.momentum
            if part is None:
                part = 1 / layer.num_batches_tracked.item()
            mean = total / count
            variance = squares / count - mean**2
            layer.running_mean.copy_((1 - part) * layer.running_mean + part * mean)
            layer.running_var.copy_((1 - part) * layer.running_var + part * variance)
)py";

constexpr const char* kLoadFitting = R"py(def load_fitting(model, weights):
    """Tensors whose names, types and shapes fit; the others keep their initial values."""
    fitting = model.state_dict()
    for name, value in weights.items():
        own = fitting.get(name.removeprefix("module."))
        if own is not None and (own.dtype, own.shape) == (value.dtype, value.shape):
            own.copy_(value)
    model.load_state_dict(fitting)
)py";

constexpr const char* kForwardReplicas = R"py(def forward_replicas(model, x):
    """As DataParallel: each part is normalized alone, and the first one's statistics are kept."""
    outputs = []
    for part in x.chunk(REPLICAS):
        copies = {name: buffer.clone() for name, buffer in model.named_buffers()} if outputs else {}
        outputs.append(torch.func.functional_call(model, copies, (part,)))
    return torch.cat(outputs)
)py";

constexpr const char* kSumOverRanks = R"py(def sum_over_ranks(value):
    total = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(total)
    return total.item()
)py";

// Refuses specs whose batch norm uses statistics over other samples than the exported program
// would.
void check_batch_norm(const TorchFacts& f) {
  if (!f.norms_replicas() || f.forwards_replicas()) return;
  if (f.ddp)
    fail(Fault::spec,
         "with sync_batch_norm, batch norm uses the statistics of all ranks, but PyTorch's "
         "SyncBatchNorm runs on GPUs only; export with parallel=single, which gives the same "
         "numbers, or with sync_batch_norm=false");
  fail(Fault::spec,
       "each of the {} replicas has statistics of its own for batch norm, but the equivalent "
       "program is one process; export with sync_batch_norm=true or parallel=single",
       f.query.replicas);
}

// What a training loop of PyTorch's examples does not do.
void check_evaluation(const Spec& spec) {
  const auto refuse = [](std::string_view key, std::string_view without) {
    fail(Fault::spec, "the PyTorch program has no `{}`; export with {}", key, without);
  };
  if (spec.data.validation.on()) refuse("data.validation", "data.validation=none");
  if (spec.early_stop.patience > 0) refuse("early_stop", "early_stop=none");
  if (spec.minutes) refuse("minutes", "minutes=none");
  if (spec.evaluate.every_steps > 0) refuse("evaluate.every_steps", "evaluate.every=1");
  for (const Located<std::string>& metric : spec.evaluate.metrics)
    if (metric.value != "loss" && metric.value != "accuracy")
      refuse("evaluate.metrics", "evaluate.metrics=[]");
}

TorchFacts facts_of(const Spec& spec, const TorchExport& query) {
  check_evaluation(spec);
  const std::string_view mode = spec.parallel.what->name;
  if (mode != "single" && mode != "dp" && mode != "ddp" && mode != "pipeline")
    fail(Fault::spec,
         "parallel mode '{}' has no equivalent program; single, dp, ddp and pipeline have one",
         mode);
  // With fixed shards, all modes take samples in one order and give the same numbers.
  const bool ranks = mode == "ddp" || (mode == "pipeline" && query.ranks > 1);
  TorchFacts facts{
      .spec = spec, .query = query, .ddp = ranks && !spec.reproducible_shards.has_value()};
  if (const auto& precision = type_of<PrecisionType>(spec.precision); precision.mixed) {
    facts.mixed = precision.mixed(spec.precision.settings);
    if (facts.mixed.level > PrecisionPolicy::Level::autocast || facts.mixed.cuda_lists == true)
      fail(Fault::spec,
           "precision: only fp32 and level o1 with the CPU's lists have an equivalent program, "
           "torch.autocast on the CPU");
    if (facts.mixed.level == PrecisionPolicy::Level::autocast)
      facts.autocast = precision.dtype == DType::bf16 ? "bfloat16" : "float16";
  }
  Diagnostics d;
  facts.graph = build_graph(spec,
                            {.input = query.input,
                             .target = query.target,
                             .differentiate = false,
                             .classes = query.classes,
                             .tokens = query.tokens,
                             .ignores = query.ignores},
                            d, &facts.layers);
  if (!d.ok()) throw Error(Fault::spec, d.render());
  facts.divisor = divisor_of(spec, facts.graph);
  check_batch_norm(facts);
  if (facts.deferred() && spec.accumulate > 1)
    fail(Fault::spec,
         "with `accumulate`, `deferred_batch_norm` sees a batch as several batches, but the "
         "equivalent program sees one; export without one of the two keys");
  if (query.exchange.compress && !facts.ddp)
    fail(Fault::spec,
         "with `reproducible` the equivalent program is one process, which compresses nothing, but "
         "`compress` rounds the gradients of each shard; export without one of the two");
  return facts;
}

// Notes on real or apparent differences from dptrain.
std::string notes(const TorchFacts& f) {
  std::string out;
  const auto note = [&](std::string_view text) { out += fmt::format("\n{}\n", text); };
  if (f.spec.reproducible_shards)
    note(
        "With `reproducible`, every mode gives the results of one process, so this program is one "
        "process.");
  else if (f.forwards_replicas())
    note(
        "One process computes the parts that DataParallel gives its devices, one after the other.");
  else if (f.spec.parallel.what->name == "dp")
    note(
        "DataParallel gives the results of one process on any number of devices, so this program "
        "is one.");
  if (f.spec.parallel.what->name == "pipeline")
    note(
        "The stages of a pipeline give the results of one device that computes the chunks one by "
        "one,\n"
        "so a replica is one process here.");
  if (f.ddp && f.query.samples % f.query.ranks != 0 && !f.spec.data.pad && !f.spec.data.drop_last)
    note(fmt::format(
        "{} samples on {} ranks: DistributedSampler repeats some to make the ranks even,\n"
        "dptrain does so only with `pad: true`.",
        f.query.samples, f.query.ranks));
  if (!f.ddp && f.query.exchange.shard_states)
    note("`shard: optimizer` does not change results, and one process holds all optimizer states.");
  if (f.ddp && f.query.exchange.compress && f.query.shards > f.query.ranks)
    note(
        "dptrain rounds the gradients of each core, the hook those of each rank: they are the same "
        "with\n`cores: 1`.");
  if (f.ddp && f.divisor == Divisor::targets)
    note(
        "DistributedDataParallel takes the mean of the ranks' weighted means, dptrain one mean "
        "over\n"
        "all samples.");
  if (torch_draws(f.spec))
    note(
        "Random transforms are torchvision's, with PyTorch's random numbers: images are changed "
        "in\n"
        "the same way as in dptrain, but not by the same amounts.");
  const bool dropout =
      std::ranges::any_of(f.graph.nodes, [](const GraphNode& n) { return n.op->random; });
  if (dropout && f.spec.random != "torch")
    note("Dropout masks are PyTorch's; dptrain draws the same ones with `random: torch`.");
  return out;
}

std::string docstring(const TorchFacts& f) {
  return fmt::format(
      "\"\"\"{} as a PyTorch program, written by `dptrain export --to torch`.\n\n"
      "The initial weights and the order of samples are dptrain's, so that one loss curve can be "
      "laid\n"
      "over the other. `--losses FILE` writes each step's loss, for `dptrain compare`. "
      "`--weights FILE`\n"
      "starts from weights of dptrain, and `--save FILE` writes the trained ones.\n{}\"\"\"\n\n",
      f.spec.name, notes(f));
}

// Imports what the body uses, in isort's order.
std::string imports(std::string_view body) {
  struct Import {
    std::string_view used, line;
  };
  static constexpr Import kStandard[] = {{"argparse.", "import argparse"},
                                         {"contextlib.", "import contextlib"},
                                         {"csv.", "import csv"},
                                         {"functools.", "import functools"},
                                         {"gzip.", "import gzip"},
                                         {"json.", "import json"},
                                         {"math.", "import math"},
                                         {"os.", "import os"},
                                         {"struct.", "import struct"},
                                         {"tarfile.", "import tarfile"},
                                         {"tempfile.", "import tempfile"},
                                         {"OrderedDict(", "from collections import OrderedDict"},
                                         {"Path(", "from pathlib import Path"}};
  static constexpr Import kForeign[] = {
      {"np.", "import numpy as np"},
      {"torch.", "import torch"},
      {"dist.", "import torch.distributed as dist"},
      {"mp.", "import torch.multiprocessing as mp"},
      {"optim.", "from torch import nn, optim"},
      {"default_hooks.", "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks"},
      {"ZeroRedundancyOptimizer(", "from torch.distributed.optim import ZeroRedundancyOptimizer"},
      {"= DistributedDataParallel(", "from torch.nn.parallel import DistributedDataParallel"},
      {"lr_scheduler.", "from torch.optim import lr_scheduler"},
      {"= AveragedModel(",
       "from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn"}};
  static constexpr std::string_view kData[] = {"DataLoader", "DistributedSampler", "RandomSampler",
                                               "TensorDataset"};
  static constexpr std::string_view kTorchvision[] = {"datasets", "transforms"};
  // Finds `word` only as a whole identifier, not as the end of another.
  const auto used = [&](std::string_view word) {
    for (size_t at = body.find(word); at != body.npos; at = body.find(word, at + 1)) {
      const char before = at == 0 ? ' ' : body[at - 1];
      if (!std::isalnum(static_cast<unsigned char>(before)) && before != '_' && before != '.')
        return true;
    }
    return false;
  };
  std::string out;
  for (const Import& i : kStandard)
    if (used(i.used)) out += fmt::format("{}\n", i.line);
  out += "\n";
  for (const Import& i : kForeign)
    if (used(i.used)) out += fmt::format("{}\n", i.line);
  std::vector<std::string_view> data;
  for (std::string_view name : kData)
    if (used(fmt::format("{}(", name))) data.push_back(name);
  out += fmt::format("from torch.utils.data import {}\n", fmt::join(data, ", "));
  std::vector<std::string_view> vision;
  for (std::string_view name : kTorchvision)
    if (used(fmt::format("{}.{}", name, name == "datasets" ? "ImageFolder(" : "")))
      vision.push_back(name);
  if (!vision.empty()) out += fmt::format("from torchvision import {}\n", fmt::join(vision, ", "));
  return out + "\n";
}

std::string constants(const TorchFacts& f) {
  std::string out = fmt::format("SEED = {}\nEPOCHS = {}\n", f.spec.seed, f.query.epochs);
  if (f.spec.steps) out += fmt::format("STEPS = {}\n", f.query.steps);
  if (f.ddp) out += fmt::format("RANKS = {}\n", f.query.ranks);
  out += f.ddp ? fmt::format("BATCH_SIZE = {}  # of each rank\n", f.query.batch / f.query.ranks)
               : fmt::format("BATCH_SIZE = {}\n", f.query.batch);
  if (f.forwards_replicas()) out += fmt::format("REPLICAS = {}\n", f.query.replicas);
  if (f.query.accumulate > 1)
    out +=
        fmt::format("ACCUMULATE = {}  # parts that a batch is computed in\n", f.query.accumulate);
  return out;
}

std::string helpers(const TorchFacts& f, std::string_view data) {
  std::string out;
  if (data.find("read_idx(") != data.npos) out += section(kReadIdx);
  out += section(kWeightFiles);
  if (f.spec.partial_weights) out += section(kLoadFitting);
  out += torch_data_helpers(f);
  if (f.divisor == Divisor::targets) out += section(kWeightOf);
  if (f.last_extent()) {
    const std::string loss = type_of<LossType>(f.spec.loss).torch(f.spec.loss.settings);
    out += section(fmt::format(kLastExtent, loss.substr(0, loss.find('(')),
                               f.query.target.dtype == DType::i32 ? -1 : -2));
  }
  if (f.deferred()) out += section(kDeferStatistics);
  if (f.forwards_replicas()) out += section(kForwardReplicas);
  if (f.ddp && f.global_loss()) out += section(kSumOverRanks);
  return out;
}

// Initializations in dptrain's order: layer by layer, after the whole model is built.
std::string initialisations(const TorchFacts& f) {
  std::string out;
  const auto add = [&](const Choice& init, const std::string& parameter) {
    if (init)
      out += type_of<InitialisationType>(init).torch(
                 init.settings, fmt::format("model.get_parameter(\"{}\")", parameter)) +
             "\n";
  };
  for (const LoweredLayer& l : f.layers) {
    add(l.item->weight_init, l.name + ".weight");
    add(l.item->bias_init, l.name + ".bias");
  }
  return out;
}

std::string model_function(const TorchFacts& f) {
  const TorchModel model = torch_model(f);
  std::vector<std::string> frozen;
  for (ValueId v : f.graph.parameters)
    if (!f.graph[v].trainable) frozen.push_back("\"" + f.graph[v].name + "\"");
  std::string body = initialisations(f);
  if (!f.spec.initial_weights.empty()) {
    const std::string weights = fmt::format("read_weights({})", python(f.spec.initial_weights));
    body += f.spec.partial_weights ? fmt::format("load_fitting(model, {})\n", weights)
                                   : fmt::format("model.load_state_dict({})\n", weights);
  }
  if (!frozen.empty())
    body += fmt::format(
        "for name, parameter in model.named_parameters():\n"
        "    parameter.requires_grad_(name not in [{}])\n",
        fmt::join(frozen, ", "));
  if (f.deferred()) body += "defer_statistics(model)\n";
  body = body.empty() ? "return " + model.expression + "\n"
                      : "model = " + model.expression + "\n" + body + "return model\n";
  return (model.classes.empty() ? "" : section(model.classes)) +
         section("def make_model():\n" + indent(body, 4));
}

std::string entry(const TorchFacts& f) {
  std::string main =
      "parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])\n"
      "parser.add_argument(\"--losses\", metavar=\"FILE\", help=\"where each step's loss goes\")\n"
      "parser.add_argument(\"--weights\", metavar=\"FILE\", help=\"initial weights, "
      ".safetensors or .pt\")\n"
      "parser.add_argument(\"--save\", metavar=\"FILE\", help=\"trained weights, "
      ".safetensors or .pt\")\n"
      "arguments = parser.parse_args()\n";
  main += f.ddp ? "with tempfile.TemporaryDirectory() as folder:\n"
                  "    mp.spawn(train, args=(Path(folder) / \"store\", arguments), nprocs=RANKS)\n"
                : "train(arguments)\n";
  return section("if __name__ == \"__main__\":\n" + indent(main, 4));
}

}  // namespace

std::string export_torch(const Spec& spec, const TorchExport& query) {
  const TorchFacts facts = facts_of(spec, query);
  std::string data = torch_data(facts, Split::train);
  if (spec.evaluate.on) data += torch_data(facts, Split::test);
  std::string body = constants(facts) + helpers(facts, data) + data;
  body += model_function(facts) + torch_training(facts) + entry(facts);
  return docstring(facts) + imports(body) + body;
}

}  // namespace dpt
