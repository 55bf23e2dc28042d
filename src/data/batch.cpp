#include "data/batch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "base/fail.h"
#include "data/readers/bytes.h"

namespace dpt {
namespace {

constexpr size_t kBytes = 256;  // values of a byte

void plain_u8(const uint8_t* rows, const int64_t* index, size_t n, size_t features, float scale,
              float shift, float* x) {
  for (size_t r = 0; r < n; ++r)
    for (size_t i = 0; i < features; ++i)
      *x++ = static_cast<float>(rows[static_cast<size_t>(index[r]) * features + i]) * scale + shift;
}

void plain_u8_table(const uint8_t* rows, const int64_t* index, size_t n, size_t features,
                    const float* table, float* x) {
  for (size_t r = 0; r < n; ++r)
    for (size_t i = 0; i < features; ++i)
      *x++ = table[rows[static_cast<size_t>(index[r]) * features + i]];
}

template <class T>
void plain_copy(const T* rows, const int64_t* index, size_t n, size_t features, T* x) {
  for (size_t r = 0; r < n; ++r)
    x = std::copy_n(rows + static_cast<size_t>(index[r]) * features, features, x);
}

const TransformType& type_of(const Choice& c) { return static_cast<const TransformType&>(*c.what); }
const TargetTransformType& target_type_of(const Choice& c) {
  return static_cast<const TargetTransformType&>(*c.what);
}

size_t elements(const TensorDesc& desc) { return static_cast<size_t>(desc.shape.elements()); }

int64_t channels_of(const Shape& sample) { return sample.rank() == 0 ? 1 : sample[0]; }

void apply_all(std::span<const Choice> transforms, float* x, size_t count, int64_t channel,
               DType from) {
  for (const Choice& t : transforms) {
    type_of(t).apply(t.settings, x, count, channel, from);
    from = DType::f32;
  }
}

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

bool reproduces(const std::vector<float>& table, float scale, float shift) {
  for (size_t v = 0; v < kBytes; ++v)
    if (!same_bits(static_cast<float>(v) * scale + shift, table[v])) return false;
  return true;
}

// The samples [N, ...] one after another through f(rows of this block as int64). Indices are
// widened on the stack, since a steady step takes no memory.
template <class F>
void in_blocks(std::span<const uint32_t> rows, F&& f) {
  constexpr size_t kBlock = 256;
  std::array<int64_t, kBlock> wide;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (!rows.empty()) {
    const size_t n = std::min(kBlock, rows.size());
    std::copy_n(rows.begin(), n, wide.begin());
    f(std::span<const int64_t>(wide.data(), n));
    rows = rows.subspan(n);
  }
}

template <class T>
const T* as(const std::shared_ptr<const std::byte[]>& data) {
  return reinterpret_cast<const T*>(data.get());
}

}  // namespace

GatherKernels plain_gathers() { return {plain_u8, plain_u8_table, plain_copy<float>}; }

Feeder::Feeder(Dataset dataset, std::span<const Choice> transforms,
               std::span<const Choice> target_transforms, const GatherKernels& gathers)
    : dataset_(std::move(dataset)), gathers_(gathers) {
  require(dataset_.inputs.size() == dataset_.targets.size(),
          "inputs and targets of different counts");
  prepare_inputs(transforms);
  prepare_targets(target_transforms);
}

void Feeder::prepare_inputs(std::span<const Choice> transforms) {
  const Table& table = dataset_.inputs;
  const TensorDesc sample{table.desc.dtype, table.sample()};
  inputs_ = table.data;
  input_ = {DType::f32, sample.shape};
  if (sample.dtype == DType::i32) {
    input_.dtype = DType::i32;
    if (!transforms.empty())
      fail(Fault::spec,
           "transform '{}' is for numbers, but the data set's inputs are tokens ({} i32)",
           transforms.front().what->name, sample.shape.str());
    return;
  }
  bool by_channel = false;
  for (const Choice& t : transforms) {
    const std::string why = type_of(t).refuses ? type_of(t).refuses(t.settings, sample) : "";
    if (!why.empty()) fail(Fault::spec, "transform '{}': {}", t.what->name, why);
    by_channel = by_channel || type_of(t).per_channel;
  }
  const int64_t channels = by_channel ? channels_of(sample.shape) : 1;
  if (sample.dtype == DType::u8) {
    for (int64_t c = 0; c < channels; ++c) {
      ByteMap map{std::vector<float>(kBytes)};
      for (size_t v = 0; v < kBytes; ++v) map.table[v] = static_cast<float>(v);
      apply_all(transforms, map.table.data(), kBytes, c, DType::u8);
      map.shift = map.table[0];
      for (const float scale :
           {map.table[1] - map.table[0], (map.table[255] - map.table[0]) / 255}) {
        map.affine = map.affine || reproduces(map.table, scale, map.shift);
        if (map.affine) {
          map.scale = scale;
          break;
        }
      }
      maps_.push_back(std::move(map));
    }
    const auto same = [&](const ByteMap& m) { return m.table == maps_[0].table; };
    if (std::ranges::all_of(maps_, same)) maps_.resize(1);  // one pass over whole rows
    return;
  }
  require(sample.dtype == DType::f32, "inputs must be u8, i32 or f32");
  if (transforms.empty()) return;
  const size_t all = elements(table.desc), inner = elements(sample) / static_cast<size_t>(channels);
  const std::shared_ptr<std::byte[]> changed = allocate_bytes(all * sizeof(float));
  auto* x = reinterpret_cast<float*>(changed.get());
  std::copy_n(as<float>(table.data), all, x);
  for (size_t done = 0; done < all; done += inner)
    apply_all(transforms, x + done, inner, static_cast<int64_t>(done / inner) % channels,
              DType::f32);
  inputs_ = changed;
}

void Feeder::prepare_targets(std::span<const Choice> transforms) {
  const Table& table = dataset_.targets;
  targets_ = table.data;
  target_ = {table.desc.dtype, table.sample()};
  if (transforms.empty()) return;
  // Classes are few: what becomes of each is computed once. Values are transformed all at once.
  const bool of_classes = dataset_.classes > 0 && target_.shape.rank() == 0;
  const int64_t rows = of_classes ? dataset_.classes : table.size();
  std::vector<int32_t> each(of_classes ? static_cast<size_t>(rows) : 0);
  for (size_t c = 0; c < each.size(); ++c) each[c] = static_cast<int32_t>(c);
  const auto batch_of = [&](const TensorDesc& sample) {
    std::vector<int64_t> dims{rows};
    dims.insert(dims.end(), sample.shape.extents().begin(), sample.shape.extents().end());
    return TensorDesc{sample.dtype, Shape(dims)};
  };
  // apply reads its input only.
  TensorView now{batch_of(target_), of_classes ? reinterpret_cast<std::byte*>(each.data())
                                               : const_cast<std::byte*>(table.data.get())};
  std::shared_ptr<std::byte[]> held;
  for (const Choice& t : transforms) {
    target_ = target_type_of(t).infer(t.settings, target_, dataset_.classes);
    const TensorDesc desc = batch_of(target_);
    std::shared_ptr<std::byte[]> next = allocate_bytes(desc.bytes());
    const TensorView out{desc, next.get()};
    target_type_of(t).apply(t.settings, now, out);
    held = std::move(next);
    now = out;
  }
  if (of_classes && target_.dtype == DType::f32) {
    const std::span<float> values = now.as<float>();
    of_class_.assign(values.begin(), values.end());
  } else {
    require(!of_classes, "a target transform that turns classes into classes");
    targets_ = std::move(held);
  }
}

void Feeder::gather_bytes(std::span<const int64_t> rows, float* out) const {
  const size_t features = elements(input_), inner = features / maps_.size();
  const auto* bytes = as<uint8_t>(inputs_);
  const auto gather = [&](const ByteMap& map, const uint8_t* from, const int64_t* index, size_t n,
                          float* x) {
    if (map.affine)
      gathers_.u8(from, index, n, inner, map.scale, map.shift, x);
    else
      gathers_.u8_table(from, index, n, inner, map.table.data(), x);
  };
  if (maps_.size() == 1) return gather(maps_[0], bytes, rows.data(), rows.size(), out);
  constexpr int64_t kFirst = 0;
  for (const int64_t row : rows)
    for (size_t c = 0; c < maps_.size(); ++c, out += inner)
      gather(maps_[c], bytes + static_cast<size_t>(row) * features + c * inner, &kFirst, 1, out);
}

void Feeder::inputs(std::span<const uint32_t> rows, float* out) const {
  require(input_.dtype == DType::f32, "inputs are not f32");
  const size_t features = elements(input_);
  in_blocks(rows, [&](std::span<const int64_t> block) {
    if (!maps_.empty())
      gather_bytes(block, out);
    else
      gathers_.f32(as<float>(inputs_), block.data(), block.size(), features, out);
    out += block.size() * features;
  });
}

void Feeder::inputs(std::span<const uint32_t> rows, int32_t* out) const {
  require(input_.dtype == DType::i32, "inputs are not i32");
  const size_t features = elements(input_);
  in_blocks(rows, [&](std::span<const int64_t> block) {
    plain_copy(as<int32_t>(inputs_), block.data(), block.size(), features, out);
    out += block.size() * features;
  });
}

void Feeder::targets(std::span<const uint32_t> rows, float* out) const {
  require(target_.dtype == DType::f32, "targets are not f32");
  const size_t features = elements(target_);
  if (of_class_.empty()) {
    in_blocks(rows, [&](std::span<const int64_t> block) {
      gathers_.f32(as<float>(targets_), block.data(), block.size(), features, out);
      out += block.size() * features;
    });
    return;
  }
  const auto* labels = as<int32_t>(targets_);
  for (const uint32_t row : rows)
    out = std::copy_n(&of_class_[static_cast<size_t>(labels[row]) * features], features, out);
}

void Feeder::targets(std::span<const uint32_t> rows, int32_t* out) const {
  require(target_.dtype == DType::i32, "targets are not i32");
  const size_t features = elements(target_);
  in_blocks(rows, [&](std::span<const int64_t> block) {
    plain_copy(as<int32_t>(targets_), block.data(), block.size(), features, out);
    out += block.size() * features;
  });
}

}  // namespace dpt
