#include "export/torch.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "data/dataset.h"
#include "export/torch_parts.h"
#include "formats/python_call.h"
#include "formats/tensor_file.h"
#include "formats/torch_file.h"
#include "layers/initialisation.h"
#include "optim/optimizer.h"
#include "optim/precision.h"

namespace dpt {
namespace {

// Refuses specs whose batch norm uses statistics over other samples than the exported program
// would.
void check_batch_norm(const TorchFacts& f) {
  if (!f.norms_replicas() || f.forwards_replicas()) return;
  if (f.ddp)
    fail(Fault::spec,
         "with sync_batch_norm, batch norm uses the statistics of all ranks, but PyTorch's "
         "SyncBatchNorm runs on GPUs only; export and train with reproducible={} to get the "
         "same numbers; parallel=single changes the order of samples, and sync_batch_norm=false "
         "the statistics",
         f.query.replicas);
  fail(Fault::spec,
       "each of the {} replicas has statistics of its own for batch norm, but the equivalent "
       "program is one process; export with sync_batch_norm=true or parallel=single",
       f.query.replicas);
}

// What a training loop of PyTorch's examples does not do. The advice names all keys at once: one
// may need another, as `early_stop` needs `data.validation`.
void check_evaluation(const Spec& spec) {
  std::vector<std::string> keys, without;
  const auto refuse = [&](std::string_view key, std::string_view advice) {
    keys.push_back(fmt::format("`{}`", key));
    without.emplace_back(advice);
  };
  const bool validates = spec.data.validation.on();
  const bool evaluates = spec.evaluate.on && (!validates || has_test_set(spec.data.dataset));
  if (validates) refuse("data.validation", "data.validation=none");
  if (spec.early_stop.patience > 0) refuse("early_stop", "early_stop=none");
  if (spec.minutes) refuse("minutes", "minutes=none");
  if (validates && !evaluates) {
    if (spec.evaluate.on) without.emplace_back("evaluate=false");
    if (!spec.save.best.empty() && spec.save.best != "none") without.emplace_back("save.best=none");
  } else {
    if (spec.evaluate.every_steps > 0) refuse("evaluate.every_steps", "evaluate.every=1");
    const bool classes = !has_labels(*static_cast<const LossType*>(spec.loss.what));
    const auto is_printed = [&](const Located<std::string>& metric) {
      return metric.value == "loss" || (metric.value == "accuracy" && classes);
    };
    if (!std::ranges::all_of(spec.evaluate.metrics, is_printed))
      refuse("evaluate.metrics", "evaluate.metrics=[]");
  }
  if (keys.empty()) return;
  // A program without them has the losses of another run.
  const std::string_view other = spec.data.validation.fraction > 0
                                     ? ", so it trains on the samples that the run holds out, too"
                                 : spec.early_stop.patience > 0 || spec.minutes
                                     ? ", so it trains to the last epoch"
                                     : "";
  fail(Fault::spec, "the PyTorch program has no {}{}; export with {}", fmt::join(keys, ", no "),
       other, fmt::join(without, " "));
}

// Averages of the weights that not every rank has, or has before evaluations.
void check_averaged_state(const TorchFacts& f) {
  if (f.averaged_state().empty()) return;
  const auto refuse = [&](std::string_view key) {
    fail(Fault::spec,
         "the PyTorch program of {} has no `average` of the optimizer; export with "
         "optimizer.{}.average=false",
         key, f.spec.optimizer.what->name);
  };
  if (f.ddp && f.query.exchange.shard_states) refuse("`shard: optimizer`");
  if (f.query.average_every > 0) refuse("`local_sgd`");
}

// Replicas that train their own weights.
void check_local_sgd(const Spec& spec, const TorchExport& query) {
  if (query.average_every == 0) return;
  const auto refuse = [](std::string_view key, std::string_view without) {
    fail(Fault::spec, "the PyTorch program of `local_sgd` has no `{}`; export with {}", key,
         without);
  };
  if (spec.ema) refuse("ema", "ema=none");
  if (spec.reproducible_shards) refuse("reproducible", "reproducible=none");
}

// Whether the program has a process for each rank, with samples of its own.
bool samples_by_rank(const Spec& spec, const TorchExport& query) {
  const std::string_view mode = spec.parallel.what->name;
  const bool ranks = mode == "ddp" || (mode == "pipeline" && query.ranks > 1) ||
                     (mode == "local_sgd" && query.average_every > 0);
  // With fixed shards, all modes take samples in one order and give the same numbers.
  return ranks && !spec.reproducible_shards.has_value();
}

// The graph of training, and what an evaluation computes otherwise.
void build_graphs(TorchFacts& f) {
  const TorchExport& q = f.query;
  const auto built = [&](const TensorDesc& target, std::vector<LoweredLayer>* layers) {
    Diagnostics d;
    Graph out = build_graph(f.spec,
                            {.input = q.input,
                             .target = target,
                             .differentiate = false,
                             .classes = q.classes,
                             .tokens = q.tokens,
                             .ignores = q.ignores},
                            d, layers);
    if (!d.ok()) throw Error(Fault::spec, d.render());
    return out;
  };
  f.graph = built(q.target, &f.layers);
  f.divisor = divisor_of(f.spec, f.graph);
  f.test_target = q.target;
  if (f.mixes() && f.spec.data.target_transforms.empty())
    f.test_target = {DType::i32, {q.target.shape[0]}};
  const Graph test = f.test_target == q.target ? f.graph : built(f.test_target, nullptr);
  f.test_divisor = divisor_of(f.spec, test);
  f.by_class = test.correct != kNoValue;
}

TorchFacts facts_of(const Spec& spec, const TorchExport& query) {
  check_evaluation(spec);
  const std::string_view mode = spec.parallel.what->name;
  if (mode != "single" && mode != "dp" && mode != "ddp" && mode != "pipeline" &&
      mode != "local_sgd")
    fail(Fault::spec,
         "parallel mode '{}' has no equivalent program; single, dp, ddp, pipeline and local_sgd "
         "have one",
         mode);
  check_local_sgd(spec, query);
  if (!type_of<OptimizerType>(spec.optimizer).torch)
    fail(
        Fault::spec,
        "optimizer '{}' has no equivalent program: in PyTorch it takes two optimizers; export with "
        "another one, such as optimizer=adam_w",
        spec.optimizer.what->name);
  TorchFacts facts{.spec = spec, .query = query, .ddp = samples_by_rank(spec, query)};
  if (const auto& precision = type_of<PrecisionType>(spec.precision); precision.mixed) {
    facts.mixed = precision.mixed(spec.precision.settings);
    if (facts.mixed.level > PrecisionPolicy::Level::autocast || facts.mixed.cuda_lists == true)
      fail(Fault::spec,
           "precision: only fp32 and level o1 with the CPU's lists have an equivalent program, "
           "torch.autocast on the CPU");
    if (facts.mixed.level == PrecisionPolicy::Level::autocast)
      facts.autocast = precision.dtype == DType::bf16 ? "bfloat16" : "float16";
  }
  build_graphs(facts);
  check_batch_norm(facts);
  check_averaged_state(facts);
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

// What `word` is in: only as a whole identifier, not as the end of another.
bool uses(std::string_view body, std::string_view word) {
  for (size_t at = body.find(word); at != body.npos; at = body.find(word, at + 1)) {
    const char before = at == 0 ? ' ' : body[at - 1];
    if (!std::isalnum(static_cast<unsigned char>(before)) && before != '_' && before != '.')
      return true;
  }
  return false;
}

// Imports what the body uses, in isort's order.
std::string imports(std::string_view body) {
  struct Import {
    std::string_view used, line;
  };
  static constexpr Import kStandard[] = {{"argparse.", "import argparse"},
                                         {"contextlib.", "import contextlib"},
                                         {"copy.", "import copy"},
                                         {"csv.", "import csv"},
                                         {"functools.", "import functools"},
                                         {"gzip.", "import gzip"},
                                         {"json.", "import json"},
                                         {"math.", "import math"},
                                         {"os.", "import os"},
                                         {"struct.", "import struct"},
                                         {"sys.", "import sys"},
                                         {"tarfile.", "import tarfile"},
                                         {"tempfile.", "import tempfile"},
                                         {"zipfile.", "import zipfile"},
                                         {"OrderedDict(", "from collections import OrderedDict"},
                                         {"Path(", "from pathlib import Path"}};
  static constexpr Import kForeign[] = {
      {"np.", "import numpy as np"},
      {"torch.", "import torch"},
      {"dist.", "import torch.distributed as dist"},
      {"mp.", "import torch.multiprocessing as mp"},
      {"ImageOps.", "from PIL import ImageOps"},
      {"optim.", "from torch import nn, optim"},
      {"default_hooks.", "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks"},
      {"ZeroRedundancyOptimizer(", "from torch.distributed.optim import ZeroRedundancyOptimizer"},
      {"= DistributedDataParallel(", "from torch.nn.parallel import DistributedDataParallel"},
      {"lr_scheduler.", "from torch.optim import lr_scheduler"},
      {"= AveragedModel(",
       "from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn"}};
  static constexpr std::string_view kData[] = {"DataLoader", "DistributedSampler", "RandomSampler",
                                               "TensorDataset", "WeightedRandomSampler"};
  static constexpr std::string_view kTorchvision[] = {"datasets", "transforms"};
  const auto used = [&](std::string_view word) { return uses(body, word); };
  std::string out;
  for (const Import& i : kStandard)
    if (used(i.used)) out += fmt::format("{}\n", i.line);
  out += "\n";
  for (const Import& i : kForeign)
    if (used(i.used)) out += fmt::format("{}\n", i.line);
  std::vector<std::string_view> data;
  for (std::string_view name : kData)
    if (used(fmt::format("{}(", name)) || used(fmt::format("{}):", name))) data.push_back(name);
  out += fmt::format("from torch.utils.data import {}\n", fmt::join(data, ", "));
  std::vector<std::string_view> vision;
  for (std::string_view name : kTorchvision)
    if (used(fmt::format("{}.{}", name, name == "datasets" ? "ImageFolder" : "")))
      vision.push_back(name);
  if (!vision.empty()) out += fmt::format("from torchvision import {}\n", fmt::join(vision, ", "));
  return out;
}

std::string python_list(std::span<const std::string_view> words) {
  return python(std::vector<std::string_view>(words.begin(), words.end()));
}

std::string helpers(const TorchFacts& f, std::string_view data) {
  std::string loss = type_of<LossType>(f.spec.loss).torch(f.spec.loss.settings);
  loss.resize(loss.find('('));
  return filled("helpers",
                {{"state_dict_keys", python_list(kStateDictEntries)},
                 {"wrappers", python_list(kWrapperNames)},
                 {"ddp", f.ddp},
                 {"read_idx", data.find("read_idx(") != data.npos},
                 {"transformed", torch_transforms_samples(f)},
                 {"mixes", f.mixes()},
                 {"mixup", data.find("(mixup, ") != data.npos},
                 {"cutmix", data.find("(cutmix, ") != data.npos},
                 {"class_weights", f.weighted()},
                 {"weighted_shares", f.weighted() && f.shares_order()},
                 {"weight_of", f.divisor == Divisor::targets ||
                                   (f.spec.evaluate.on && f.test_divisor == Divisor::targets)},
                 {"loss_class", type_of<LossType>(f.spec.loss).torch_class},
                 {"optimizer_class", type_of<OptimizerType>(f.spec.optimizer).torch_class},
                 {"last_extent", f.last_extent()},
                 {"loss", loss},
                 // Targets that are probabilities keep their classes.
                 {"last_target_dim", f.query.target.dtype == DType::i32 ? -1 : -2},
                 {"deferred", f.deferred()},
                 {"replicas", f.forwards_replicas()},
                 {"sums_over_ranks", f.ddp && f.global_loss()},
                 {"averages", f.query.average_every > 0},
                 {"averaged_state", f.averaged_state()}});
}

// Initializations in dptrain's order: layer by layer, after the whole model is built.
std::string initialisations(const TorchFacts& f) {
  std::string out;
  for (const LoweredLayer& l : f.layers)
    for (const ValueId v : f.graph.parameters) {
      const std::string& name = f.graph[v].name;
      if (!name.starts_with(l.name + ".")) continue;
      if (const Choice* init = l.item->init_of(std::string_view(name).substr(l.name.size() + 1)))
        out += type_of<InitialisationType>(*init).torch(
                   init->settings, fmt::format("model.get_parameter(\"{}\")", name)) +
               "\n";
    }
  return out;
}

std::string model_function(const TorchFacts& f) {
  const TorchModel model = torch_model(f);
  std::vector<std::string> frozen;
  for (ValueId v : f.graph.parameters)
    if (!f.graph[v].trainable) frozen.push_back("\"" + f.graph[v].name + "\"");
  const std::string starts = initialisations(f);
  const std::string& file = f.spec.initial_weights;
  const std::string weights = file.empty() ? "" : python(file);
  return filled("model",
                {{"graph", model.has_graph},
                 {"residual", model.has_residual},
                 {"classes", model.classes},
                 {"bare", starts.empty() && file.empty() && frozen.empty() && !f.deferred()},
                 {"module", model.expression},
                 {"initialisations", starts},
                 {"weights", f.spec.partial_weights ? "" : weights},
                 {"partial_weights", f.spec.partial_weights ? weights : ""},
                 {"frozen", fmt::format("{}", fmt::join(frozen, ", "))},
                 {"deferred", f.deferred()}});
}

// Constants, functions, and the call of the one that trains.
std::string body(const TorchFacts& f) {
  std::string data = torch_data(f, Split::train);
  if (f.spec.evaluate.on) data += torch_data(f, Split::test);
  const TorchExport& q = f.query;
  return filled("body",
                {{"seed", f.spec.seed},
                 {"epochs", q.epochs},
                 {"steps", f.spec.steps ? std::to_string(q.steps) : ""},
                 {"ddp", f.ddp},
                 {"ranks", q.ranks},
                 {"average_every", q.average_every > 0 ? std::to_string(q.average_every) : ""},
                 {"batch_size", f.ddp ? q.batch / q.ranks : q.batch},
                 {"replicas", f.forwards_replicas() ? std::to_string(q.replicas) : ""},
                 {"accumulate", q.accumulate > 1 ? std::to_string(q.accumulate) : ""},
                 {"helpers", helpers(f, data)},
                 {"data", data},
                 {"model", model_function(f)},
                 {"training", torch_training(f)}});
}

// The program, whose docstring has notes on real or apparent differences from dptrain.
std::string program(const TorchFacts& f) {
  const Spec& spec = f.spec;
  const TorchExport& q = f.query;
  const std::string_view mode = spec.parallel.what->name;
  const bool reproducible = spec.reproducible_shards.has_value();
  const bool replicas = !reproducible && f.forwards_replicas();
  const bool dropout = std::ranges::any_of(
      f.graph.nodes, [](const GraphNode& n) { return n.op->is(Trait::random); });
  const std::string text = body(f);
  return filled("program", {{"name", spec.name},
                            {"reproducible", reproducible},
                            {"replicas", replicas},
                            {"dp", !reproducible && !replicas && mode == "dp"},
                            {"pipeline", mode == "pipeline"},
                            {"uneven", repeats_samples(spec, q)},
                            {"samples", q.samples},
                            {"ranks", q.ranks},
                            {"sharded", !f.ddp && q.exchange.shard_states},
                            {"compressed", f.ddp && q.exchange.compress && q.shards > q.ranks},
                            {"weighted", f.wraps_ddp() && f.divisor == Divisor::targets},
                            {"local_sgd", q.average_every > 0},
                            {"random_transforms", torch_draws(spec)},
                            {"mixes", f.mixes()},
                            {"dropout", dropout && spec.random != "torch"},
                            {"imports", imports(text)},
                            {"body", text}});
}

}  // namespace

bool repeats_samples(const Spec& spec, const TorchExport& query) {
  return samples_by_rank(spec, query) && query.samples % query.ranks != 0 && !spec.data.pad &&
         !spec.data.drop_last;
}

std::string export_torch(const Spec& spec, const TorchExport& query) {
  return program(facts_of(spec, query));
}

}  // namespace dpt
