// What a spec can name under `data.dataset:`. One file in data/datasets/ holds one DatasetType.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"
#include "graph/formulas/augment.h"
#include "spec/nameable.h"

namespace dpt {

// A whole data set in memory: two tensors whose first extent is the sample. Bytes stay u8; images
// are [N, 1, 28, 28] u8, features f32 [N, F], classes i32 [N], token sequences i32 [N, T].
// Immutable after loading: any thread may read.
struct Table {
  TensorDesc desc;  // with the sample extent first
  std::shared_ptr<const std::byte[]> data;
  // Elements between the beginnings of two samples; 0: they follow each other. Windows of a text
  // (i32) may overlap, or leave some of it out.
  int64_t stride = 0;
  int64_t size() const { return desc.shape[0]; }
  Shape sample() const { return desc.shape.tail(1); }
  int64_t step() const { return stride > 0 ? stride : sample().elements(); }
  // Elements from the first sample's first to the last one's last.
  int64_t stored() const { return size() > 0 ? (size() - 1) * step() + sample().elements() : 0; }
};

// Makes samples when they are needed: images that are decoded or painted. Any thread may call it.
struct SampleReader {
  virtual ~SampleReader() = default;
  // Writes input number `row`; the same bytes each time. May take memory and read files. Throws
  // Error{data}.
  virtual void read(uint32_t row, std::span<std::byte> out) const = 0;
};

struct Dataset {
  Table inputs, targets;  // no data of the inputs where there is a reader
  std::shared_ptr<const SampleReader> reader;
  int64_t classes = 0;   // targets are i32 classes 0 <= c < classes; 0: they are values
  int64_t tokens = 0;    // inputs are i32 tokens 0 <= t < tokens; 0: they are no tokens
  int64_t ignored = 0;   // how many targets are the query's ignore_index
  std::string found_in;  // the folder of a set known by name that had to be looked for
  std::string
      description;   // one line: "fashion_mnist: 60000 x [1, 28, 28] u8, 10 classes, from DIR"
  bool made = true;  // false: LoadQuery::sizes_only, nobody may read the tables
  int64_t size() const { return inputs.size(); }
};

enum class Split { train, test };

struct LoadQuery {
  Split split = Split::train;
  std::string folder{};  // of the spec: sets known by name are looked for beside it
  std::optional<int64_t> ignore_index{};  // a label that the loss passes over
  // What is made up need not be: sizes and types are all that is wanted, and the tables hold
  // anything.
  bool sizes_only = false;
};

// Samples of a set that is made up: as many as torch shuffles in one way
// (Generator::kMaxPermutation).
inline constexpr Range kSamples{"must be between 1 and 214748363", 1, 214748363};

struct DatasetType : Nameable {
  // Loads or makes it. Throws Error{Fault::data} that says what, where, and what to do; also where
  // there is no test split.
  Dataset (*load)(const std::any& settings, const LoadQuery& query);
  bool has_test_split = true;
  // Python lines that make the same tensors for `export --to torch`: x, and y as float32 or int64.
  // They may use torch, numpy as np, and read_idx(path), which gives a tensor. Null: PyTorch cannot
  // make them, and the export writes them as .npy files.
  std::string (*torch)(const std::any& settings, const LoadQuery& query) = nullptr;
  // A made-up set of the same shapes and types, as YAML, to measure speed with where the files are
  // missing. Null: there is none.
  std::string (*stand_in)(const std::any& settings) = nullptr;
  // The lines of `torch` make `data`, a torch Dataset that reads samples one by one: (x, y) with x
  // [sample shape] and y a class. They may use torchvision's `datasets` and `transforms`.
  bool torch_reads_samples = false;
};

// What a spec can name under `data.transforms:`: an element-wise change of the inputs, after they
// have become f32, or a random change of where an image's pixels come from. Where inputs are bytes,
// the Feeder makes a table of the former (data/batch.h), so that gathering, converting and
// transforming is one pass.
struct TransformType : Nameable {
  // Changes `count` elements of channel `channel` in place. `from`: u8 if they were bytes just
  // before (the first transform of a list over a u8 set), else f32.
  void (*apply)(const std::any& settings, float* x, size_t count, int64_t channel,
                DType from) = nullptr;
  bool per_channel = false;  // settings may differ by channel (normalize)
  // Why it does not fit samples of these; empty: it does. Null: it fits all. Channels are the first
  // extent of a sample.
  std::string (*refuses)(const std::any& settings, const TensorDesc& sample) = nullptr;
  // "x = x / 255", x [N, sample shape]. Null: not expressible.
  std::string (*torch)(const std::any& settings) = nullptr;

  // Of a random change; `apply` is null then, and samples are images [C, H, W].
  struct Random {
    // What happens to one image, drawn by host or device.
    augment::Change (*change)(const std::any& settings) = nullptr;
    // What pixels that come from nowhere are, one number or one for each channel. Null: 0.
    std::vector<double> (*fill)(const std::any& settings) = nullptr;
    Shape (*shape)(const std::any& settings, const Shape& image) = nullptr;  // null: the same
    // Python lines that change x [N, C, H, W], with one draw for all N images, by torchvision's
    // `transforms` and torch's random numbers. Empty where an evaluation changes nothing.
    std::string (*torch)(const std::any& settings, Split split) = nullptr;
  } random{};
};

// What a spec can name under `data.target_transforms:`. one_hot: class -> f32 [classes].
struct TargetTransformType : Nameable {
  // What becomes of a sample's target. Throws Error{Fault::spec} where it does not fit.
  TensorDesc (*infer)(const std::any& settings, const TensorDesc& sample,
                      int64_t classes) = nullptr;
  // For a batch of rows; `out` is as infer said.
  void (*apply)(const std::any& settings, const TensorView& in, const TensorView& out) = nullptr;
  std::string (*torch)(const std::any& settings, int64_t classes) = nullptr;  // "y = ..."
};

std::span<const DatasetType> dataset_table();
std::span<const TransformType> transform_table();
std::span<const TargetTransformType> target_transform_table();
std::vector<const Nameable*> dataset_words(), transform_words(), target_transform_words();

}  // namespace dpt
