// dptrain predict RUN FILE...: classes or values for new samples.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/cpu/simd/simd.h"
#include "base/count.h"
#include "base/error.h"
#include "base/files.h"
#include "base/lower_case.h"
#include "base/refuse_overwriting.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "base/units.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/trained_run.h"
#include "data/readers/image.h"
#include "data/write_npy.h"
#include "inference/prediction.h"

namespace dpt::commands {
namespace {

enum class Format { table, csv, json, json_lines, npy };

// The format of an output file, by its ending.
Format output_format(const std::string& output) {
  const std::string ending = lower_case(std::filesystem::path(output).extension().string());
  if (ending == ".csv") return Format::csv;
  if (ending == ".json") return Format::json;
  if (ending == ".jsonl") return Format::json_lines;
  if (ending == ".npy") return Format::npy;
  throw BadWords{fmt::format(
      "predict -o {}: {}; the ending of the file decides what is written: .csv, .json and .jsonl "
      "for predictions, .npy for the model's outputs as they are",
      output, ending.empty() ? "the file has no ending" : "unknown ending '" + ending + "'")};
}

Format output_format(const std::string& output, bool json, bool csv) {
  if (output.empty()) return json ? Format::json : csv ? Format::csv : Format::table;
  const Format out = output_format(output);
  if ((json && out != Format::json) || (csv && out != Format::csv))
    throw BadWords{fmt::format("predict: {} and -o {} ask for different formats; leave out {}",
                               json ? "--json" : "--csv", output, json ? "--json" : "--csv")};
  return out;
}

// Writes outputs [samples, output] as the model computes them; those of images that could not be
// read are nan.
void write_outputs(const std::string& path, std::vector<float> outputs, const InputFiles& inputs,
                   const Shape& output) {
  const auto width = static_cast<size_t>(output.elements());
  if (inputs.dataset.reader)
    for (const auto& [file, reason] : inputs.unread->reasons())
      std::fill_n(outputs.begin() + static_cast<std::ptrdiff_t>(file * width), width,
                  std::numeric_limits<float>::quiet_NaN());
  const auto owner = std::make_shared<std::vector<float>>(std::move(outputs));
  const std::shared_ptr<const std::byte[]> data(owner,
                                                reinterpret_cast<const std::byte*>(owner->data()));
  const int64_t samples = inputs.dataset.size();
  write_npy(path, {.desc = {DType::f32, output.batch(samples)}, .data = data}, nullptr, samples);
}

std::string predictions_text(const PredictionTable& table, Format format,
                             std::span<const float> outputs) {
  switch (format) {
    case Format::csv:
      return table.csv(outputs);
    case Format::json:
      return table.json(outputs);
    case Format::json_lines:
      return table.json_lines(outputs);
    case Format::table:
    case Format::npy:
      break;
  }
  return table.text(outputs);
}

// As print_stdout(), but without a copy of a text that may be large.
void print_lines(std::string_view text) {
  constexpr size_t kPiece = 64 * kKiB;
  while (!text.empty()) {
    const size_t end = text.find('\n', std::min(kPiece, text.size()));
    const std::string_view piece = text.substr(0, end == text.npos ? end : end + 1);
    write_stdout(escape_controls(piece));
    text.remove_prefix(piece.size());
  }
}

// Reports files that could not be read, and returns the exit code.
int report_unread(const InputFiles& inputs) {
  const std::map<size_t, std::string> unread = inputs.unread->reasons();
  if (unread.empty()) return 0;
  for (const auto& [file, reason] : unread) print_stderr("dptrain: {}\n", reason);
  print_stderr("dptrain: {} of {} could not be read and {} no predictions\n", unread.size(),
               counted(inputs.files.size(), "file"), unread.size() == 1 ? "has" : "have");
  return static_cast<int>(Fault::data);
}

// Throws Error{spec} if the predictions would replace a file that they are computed from.
void check_output(const std::string& output, const TrainedRun& run, const InputFiles& inputs) {
  for (const std::string& file : inputs.files) refuse_overwriting(output, file);
  refuse_overwriting(output, run.weights);
  refuse_overwriting(output, run.loaded);
  if (run.folder.empty()) return;
  for (const char* name : {"data.json", "metrics.jsonl"})
    refuse_overwriting(output, run.folder + "/" + name);
}

struct PredictArguments {
  TrainedRunArgument run;
  std::vector<std::string> files;
  std::string output;
  int top = 1;
  bool json = false, csv = false;
};

void declare_predict(Arguments& arguments, PredictArguments& given) {
  arguments.about(
      "Predicts classes or values for new samples: CSV, NPY, IDX and image files, or folders\n"
      "of images, in the form of the run's training data before its transforms. Files that cannot\n"
      "be read are reported and left out; the exit code is 4 then.");
  given.run.add_to(arguments);
  arguments.texts("FILE", given.files, {takes::file}, "the samples, without targets");
  arguments.number("--top K", given.top, 1, 1000,
                   "print the K most probable classes of each sample");
  arguments.flag("--json", given.json, "print JSON instead of the table");
  arguments.flag("--csv", given.csv, "print CSV instead of the table", "--json");
  arguments.text("-o,--out,--output FILE", given.output, {takes::file},
                 "write the predictions to a file that ends in .csv, .json or .jsonl, or the "
                 "model's outputs as they are to one that ends in .npy");
}

int run_predict(PredictArguments& given) {
  // Without RUN, the first word is a file of samples.
  std::error_code error;
  if (const std::string& first = given.run.run;
      std::filesystem::is_regular_file(first, error) && !first.ends_with(".yaml"))
    given.files.insert(given.files.begin(), std::exchange(given.run.run, ""));
  if (given.files.empty()) throw BadWords{"predict: name a run and at least one file of samples"};
  const Format format = output_format(given.output, given.json, given.csv);
  const TrainedRun run = load(given.run);
  const SampleForm form = sample_form(run);
  const Spec& spec = run.loaded.spec;
  const InputFiles inputs = read_input_files(spec.data.dataset, form, given.files);
  for (const std::string& file : inputs.left_out)
    print_stderr("note: {} is left out: it is no image ({})\n", file, kImageEndings);
  if (inputs.unread->reasons().size() == inputs.files.size()) return report_unread(inputs);
  for (const std::string& note : inputs.notes) print_stderr("dptrain: note: {}\n", note);
  if (!given.output.empty()) check_output(given.output, run, inputs);
  const SimdKernels& simd = simd_kernels();
  const BatchLoader loader(
      inputs.dataset, spec.data.transforms, {},
      {.u8 = simd.gather_u8, .u8_table = simd.gather_u8_table, .f32 = simd.gather_f32},
      Split::test);
  TrainedModel model(spec, loader.input(), run.weights);
  if (format == Format::npy) {
    write_outputs(given.output, outputs_of(model, loader), inputs, model.output());
  } else {
    const PredictionTable table(spec, form, inputs, model.output(), given.top);
    if (given.top > 1 && !table.ranks_classes())
      print_stderr("dptrain: note: --top is for classes; these predictions are not of classes\n");
    const std::vector<float> outputs = outputs_of(model, loader);
    if (inputs.dataset.size() > 0 && inputs.read_samples().empty()) return report_unread(inputs);
    const std::string text = predictions_text(table, format, outputs);
    if (given.output.empty())
      print_lines(text);
    else
      write_text(given.output, text);
  }
  return report_unread(inputs);
}

}  // namespace

Command predict() {
  return make_command("predict", "classes or values for new samples", declare_predict, run_predict);
}

}  // namespace dpt::commands
