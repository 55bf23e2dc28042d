// What a spec can name under `data.dataset:`. One file in data/datasets/ holds one DatasetType.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "spec/nameable.h"

namespace dpt {

// A whole data set in memory: two tensors whose first extent is the sample. Bytes stay u8; images
// are [N, 1, 28, 28] u8, features f32 [N, F], classes i32 [N], token sequences i32 [N, T].
// Immutable after loading: any thread may read.
struct Table {
  TensorDesc desc;                         // with the sample extent first
  std::shared_ptr<const std::byte[]> data;
  int64_t size() const { return desc.shape[0]; }
  Shape sample() const { return desc.shape.tail(1); }
};

struct Dataset {
  Table inputs, targets;
  int64_t classes = 0;       // targets are i32 classes 0 <= c < classes; 0: they are values
  std::string description;   // one line: "fashion_mnist: 60000 x [1, 28, 28] u8, 10 classes, from DIR"
  int64_t size() const { return inputs.size(); }
};

enum class Split { train, test };

struct DatasetType : Nameable {
  // Loads or makes it. `folder`: of the spec file, for relative paths. Throws Error{Fault::data}
  // that says what, where, and what to do.
  Dataset (*load)(const std::any& settings, Split split, const std::string& folder);
  // What load would give without reading any data but headers: shapes, so that a plan needs no data.
  // May throw as load does.
  bool has_test_split = true;
  // Python lines that make the same tensors for `export --to torch` (x, y); empty: not expressible.
  std::string (*torch)(const std::any& settings, Split split);
};

// What a spec can name under `data.transforms:`: an element-wise change of the inputs after they
// have become f32. to_tensor: u8 / 255 as torchvision's. All of them are affine or table-driven,
// so that gathering, converting and transforming is one pass.
struct TransformType : Nameable {
  // x as a sample [sample shape] f32 -> f32, applied in place to `count` elements of channel `c`.
  void (*apply)(const std::any& settings, float* x, size_t count, int64_t channel);
  bool per_channel = false;  // settings differ by channel (normalize)
  std::string (*torch)(const std::any& settings);  // "x = x / 255"
};

// What a spec can name under `data.target_transforms:`. one_hot: class -> f32 [classes].
struct TargetTransformType : Nameable {
  TensorDesc (*infer)(const std::any& settings, const TensorDesc& sample, int64_t classes);
  void (*apply)(const std::any& settings, const TensorView& in, const TensorView& out);  // for a batch of rows
  std::string (*torch)(const std::any& settings, int64_t classes);
};

std::span<const DatasetType> dataset_table();
std::span<const TransformType> transform_table();
std::span<const TargetTransformType> target_transform_table();
std::vector<const Nameable*> dataset_words(), transform_words(), target_transform_words();

}  // namespace dpt
