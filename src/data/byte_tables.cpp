#include "data/byte_tables.h"

#include <algorithm>
#include <bit>

#include "data/element_transforms.h"

namespace dpt {
namespace {

constexpr size_t kBytes = 256;  // number of values of a byte

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

bool reproduces(const std::vector<float>& table, float scale, float shift) {
  for (size_t v = 0; v < kBytes; ++v)
    if (!same_bits(static_cast<float>(v) * scale + shift, table[v])) return false;
  return true;
}

}  // namespace

ByteTables::ByteTables(std::span<const Choice> transforms, int64_t channels,
                       const GatherKernels& gathers)
    : gathers_(gathers) {
  for (int64_t c = 0; c < channels; ++c) {
    ByteMap map{std::vector<float>(kBytes)};
    for (size_t v = 0; v < kBytes; ++v) map.table[v] = static_cast<float>(v);
    apply_all(transforms, map.table.data(), kBytes, c, DType::u8);
    map.shift = map.table[0];
    for (const float scale : {map.table[1] - map.table[0], (map.table[255] - map.table[0]) / 255}) {
      map.affine = map.affine || reproduces(map.table, scale, map.shift);
      if (map.affine) {
        map.scale = scale;
        break;
      }
    }
    tables_.push_back(std::move(map));
  }
  const auto same = [&](const ByteMap& m) { return m.table == tables_[0].table; };
  if (std::ranges::all_of(tables_, same)) tables_.resize(1);  // one pass over whole samples
}

void ByteTables::convert(const ByteMap& map, const uint8_t* rows, const int64_t* index, size_t n,
                         size_t features, float* x) const {
  if (map.affine)
    gathers_.u8(rows, index, n, features, map.scale, map.shift, x);
  else
    gathers_.u8_table(rows, index, n, features, map.table.data(), x);
}

void ByteTables::convert(const uint8_t* bytes, size_t count, int64_t channel, float* x) const {
  constexpr int64_t kFirst = 0;
  convert(tables_[tables_.size() == 1 ? 0 : static_cast<size_t>(channel)], bytes, &kFirst, 1, count,
          x);
}

void ByteTables::gather(const uint8_t* data, std::span<const int64_t> rows, size_t features,
                        float* x) const {
  const size_t inner = features / tables_.size();
  if (tables_.size() == 1) return convert(tables_[0], data, rows.data(), rows.size(), inner, x);
  for (const int64_t row : rows)
    for (size_t c = 0; c < tables_.size(); ++c, x += inner)
      convert(data + static_cast<size_t>(row) * features + c * inner, inner,
              static_cast<int64_t>(c), x);
}

std::vector<float> ByteTables::values() const {
  std::vector<float> out;
  for (const ByteMap& map : tables_) out.insert(out.end(), map.table.begin(), map.table.end());
  return out;
}

}  // namespace dpt
