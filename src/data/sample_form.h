// SampleForm: what the samples and targets of a run look like. A trained model needs it to read new
// samples, and to say what its outputs mean. data.json of a run directory holds it, so that
// predictions do not need the training data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace dpt {

// The samples of a set, by which a run notices that files have changed.
struct SetRecord {
  int64_t samples = 0;
  std::string fingerprint;  // full_fingerprint()
  bool operator==(const SetRecord&) const = default;
};

// What a run was trained on.
struct DataRecord {
  SetRecord training;  // with those samples that are for validation
  // fingerprint_of_rows() of the samples that are trained on; empty: all are
  std::string split{};
  // A separate validation set. Empty: there is none, it was not evaluated, or it is not known
  // (early versions).
  std::optional<SetRecord> validation{};
  bool operator==(const DataRecord&) const = default;
};

struct SampleForm {
  TensorDesc stored;    // a sample before transforms: u8, f32, or i32 for tokens
  TensorDesc target;    // its target before target transforms: i32 for classes, or f32
  int64_t classes = 0;  // number of classes; 0: targets are not classes
  int64_t tokens = 0;   // number of tokens; 0: samples are not tokens
  std::vector<std::string> class_names{};  // empty: classes have numbers only
  TableColumns columns{};                  // no names: samples are not rows of a text table
  std::vector<ChannelScaling> channels{};  // of arrays; empty: numbers are used as they are
  std::string characters{};  // the byte of each token; empty: tokens are not characters
  // One, and a further one for each time that the run was resumed with other data. Empty: not known
  // (version 0.1.0).
  std::vector<DataRecord> trained_on{};
  bool operator==(const SampleForm&) const = default;
};

SampleForm form_of(const Dataset& dataset);

// Names as data.json holds them: bytes that are not UTF-8, as in names of folders, are replaced.
std::vector<std::string> as_stored(const std::vector<std::string>& names);

// A data set without samples: what was fitted to the training data, for LoadQuery::training_set.
Dataset fitted_by(const SampleForm& form);

// Whether both have the same input columns of a table, and the same class names.
bool same_columns(const SampleForm& a, const SampleForm& b);

// Whether both make the same numbers of the same fields: categories, means, standard deviations,
// fill values, input columns, class names and characters.
bool same_fit(const SampleForm& a, const SampleForm& b);

// The text of data.json. form_from_json() throws Error{data} with the path if the text is not one.
std::string to_json(const SampleForm& form);
SampleForm form_from_json(std::string_view text, const std::string& path);

// The type and shape of a sample after the transforms of a spec, as evaluations use them. Throws
// Error{spec} if they do not fit.
TensorDesc input_of(const SampleForm& form, std::span<const Choice> transforms);

// What each byte of a sample becomes by these transforms: [1 or channels, 256]. Empty if samples
// are not bytes, or if the transforms change their shape. Throws like input_of().
std::vector<float> byte_values(const SampleForm& form, std::span<const Choice> transforms);

}  // namespace dpt
