#include "train/export_torch.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/python_call.h"
#include "data/dataset.h"
#include "layers/initialisation.h"
#include "optim/precision.h"
#include "train/export_torch_parts.h"

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

constexpr const char* kReadSafetensors = R"py(def read_safetensors(path):
    data = Path(path).read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            begin, end = (start + offset for offset in entry["data_offsets"])
            tensor = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32)
            tensors[name] = tensor.reshape(entry["shape"])
    return tensors
)py";

constexpr const char* kWeightOf = R"py(def weight_of(criterion, y):
    """What the mean divides by: the sum of the weights of these targets."""
    kept = y[y != criterion.ignore_index]
    return len(kept) if criterion.weight is None else criterion.weight[kept].sum().item()
)py";

// Of the class and what else is flattened of targets that are probabilities.
constexpr const char* kLastExtent = R"py(class LastExtent({}):
    """The last extent of the output has the scores of each place."""

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

constexpr const char* kSumOverRanks = R"py(def sum_over_ranks(value):
    total = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(total)
    return total.item()
)py";

// Over which samples batch norm takes its statistics must be the same in the program.
void check_batch_norm(const TorchFacts& f) {
  const bool has = f.graph.cuts(Part::forward) > 0;
  if (!has || f.query.replicas == 1 || f.spec.sync_batch_norm != f.ddp) return;
  if (f.ddp)
    fail(Fault::spec,
         "with sync_batch_norm batch norm takes the statistics of all ranks, but PyTorch's "
         "SyncBatchNorm runs on GPUs only; export with parallel=single, which gives the same "
         "numbers, or with sync_batch_norm=false");
  fail(Fault::spec,
       "each of the {} replicas has statistics of its own for batch norm, but the equivalent "
       "program is one process; export with sync_batch_norm=true or parallel=single",
       f.query.replicas);
}

TorchFacts facts_of(const Spec& spec, const TorchExport& query) {
  const std::string_view mode = spec.parallel.what->name;
  if (mode != "single" && mode != "dp" && mode != "ddp" && mode != "pipeline")
    fail(Fault::spec,
         "parallel mode '{}' has no equivalent program; single, dp, ddp and pipeline have one",
         mode);
  // With fixed shards every mode takes the samples in one order and gives the same numbers.
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
         "with `accumulate` a batch is several batches for `deferred_batch_norm`, and the "
         "equivalent "
         "program knows one; export without one of the two");
  if (query.exchange.compress && !facts.ddp)
    fail(Fault::spec,
         "with `reproducible` the equivalent program is one process, which compresses nothing, but "
         "`compress` rounds the gradients of each shard; export without one of the two");
  return facts;
}

// What is not the same as in dptrain, or looks as if it were not.
std::string notes(const TorchFacts& f) {
  std::string out;
  const auto note = [&](std::string_view text) { out += fmt::format("\n{}\n", text); };
  if (f.spec.reproducible_shards)
    note("With `reproducible` every mode gives the numbers of one process: so it is one here.");
  else if (f.spec.parallel.what->name == "dp")
    note(
        "DataParallel gives the numbers of one process on any number of devices: so it is one "
        "here.");
  if (f.spec.parallel.what->name == "pipeline")
    note(
        "The stages of a pipeline give the numbers of one device that computes the chunks one by\n"
        "one: so a replica is one process here.");
  if (f.ddp && f.query.samples % f.query.ranks != 0 && !f.spec.data.pad && !f.spec.data.drop_last)
    note(fmt::format(
        "{} samples on {} ranks: DistributedSampler repeats some to make the ranks even,\n"
        "dptrain does so only with `pad: true`.",
        f.query.samples, f.query.ranks));
  if (!f.ddp && f.query.exchange.shard_states)
    note("`shard: optimizer` changes no number, and one process has all states.");
  if (f.ddp && f.query.exchange.compress && f.query.shards > f.query.ranks)
    note(
        "dptrain rounds the gradients of each core, the hook those of each rank: they are the same "
        "with\n`cores: 1`.");
  if (f.ddp && f.divisor == Divisor::targets)
    note(
        "DistributedDataParallel takes the mean of the ranks' weighted means, dptrain one mean "
        "over\n"
        "all samples.");
  const bool dropout = std::ranges::any_of(
      f.graph.nodes, [](const GraphNode& n) { return n.op->name == "dropout"; });
  if (dropout && f.spec.random != "torch")
    note("Dropout masks are PyTorch's; dptrain draws the same ones with `random: torch`.");
  return out;
}

std::string docstring(const TorchFacts& f) {
  return fmt::format(
      "\"\"\"{} as a PyTorch program, written by `dptrain export --to torch`.\n\n"
      "The initial weights and the order of samples are dptrain's, so that one loss curve can be "
      "laid\n"
      "over the other. `--losses FILE` writes each step's loss, for `dptrain "
      "compare`.\n{}\"\"\"\n\n",
      f.spec.name, notes(f));
}

