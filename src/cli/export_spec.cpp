// dptrain export: a spec as a PyTorch program, or trained weights in other programs' formats.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/disk.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/lower_case.h"
#include "base/refuse_overwriting.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/run_argument.h"
#include "cli/spec_argument.h"
#include "cli/trained_run.h"
#include "export/onnx.h"
#include "export/onnx_metadata.h"
#include "export/torch.h"
#include "formats/safetensors.h"
#include "formats/tensor_file.h"
#include "formats/torch_file.h"
#include "inference/evaluation_graph.h"
#include "train/run_data.h"

namespace dpt::commands {
namespace {

// The program's docstring has these notes, too, but few read it before they compare the losses.
void note_repeated_samples(const Spec& spec, const TorchExport& query) {
  if (repeats_samples(spec, query))
    print_stderr(
        "note: {} samples cannot be divided evenly among {} ranks: PyTorch's DistributedSampler "
        "repeats some, dptrain does not, so losses differ; export and train with data.pad=true for "
        "the same samples\n",
        query.samples, query.ranks);
}
void note_dropout(const Spec& spec, const CompiledModel& model) {
  const bool dropout = std::ranges::any_of(
      model.graph.nodes, [](const GraphNode& n) { return n.op->is(Trait::random); });
  if (dropout && spec.random != "torch")
    print_stderr(
        "note: PyTorch and dptrain draw different dropout masks, so losses differ; export and "
        "train with random=torch{} for the same masks\n",
        spec.parallel.what->name == "single" ? "" : " parallel=single");
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

// run: the directory of the run whose spec it is; empty: none.
void export_program(const LoadedSpec& loaded, const std::string& run, const std::string& output) {
  if (loaded.spec.data.auto_batch)
    fail(Fault::spec,
         "data.batch_size is auto, and a PyTorch program needs a number: add data.batch_size=N");
  const std::optional<SampleForm> form = run.empty() ? std::nullopt : form_of_run(run);
  const Dataset fitted = form ? fitted_by(*form) : Dataset();
  const std::unique_ptr<const Session> s =
      open_session(loaded, {.runs = false, .sizes_only = true, .fitted = form ? &*form : nullptr});
  const TorchExport query{
      .input = s->model.graph[s->model.graph.input].desc,
      .target = s->model.graph[s->model.graph.target].desc,
      .samples = s->data.train.size(),
      .classes = s->data.train.classes,
      .tokens = s->data.train.tokens,
      .ignores = s->data.ignores(),
      .moves_targets = s->data.loader->moves_targets(),
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
      .fitted = form ? &fitted : nullptr,
      .program = output};
  const std::string program = export_torch(loaded.spec, query);
  note_repeated_samples(loaded.spec, query);
  note_dropout(s->settings.spec, s->model);
  if (output.empty()) return print_stdout("{}", program);
  write_torch_arrays(loaded.spec, query);
  write_text(output, program);
  const std::string& weights = loaded.spec.initial_weights;
  print_stderr("wrote {}: a PyTorch program, which {}\n", output,
               weights.empty() ? "draws initial weights" : "begins with the weights of " + weights);
}

// The tensors of a file, in memory.
struct LoadedTensors {
  std::vector<NamedTensor> list;
  std::vector<std::vector<std::byte>> bytes;  // of each; moving the vector keeps their addresses
};

LoadedTensors read_tensors(const std::string& path) {
  const std::unique_ptr<const TensorFile> file = open_tensor_file(path);
  LoadedTensors out;
  for (const TensorFile::Entry& e : file->entries()) {
    std::vector<std::byte>& bytes = out.bytes.emplace_back(e.desc.bytes());
    file->read(e, bytes);
    out.list.push_back({.name = e.name, .desc = e.desc, .data = bytes.data()});
  }
  return out;
}

void export_onnx(const TrainedRun& run, const std::string& output, bool with_transforms) {
  const SampleForm form = sample_form(run);
  const Spec& spec = run.loaded.spec;
  const TensorDesc sample = input_of(form, spec.data.transforms);
  const LoadedTensors tensors = read_tensors(run.weights);
  std::map<std::string, std::string> metadata = onnx_metadata(form, run.loaded.tree);
  std::vector<float> of_bytes;
  if (with_transforms) {
    of_bytes = byte_values(form, spec.data.transforms);
    if (of_bytes.empty())
      fail(Fault::spec,
           "--with-transforms is for samples that are stored as bytes, such as images, and whose "
           "size the transforms keep; these are {} {}, and {} after the transforms",
           form.stored.shape.str(), name_of(form.stored.dtype), sample.shape.str());
    metadata.erase("transforms");
  }
  const std::string model =
      onnx_model(evaluation_graph(spec, sample, 1), tensors.list, spec.name, metadata, of_bytes);
  Disk disk;
  write_file(disk, output, model);
}

// The format that an output file's name asks for.
std::string format_of(const std::string& output) {
  if (output.empty()) return "torch";
  const std::string ending = lower_case(std::filesystem::path(output).extension().string());
  if (ending == ".onnx" || ending == ".safetensors") return ending.substr(1);
  if (ending == ".pt" || ending == ".pth") return "pt";
  if (ending == ".py") return "torch";
  throw BadWords{fmt::format(
      "export -o {}: {}; the ending of the file decides what is written: .onnx, .pt, .pth and "
      ".safetensors for trained weights, .py for a PyTorch program; for other names give --to",
      output, ending.empty() ? "the file has no ending" : "unknown ending '" + ending + "'")};
}

struct ExportArguments {
  SpecArgument spec;
  std::string to, output, weights;
  bool with_transforms = false;
};

// Writes the trained weights. Returns what the file is.
std::string_view export_weights(const TrainedRun& run, const ExportArguments& given) {
  if (given.to == "onnx") {
    export_onnx(run, given.output, given.with_transforms);
    return "an ONNX model with the trained weights";
  }
  const LoadedTensors tensors = read_tensors(run.weights);
  if (given.to == "safetensors") {
    write_safetensors(given.output, tensors.list);
    return "the trained weights";
  }
  write_torch(given.output, tensors.list);
  return "a state_dict of the trained weights";
}

void declare_export(Arguments& arguments, ExportArguments& given) {
  arguments.about(
      "Writes a spec, or that of a run directory, as a PyTorch program with the same weights,\n"
      "order and losses (torch), or the trained weights of a run as an ONNX model (onnx), a\n"
      "state_dict of torch.save (pt) or a safetensors file.");
  given.spec.add_to(arguments, kRunOrSpec, takes::run);
  arguments.choice("--to FORMAT", given.to, {"torch", "onnx", "pt", "safetensors"},
                   "what to write; default: by the ending of the output file (.py, .onnx, .pt, "
                   ".pth, .safetensors), or torch on standard output");
  arguments.text("--weights PATH", given.weights, {takes::file, {"best", "last"}},
                 fmt::format("onnx, pt, safetensors: {}", kRunWeights));
  arguments.flag("--with-transforms", given.with_transforms,
                 "onnx: the model applies the run's transforms; its input is then bytes, as images "
                 "are stored");
  arguments.text("-o,--out,--output FILE", given.output, {takes::file},
                 "output file; data that PyTorch cannot generate is written next to a program as "
                 ".npy; default: standard output, for a program");
}

int run_export(ExportArguments& given) {
  if (given.to.empty()) given.to = format_of(given.output);
  if (given.with_transforms && given.to != "onnx")
    fail(Fault::spec, "--with-transforms is for --to onnx");
  if (given.to == "torch") {
    if (!given.weights.empty())
      fail(Fault::spec,
           "--weights is for --to onnx, pt and safetensors; a PyTorch program reads weights "
           "with its own --weights");
    const std::string run = names_run(given.spec.path) ? find_run(given.spec.path) : "";
    if (!run.empty()) given.spec.path = run + "/spec.resolved.yaml";
    const LoadedSpec loaded = load(given.spec);
    refuse_overwriting(given.output, loaded);
    export_program(loaded, run, given.output);
    return 0;
  }
  if (given.output.empty())
    fail(Fault::spec, "export --to {} writes a file: name it with -o FILE", given.to);
  const TrainedRun run = load(TrainedRunArgument{
      .run = given.spec.path, .weights = given.weights, .overrides = given.spec.overrides});
  refuse_overwriting(given.output, run.loaded);
  refuse_overwriting(given.output, run.weights);
  const std::string_view what = export_weights(run, given);
  print_stderr("wrote {}: {}\n", given.output, what);
  return 0;
}

}  // namespace

Command export_spec() {
  return make_command("export",
                      "write a PyTorch program, or weights as ONNX, state_dict or safetensors",
                      declare_export, run_export);
}

}  // namespace dpt::commands
