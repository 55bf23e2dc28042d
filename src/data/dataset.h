// Data sets, transforms and target transforms that a spec can name. Each file in data/datasets/
// defines one DatasetType.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/tensor.h"
#include "data/color_jitter.h"
#include "data/mixing.h"
#include "graph/formulas/augment.h"
#include "spec/registry_entry.h"

namespace dpt {

// One tensor of a data set in memory; the first dimension counts samples. Images are u8 [N, C, H,
// W] (bytes stay u8), features f32 [N, F], classes i32 [N], token sequences i32 [N, T]. Immutable
// after loading: any thread may read.
struct Table {
  TensorDesc desc;  // its first dimension counts the samples
  std::shared_ptr<const std::byte[]> data;
  // Elements between the beginnings of consecutive samples; 0: samples are contiguous. Windows of a
  // text (i32) may overlap or leave gaps.
  int64_t stride = 0;
  int64_t size() const { return desc.shape[0]; }
  Shape sample() const { return desc.shape.tail(1); }
  int64_t step() const { return stride > 0 ? stride : sample().elements(); }
  // Number of elements from the first sample's first to the last sample's last.
  int64_t stored() const { return size() > 0 ? (size() - 1) * step() + sample().elements() : 0; }
};

// Makes samples on demand: images that are decoded or painted. Thread: any, several at once.
struct SampleReader {
  virtual ~SampleReader() = default;
  // Writes input number `row`; always the same bytes. May allocate and read files. Throws
  // Error{data}.
  virtual void read(uint32_t row, std::span<std::byte> out) const = 0;
  // What users should know of the samples that were read so far: a sentence, or nothing.
  virtual std::string remarks() const { return ""; }
  // Identifies the samples without reading them, as by the names of their files; 0: not known.
  virtual uint64_t fingerprint() const { return 0; }
};

// How a field of a text table becomes numbers of a sample.
struct ColumnEncoding {
  // A column of texts becomes one number per category: 1 for that of the field, 0 for the others;
  // all 0 if the field is missing or none of them. Empty: a column of numbers.
  std::vector<std::string> categories{};
  bool fills = false;  // a field without a value is accepted; a number then counts as `fill`
  double fill = 0;
  double mean = 0, std = 1;  // a number x becomes (x - mean) / std
  bool operator==(const ColumnEncoding&) const = default;
};

// A channel or column of an array: a number x becomes (x - mean) / std.
struct ChannelScaling {
  double mean = 0, std = 1;
  bool operator==(const ChannelScaling&) const = default;
};

// Where the columns of a text table went.
struct TableColumns {
  std::vector<std::string> names;       // of all columns; "0", "1", ... without a header line
  bool header = false;                  // the names come from a header line
  std::vector<size_t> inputs, targets;  // indices in `names`
  // One for each input column; empty: all are numbers that are used as they are.
  std::vector<ColumnEncoding> encodings{};
  bool operator==(const TableColumns&) const = default;
};

struct Dataset {
  Table inputs, targets;  // with a reader, inputs.data is empty
  std::shared_ptr<const SampleReader> reader;
  int64_t classes = 0;   // targets are i32 classes 0 <= c < classes; 0: not classes
  int64_t tokens = 0;    // inputs are i32 tokens 0 <= t < tokens; 0: not tokens
  int64_t ignored = 0;   // number of targets that equal the query's ignore_index
  std::string found_in;  // the folder in which a data set given by name was found
  std::string
      description;   // one line: "fashion_mnist: 60000 x [1, 28, 28] u8, 10 classes, from DIR"
  bool made = true;  // false (LoadQuery::sizes_only): the tables must not be read
  // What users should know before they train: what is left out, what may be misread.
  std::vector<std::string> warnings;
  std::vector<std::string> class_names;  // of each class; empty: classes have numbers only
  TableColumns columns;                  // of a text table; no names: it is none
  std::vector<ChannelScaling> channels;  // of arrays; empty: numbers are used as they are
  // Fields without a value in the file, of each input column of a text table; empty: not counted.
  std::vector<size_t> missing;
  // The byte that each token stands for; empty: tokens are not characters.
  std::string characters;
  int64_t size() const { return inputs.size(); }
};

enum class Split { train, test };

struct LoadQuery {
  Split split = Split::train;
  std::string folder{};  // the spec's folder; data sets given by name are looked for beside it
  std::optional<int64_t> ignore_index{};  // the label that the loss ignores
  // Targets are labels of 0 and 1: text tables may have words for them, such as True and False.
  bool binary_labels = false;
  // The numbers of the samples that are trained on, of so many; none given: all. Statistics of a
  // data set are those of these samples.
  std::function<std::vector<uint32_t>(int64_t samples)> trained{};
  // The training set, or what is kept of a trained run's (fitted_by() in sample_form.h): every
  // other set has its classes, columns, categories, statistics and characters. Null: this set
  // decides.
  const Dataset* training_set = nullptr;
  // Generated data sets need not be generated: only sizes and types are wanted, and the contents of
  // the tables are unspecified.
  bool sizes_only = false;
};

// Number of samples of a generated data set, at most what PyTorch shuffles with its usual algorithm
// (Generator::kMaxPermutation).
inline constexpr Range kSamples{
    .text = "must be between 1 and 214748363", .low = 1, .high = 214748363};

// Thrown by DatasetType::load if the settings name no test samples.
struct NoTestSplit : Error {
  // keys: those that would name them: "test_path"
  NoTestSplit(std::string_view dataset, std::string_view keys);
};

struct DatasetType : RegistryEntry {
  // Loads or generates the data set. Throws Error{data} that says what is wrong, where, and what to
  // do, and NoTestSplit.
  Dataset (*load)(const std::any& settings, const LoadQuery& query);
  // Whether the settings name test samples. Null: the data set has some.
  bool (*has_test_set)(const std::any& settings) = nullptr;
  // Python lines that make the same tensors for `export --to torch`: x, and y as float32 or int64.
  // They may use torch, numpy as np, and read_idx(path), which returns a tensor. Null, or if it
  // returns an empty text: PyTorch cannot load the data, and the export writes it to .npy files.
  std::string (*torch)(const std::any& settings, const LoadQuery& query) = nullptr;
  // A generated data set with the same shapes and types, as YAML, for measuring speed if the files
  // are missing. Null: none.
  std::string (*stand_in)(const std::any& settings) = nullptr;
  // For predictions: makes samples [channels, height, width] of image files as `load` does. Null:
  // the data set has no images in files of their own.
  std::shared_ptr<const SampleReader> (*image_reader)(const std::any& settings,
                                                      std::vector<std::string> files,
                                                      const Shape& sample) = nullptr;
  // For predictions: the input columns f32 [N, inputs] of a text file, which are found by the names
  // of the training file's columns if both have a header. Adds to `notes` what a user should know
  // of the file's fields, as sentences without their ends. Null: the data set is no text table.
  Table (*input_columns)(const std::any& settings, const TableColumns& columns,
                         const std::string& path, std::vector<std::string>& notes) = nullptr;
  // The lines of `torch` define `data`, a torch Dataset that reads samples one by one: (x, y) with
  // x [sample shape] and y a class. They may use torchvision's `datasets` and `transforms`.
  bool torch_reads_samples = false;
};

bool has_test_set(const Choice& dataset);

// A transform under `data.transforms:`: either an element-wise change of the inputs after
// conversion to f32, or a random change of where an image's pixels come from. For inputs of bytes,
// element-wise transforms become a table (data/byte_tables.h), so that gathering, converting and
// transforming is one pass.
struct TransformType : RegistryEntry {
  // Changes `count` elements of a channel in place. `from`: u8 if the elements were bytes just
  // before (the first transform of a list, for a u8 data set), else f32.
  void (*apply)(const std::any& settings, float* x, size_t count, int64_t channel,
                DType from) = nullptr;
  bool per_channel = false;     // settings may differ between channels (normalize)
  bool first_of_bytes = false;  // changes bytes only, so no other element-wise one may be before it
  // Why the transform does not fit such samples; empty if it does. Null: it fits all. Channels are
  // the first dimension of a sample.
  std::string (*refuses)(const std::any& settings, const TensorDesc& sample) = nullptr;
  // "x = x / 255", with x [N, sample shape]. Null: there is no equivalent.
  std::string (*torch)(const std::any& settings) = nullptr;