// Only what the body uses, in isort's order.
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
      {"lr_scheduler.", "from torch.optim import lr_scheduler"}};
  static constexpr std::string_view kData[] = {"DataLoader", "DistributedSampler", "RandomSampler",
                                               "TensorDataset"};
  // A word of its own, not the end of another.
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
  return out + fmt::format("from torch.utils.data import {}\n\n", fmt::join(data, ", "));
}

std::string constants(const TorchFacts& f) {
  std::string out = fmt::format("SEED = {}\nEPOCHS = {}\n", f.spec.seed, f.query.epochs);
  if (f.spec.steps) out += fmt::format("STEPS = {}\n", f.query.steps);
  if (f.ddp) out += fmt::format("RANKS = {}\n", f.query.ranks);
  out += f.ddp ? fmt::format("BATCH_SIZE = {}  # of each rank\n", f.query.batch / f.query.ranks)
               : fmt::format("BATCH_SIZE = {}\n", f.query.batch);
  if (f.query.accumulate > 1)
    out +=
        fmt::format("ACCUMULATE = {}  # parts that a batch is computed in\n", f.query.accumulate);
  return out;
}

std::string dataset_text(const Spec& spec, Split split) {
  const Choice& dataset = spec.data.dataset;
  const auto& type = type_of<DatasetType>(dataset);
  const LoadQuery query{split, std::filesystem::path(spec.path).parent_path().string()};
  std::string text = type.torch ? type.torch(dataset.settings, query) : "";
  if (text.empty())
    fail(Fault::spec,
         "data set '{}' can't be written as a PyTorch program; export with a data set that can, "
         "as with data.dataset=fashion_mnist",
         type.name);
  return text.ends_with('\n') ? text : text + "\n";
}

std::string helpers(const TorchFacts& f) {
  std::string out;
  if (dataset_text(f.spec, Split::train).find("read_idx(") != std::string::npos)
    out += section(kReadIdx);
  if (!f.spec.initial_weights.empty()) out += section(kReadSafetensors);
  if (f.divisor == Divisor::targets) out += section(kWeightOf);
  if (f.last_extent()) {
    const std::string loss = type_of<LossType>(f.spec.loss).torch(f.spec.loss.settings);
    out += section(fmt::format(kLastExtent, loss.substr(0, loss.find('(')),
                               f.query.target.dtype == DType::i32 ? -1 : -2));
  }
  if (f.deferred()) out += section(kDeferStatistics);
  if (f.ddp && f.global_loss()) out += section(kSumOverRanks);
  return out;
}

std::string data_function(const TorchFacts& f, std::string_view name, Split split) {
  const DataSpec& data = f.spec.data;
  const auto line = [](std::string text) { return text.ends_with('\n') ? text : text + "\n"; };
  std::string body = dataset_text(f.spec, split);
  if (data.limit > 0 && split == Split::train)
    body += fmt::format("x, y = x[:{0}], y[:{0}]\n", data.limit);
  if (f.query.input.dtype == DType::f32 &&
      (data.transforms.empty() || data.transforms[0].what->name != "to_tensor"))
    body += "x = x.float()\n";
  for (const Choice& t : data.transforms) {
    const auto& type = type_of<TransformType>(t);
    if (type.torch == nullptr)
      fail(Fault::spec,
           "transform '{}' draws anew in every epoch and can't be written as a PyTorch program; "
           "export without it",
           type.name);
    body += line(type.torch(t.settings));
  }
  for (const Choice& t : data.target_transforms)
    body += line(type_of<TargetTransformType>(t).torch(t.settings, f.query.classes));
  return section(
      fmt::format("def {}():\n{}    return TensorDataset(x, y)\n", name, indent(body, 4)));
}

// In the order in which dptrain draws: after the whole model, layer by layer.
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
  if (!f.spec.initial_weights.empty())
    body += fmt::format("model.load_state_dict(read_safetensors({}))\n",
                        python(f.spec.initial_weights));
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
      "arguments = parser.parse_args()\n";
  main += f.ddp ? "with tempfile.TemporaryDirectory() as folder:\n"
                  "    mp.spawn(train, args=(Path(folder) / \"store\", arguments), nprocs=RANKS)\n"
                : "train(arguments)\n";
  return section("if __name__ == \"__main__\":\n" + indent(main, 4));
}

}  // namespace

std::string export_torch(const Spec& spec, const TorchExport& query) {
  const TorchFacts facts = facts_of(spec, query);
  std::string body = constants(facts) + helpers(facts);
  body += data_function(facts, "train_data", Split::train);
  if (spec.evaluate.on) body += data_function(facts, "test_data", Split::test);
  body += model_function(facts) + torch_training(facts) + entry(facts);
  return docstring(facts) + imports(body) + body;
}

}  // namespace dpt
