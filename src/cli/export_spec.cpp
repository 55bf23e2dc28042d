// dptrain export SPEC --to torch: the same run as a PyTorch program.
#include <algorithm>

#include "base/fail.h"
#include "base/files.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "export/torch.h"

namespace dpt::commands {
namespace {

// The program says so, too, but few read it before they compare the losses.
void note_dropout(const Spec& spec, const CompiledModel& model) {
  const bool dropout =
      std::ranges::any_of(model.graph.nodes, [](const GraphNode& n) { return n.op->random; });
  if (dropout && spec.random != "torch")
    print_stderr(
        "note: PyTorch and dptrain draw different dropout masks, so losses differ; export and "
        "train with random=torch for the same masks\n");
}

// The parameters of each group, if the spec has groups.
std::vector<TorchGroup> groups_of(const Session& s) {
  if (s.settings.spec.parameter_groups.empty() && s.settings.spec.no_decay.empty()) return {};
  const ParameterGroups& all = s.parameter_groups;
  std::vector<TorchGroup> out;
  for (const ParameterGroup& g : all.groups)
    out.push_back({.parameters = {}, .lr = all.rates[g.rate], .weight_decay = g.weight_decay});
  for (size_t p = 0; p < all.of_parameter.size(); ++p)
    if (const int group = all.of_parameter[p]; group >= 0)
      out[static_cast<size_t>(group)].parameters.push_back(
          s.model.graph[s.model.graph.parameters[p]].name);
  return out;
}

int run_export(const std::vector<std::string>& words) {
  Arguments arguments(
      "export", "Writes a spec as a PyTorch program with the same weights, order and losses.");
  SpecArgument argument;
  std::string to = "torch", output;
  argument.add_to(arguments);
  arguments.choice("--to FORMAT", to, {"torch"}, "what to write");
  arguments.text("-o,--output FILE", output,
                 "file of the program; data that PyTorch cannot generate is written next to it as "
                 ".npy; default: standard output");
  arguments.parse(words);
  const LoadedSpec loaded = load(argument);
  if (loaded.spec.data.auto_batch)
    fail(Fault::spec,
         "data.batch_size is auto, and a PyTorch program needs a number: add data.batch_size=N");
  const std::unique_ptr<const Session> s =
      open_session(loaded, {.runs = false, .sizes_only = true});
  const TorchExport query{
      .input = s->model.graph[s->model.graph.input].desc,
      .target = s->model.graph[s->model.graph.target].desc,
      .samples = s->data.train.size(),
      .classes = s->data.train.classes,
      .tokens = s->data.train.tokens,
      .ignores = s->data.ignores(),
      .ranks = s->devices.topology.per_replica_sampling ? s->devices.topology.replicas() : 1,
      .replicas = s->devices.topology.replicas(),
      .shards = s->devices.topology.shards,
      .accumulate = s->batches.train->accumulate(),
      .batch = s->batches.global_batch,
      .epochs = s->length.epochs,
      .steps = s->length.steps,
      .exchange = s->devices.exchange,
      .deferred_batch_norm = s->devices.pipeline && s->devices.pipeline->deferred_batch_norm,
      .average_every = s->plan.average_every,
      .lr = s->parameter_groups.rates[0],
      .groups = groups_of(*s),
      .program = output};
  const std::string program = export_torch(loaded.spec, query);
  note_dropout(s->settings.spec, s->model);
  if (output.empty()) {
    print_stdout("{}", program);
    return 0;
  }
  write_torch_arrays(loaded.spec, query);
  write_text(output, program);
  return 0;
}

}  // namespace

Command export_spec() {
  return {.name = "export", .summary = "write a spec as a PyTorch program", .run = run_export};
}

}  // namespace dpt::commands