  // For random changes of images [C, H, W]; `apply` is null then.
  struct Random {
    // The change of one image, drawn on the host or the device.
    augment::Change (*change)(const std::any& settings) = nullptr;
    // The value of pixels outside of the source image: one number, or one per channel. Null: 0.
    std::vector<double> (*fill)(const std::any& settings) = nullptr;
    // null: the shape is unchanged
    Shape (*shape)(const std::any& settings, const Shape& image) = nullptr;
    // Python lines that change x [N, C, H, W], with one draw for all N images, using torchvision's
    // `transforms` and PyTorch's random numbers. Empty if nothing changes in an evaluation.
    std::string (*torch)(const std::any& settings, Split split) = nullptr;
    // The same change of y [N, ..., H, W], which is padded with 0. Null: pixels are not moved.
    std::string (*torch_targets)(const std::any& settings, Split split) = nullptr;
  } random{};
  // For random changes of colors; `apply` and `random.change` are null then.
  ColorJitter (*colors)(const std::any& settings) = nullptr;
  // For mixtures of two samples; `apply` and `random.change` are null then.
  Mixing (*mixing)(const std::any& settings) = nullptr;
  // Whether the transform draws random numbers in training.
  bool draws() const { return random.change != nullptr || colors != nullptr || mixing != nullptr; }
};

// Whether some transform mixes samples, so that classes become probabilities in training.
bool mixes(std::span<const Choice> transforms);

// A transform under `data.target_transforms:`, such as one_hot: class -> f32 [classes].
struct TargetTransformType : RegistryEntry {
  // The target is the sample's input after its transforms, and the data set's targets are not used:
  // infer() is given the input, `apply` is null, and no other target transform is possible.
  bool takes_input = false;
  // The target of a sample after the transform. Throws Error{spec} if it does not fit.
  TensorDesc (*infer)(const std::any& settings, const TensorDesc& sample,
                      int64_t classes) = nullptr;
  // Transforms a batch; `out` has the type and shape that infer() returned.
  void (*apply)(const std::any& settings, const TensorView& in, const TensorView& out) = nullptr;
  // For predictions: turns values of one sample, of the type and shape that infer() returned, into
  // what they were before. Null: they stay as they are.
  void (*undo)(const std::any& settings, const TensorView& target) = nullptr;
  // Units before the transform in one unit after it, for each element of the target that infer()
  // returned: how differences are scaled back. Null: 1 for each.
  std::vector<double> (*units)(const std::any& settings, const TensorDesc& target) = nullptr;
  std::string (*torch)(const std::any& settings, int64_t classes) = nullptr;  // "y = ..."
};

// Whether the target of a sample is its input.
bool takes_input(std::span<const Choice> target_transforms);

std::span<const DatasetType> dataset_table();
std::span<const TransformType> transform_table();
std::span<const TargetTransformType> target_transform_table();
std::vector<const RegistryEntry*> dataset_registry(), transform_registry(),
    target_transform_registry();

}  // namespace dpt
