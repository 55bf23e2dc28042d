#include "describe/plan_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/units.h"
#include "describe/device_usage.h"
#include "describe/gpu_text.h"
#include "describe/host_text.h"
#include "describe/traffic.h"
#include "engine/gpu/batch_input.h"
#include "graph/operator.h"
#include "layers/model.h"
#include "session/batch_text.h"
#include "session/programs.h"
#include "train/memory_estimate.h"

namespace dpt {
namespace {

std::string rows_text(const Devices& devices, const SessionBatches& batches) {
  StepRows rows;
  std::string out;
  batches.train->step(0, rows);
  for (int shard = 0; shard < devices.topology.shards; ++shard) {
    const Rows& r = rows.micro[0][static_cast<size_t>(shard)].rows;
    const int worker = devices.topology.owner(shard);
    out += fmt::format(
        "  shard {:<3} worker {:<3} rank {:<3} samples {}..{} of {}\n", shard, worker,
        devices.topology.rank_of(worker), r.begin, r.end,
        batches.train->per_replica_sampling() ? "its rank's batch" : "the global batch");
  }
  return out;
}

// The settings of a parameter, if parameters differ in them.
std::string group_text(const ParameterGroups& parameter_groups, size_t parameter) {
  const ParameterGroups& all = parameter_groups;
  if (!all.several()) return "";
  const auto group = static_cast<size_t>(all.of_parameter[parameter]);
  return fmt::format("  lr {:.6g}, weight_decay {:.6g}", all.rates[all.groups[group].rate],
                     all.groups[group].weight_decay);
}

std::string parameters_text(const ParameterGroups& parameter_groups, const CompiledModel& model) {
  std::string out;
  for (size_t i = 0; i < model.graph.parameters.size(); ++i) {
    const Value& v = model.graph[model.graph.parameters[i]];
    out += fmt::format(
        "  {:<28} {:<16} {:>10}{}{}\n", v.name, v.desc.shape.str(), v.desc.shape.elements(),
        v.desc.layout == Layout::plain ? "" : fmt::format("  {}", name_of(v.desc.layout)),
        model.graph.gradients[i] == kNoValue ? "  frozen" : group_text(parameter_groups, i));
  }
  for (ValueId v : model.graph.buffers)
    out += fmt::format("  {:<28} {:<16} {:>10}  buffer\n", model.graph[v].name,
                       model.graph[v].desc.shape.str(), model.graph[v].desc.shape.elements());
  return out;
}

// How ranks exchange gradients; see parallel/exchange.h.
std::string exchange_text(const Session& s) {
  std::vector<size_t> updated(static_cast<size_t>(s.devices.topology.ranks));  // elements, by rank
  for (int w = 0; w < s.devices.topology.total_workers(); ++w)
    for (const UpdatePiece& p : s.shares.workers[static_cast<size_t>(w)])
      updated[static_cast<size_t>(s.devices.topology.rank_of(w))] += p.end - p.begin;
  std::string out;
  if (s.devices.exchange.shard_states) {
    out += "optimizer states: each rank holds the states of the elements it updates\n";
    for (size_t r = 0; r < updated.size(); ++r)
      out +=
          fmt::format("  rank {:<4} {:>10} elements  {:.2f} MiB\n", r, updated[r],
                      static_cast<double>(updated[r]) * sizeof(float) * s.settings.states() / kMiB);
  }
  if (s.devices.exchange.compress)
    out += fmt::format("gradients of other ranks: read as {}\n",
                       name_of(*s.devices.exchange.compress));
  return out;
}

std::string refusals_text(const Program& p) {
  std::string out;
  for (Part part : {Part::prologue, Part::forward, Part::loss, Part::backward})
    for (const Instruction& i : p.part(part))
      for (const std::string& reason : i.refusals)
        out += fmt::format("  {:<22} not {}\n", label_of(p.graph.nodes[i.node]), reason);
  return out;
}

// What each pass changed, in lines of at most 100 columns.
std::string passes_text(const Session& s) {
  constexpr size_t kColumns = 100, kIndent = 21;
  std::string out;
  for (const PassChange& pass : pass_changes(s)) {
    std::string line = fmt::format("  {:<18} ", pass.name);
    for (std::string_view rest = pass.text; !rest.empty();) {
      const size_t end = std::min(rest.find(", "), rest.size());
      const std::string_view part = rest.substr(0, std::min(end + 2, rest.size()));
      if (line.size() + part.size() > kColumns && line.size() > kIndent) {
        out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        line = std::string(kIndent, ' ');
      }
      line += part;
      rest.remove_prefix(part.size());
    }
    out += line + "\n";
  }
  return out;
}

std::string memory_text(const Session& s) {
  const MemoryEstimate memory = estimate_memory(s);
  std::string out = fmt::format(
      "memory: {:.2f} MiB shared (weights {:.2f}, gradients {:.2f}{}), {:.2f} MiB of activations\n",
      memory.shared / kMiB, memory.weights / kMiB, memory.gradients / kMiB,
      s.devices.exchange.shard_states ? ""
                                      : fmt::format(", optimizer {:.2f}", memory.states / kMiB),
      memory.activations / kMiB);
  out += exchange_text(s);
  return out + fmt::format(
                   "peak: {:.1f} MiB: these, {:.1f} of data, {:.1f} of program and session, "
                   "{:.1f} of each worker's own\n",
                   memory.peak() / kMiB, memory.data / kMiB, memory.program / kMiB,
                   memory.workers / kMiB);
}

}  // namespace

std::string describe(const Session& s, bool verbose) {
  const Topology& topology = s.devices.topology;
  StepRows first;
  s.batches.train->step(0, first);
  // With fewer samples than shards, some shard groups are empty.
  const auto filled = std::ranges::find_if(s.model.shard_groups, [&](const Rows& g) {
    return shard_group_rows(first.micro[0], g).total() > 0;
  });
  const Program& program = s.model.programs.at(shard_group_rows(first.micro[0], *filled));
  std::string out =
      fmt::format("spec: {}\ndata: {}\n", s.settings.spec.name, s.data.train.description);
  out += fmt::format(
      "mode: {}: {}{}, {} each, {} each, {}{}\n", s.plan.mode, counted(topology.ranks, "rank"),
      topology.hosts() > 1 ? fmt::format(" on {}", counted(topology.hosts(), "host")) : "",
      counted(topology.devices_per_rank, "device"), counted(topology.workers_per_device, "worker"),
      counted(topology.shards, "shard"), topology.reproducible ? " (reproducible)" : "");
  out += fmt::format("batch: {}; {} per epoch, {} in total\n", batch_text(s.devices, s.batches),
                     counted(s.batches.train->steps(), "step"), s.length.steps);
  out += rows_text(s.devices, s.batches);
  out += lr_scale_text(s.settings, s.batches, s.parameter_groups) +
         groups_text(s.parameter_groups) + frozen_text(s.model);
  out += fmt::format("parameters: {}\n{}", parameter_count(s.model.graph),
                     parameters_text(s.parameter_groups, s.model));
  out += fmt::format("work: {:.3f} MFLOP for {}, forward and backward\n",
                     program.graph.flops() / 1e6, counted(program.rows.total(), "sample"));
  if (s.devices.on_gpu()) {
    out += gpus_text(s);
    out += fmt::format("batches: {}\nlaunches: {}\n", batch_input_text(*s.data.loader),
                       s.devices.captures_steps()
                           ? "whole steps as CUDA graphs, several of a small net as one"
                           : "each kernel by itself");
  } else {
    out += memory_text(s);
  }
  out += devices_text(s);
  if (topology.hosts() > 1) out += hosts_text(s);
  if (!s.devices.cpus_span_hosts()) out += traffic_text(s);
  out += s.plan.str();
  const size_t together = program.rows.shards.size();
  out += together == 1 ? fmt::format("each shard of {}:\n", counted(program.rows.total(), "sample"))
                       : fmt::format("each shard group of {} shards, {} samples:\n", together,
                                     fmt::join(program.rows.shards, " + "));
  out += program.str();
  if (verbose)
    out += fmt::format("passes:\n{}refused:\n{}", passes_text(s), refusals_text(program));
  return out;
}

}  // namespace dpt
