#include "data/tables.h"

namespace dpt::datasets {
namespace {

// Inputs f32 [64, 1] between 0 and 1, and targets 2 x + 1.
struct Line {
  static constexpr Usage kUsage{"", "dataset: line"};
  static KeyTable<Line> keys() { return {}; }
};

Dataset load(const std::any&, const LoadQuery& query) {
  const NewTable x({DType::f32, {64, 1}}), y({DType::f32, {64, 1}});
  if (!query.sizes_only)
    for (size_t i = 0; i < 64; ++i) {
      x.as<float>()[i] = static_cast<float>(i) / 64;
      y.as<float>()[i] = 2 * x.as<float>()[i] + 1;
    }
  Dataset d;
  d.made = !query.sizes_only;
  d.inputs = NewTable(x).done();
  d.targets = NewTable(y).done();
  d.description = describe("line", d, "");
  return d;
}

}  // namespace

DatasetType line() {
  DatasetType t{registry_entry<Line>("line", "Points of a line.")};
  t.load = load;
  return t;
}

}  // namespace dpt::datasets
