// What the outputs of a trained model say about new samples.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/batch_loader.h"
#include "data/input_files.h"
#include "data/sample_form.h"
#include "formats/json.h"
#include "inference/trained_model.h"
#include "layers/loss.h"
#include "spec/spec.h"

namespace dpt {

// The outputs [samples, model.output()] for all samples of a loader.
std::vector<float> outputs_of(TrainedModel& model, const BatchLoader& loader);

// Predictions as a table: for classes the most probable ones; for ctc_loss the label sequence that
// greedy decoding gives (the most probable label at each time, without repetitions and blanks:
// Graves et al., 2006, best path decoding); for other targets the values in the units of the data,
// without `standardize`, and for gaussian_nll_loss their variances, too. Samples of files that
// could not be read have no line.
class PredictionTable {
 public:
  // top: how many classes a sample's line has. Throws Error{spec} if a sample's output is none of
  // these: scores for each position of a sequence, or more than 64 values. All references must
  // outlive it.
  PredictionTable(const Spec& spec, const SampleForm& form, const InputFiles& inputs,
                  const Shape& output, int64_t top);

  bool ranks_classes() const { return shown_ == Shown::classes; }
  // outputs: [samples, output].
  std::string text(std::span<const float> outputs) const;
  std::string csv(std::span<const float> outputs) const;   // the first line has the columns' names
  std::string json(std::span<const float> outputs) const;  // {"predictions": [{"file": ...}, ...]}
  std::string json_lines(std::span<const float> outputs) const;  // {"file": ...}, one a line

 private:
  struct Ranked {
    int64_t index = 0;  // of the class
    double score = 0;   // a probability, unless the loss trains no probabilities
  };
  enum class Shown { classes, labels, values };
  std::span<const float> output_of(std::span<const float> outputs, int64_t sample) const;
  std::vector<Ranked> ranked(std::span<const float> output) const;
  std::vector<int64_t> labels(std::span<const float> output) const;
  std::vector<float> values(std::span<const float> output) const;
  void undo_transforms(std::span<float> values) const;
  std::string class_name(int64_t index) const;
  std::string score_name() const;
  std::vector<std::string> columns() const;
  std::vector<std::string> cells(std::span<const float> output, bool exact) const;
  std::vector<std::string> value_names() const;
  Json json_of(int64_t sample, std::span<const float> outputs) const;

  const Spec& spec_;
  const SampleForm& form_;
  const InputFiles& inputs_;
  const LossType& loss_;
  OutputKind kind_;
  TensorDesc target_;  // after target transforms
  Shape output_;
  Shown shown_ = Shown::values;
  int64_t top_ = 0;
};

}  // namespace dpt
