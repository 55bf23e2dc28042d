// dptrain predict RUN FILE...: classes or values for new samples.
#include "backend/cpu/simd/simd.h"
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/trained_run.h"
#include "data/write_npy.h"
#include "inference/prediction.h"

namespace dpt::commands {
namespace {

// Writes outputs [samples, output] as the model computes them.
void write_outputs(const std::string& path, std::vector<float>& outputs, int64_t samples,
                   const Shape& output) {
  const auto owner = std::make_shared<std::vector<float>>(std::move(outputs));
  const std::shared_ptr<const std::byte[]> data(owner,
                                                reinterpret_cast<const std::byte*>(owner->data()));
  write_npy(path, {.desc = {DType::f32, output.batch(samples)}, .data = data}, nullptr, samples);
  outputs = std::move(*owner);
}

int run_predict(const std::vector<std::string>& words) {
  Arguments arguments(
      "predict",
      "Predicts classes or values for new samples: CSV, NPY, IDX and image files, or folders\n"
      "of images, in the form of the run's training data before its transforms.");
  TrainedRunArgument argument;
  std::vector<std::string> files;
  std::string output;
  int top = 1;
  bool json = false, csv = false;
  argument.add_to(arguments);
  arguments.texts("FILE", files, "the samples, without targets");
  arguments.number("--top K", top, 1, 1000, "print the K most probable classes of each sample");
  arguments.flag("--json", json, "print JSON instead of the table");
  arguments.flag("--csv", csv, "print CSV instead of the table", "--json");
  arguments.text("-o,--output FILE", output,
                 "write the model's outputs as they are to an .npy file instead");
  arguments.parse(words);
  if (files.empty()) throw BadWords{"predict: name a run and at least one file of samples"};
  const TrainedRun run = load(argument);
  const SampleForm form = sample_form(run);
  const Spec& spec = run.loaded.spec;
  const InputFiles inputs = read_input_files(spec.data.dataset, form, files);
  const SimdKernels& simd = simd_kernels();
  const BatchLoader loader(
      inputs.dataset, spec.data.transforms, {},
      {.u8 = simd.gather_u8, .u8_table = simd.gather_u8_table, .f32 = simd.gather_f32},
      Split::test);
  TrainedModel model(spec, loader.input(), run.weights);
  std::vector<float> outputs = outputs_of(model, loader);
  if (!output.empty()) {
    write_outputs(output, outputs, loader.size(), model.output());
    return 0;
  }
  const PredictionTable table(spec, form, inputs, model.output(), top);
  if (json)
    print_stdout("{}", table.json(outputs));
  else if (csv)
    print_stdout("{}", table.csv(outputs));
  else
    print_stdout("{}", table.text(outputs));
  return 0;
}

}  // namespace

Command predict() {
  return {.name = "predict", .summary = "classes or values for new samples", .run = run_predict};
}

}  // namespace dpt::commands
