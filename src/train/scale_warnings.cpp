#include "train/scale_warnings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/one_line.h"
#include "data/tables.h"

namespace dpt {
namespace {

struct Moments {
  double mean = 0, std = 0;
  bool is_large() const {
    constexpr double kMost = 100;
    return std::abs(mean) + std > kMost;
  }
};

// With 4 digits, as in a spec: "265000".
std::string short_number(double x) {
  return fmt::format("{}", std::stod(fmt::format("{:.4g}", x)));
}

// The moments of a column of an f32 table over these rows; empty: over all.
Moments moments_of(const Table& table, size_t column, std::span<const uint32_t> rows) {
  const auto columns = static_cast<size_t>(table.sample().elements());
  const std::span<const float> all = values_of<float>(table);
  const size_t count = rows.empty() ? static_cast<size_t>(table.size()) : rows.size();
  const auto value = [&](size_t i) {
    return static_cast<double>(all[(rows.empty() ? i : rows[i]) * columns + column]);
  };
  Moments out;
  for (size_t i = 0; i < count; ++i) out.mean += value(i) / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) {
    const double d = value(i) - out.mean;
    out.std += d * d / static_cast<double>(count);
  }
  out.std = std::sqrt(out.std);
  return out;
}

// The input columns of numbers by their names; categories are 0 and 1.
struct NumberColumn {
  std::string name;
  Moments moments{};
};
std::vector<NumberColumn> number_columns(const SessionData& data) {
  const TableColumns& columns = data.train.columns;
  std::vector<NumberColumn> out;
  size_t at = 0;
  for (size_t i = 0; i < columns.inputs.size(); ++i) {
    const size_t categories =
        i < columns.encodings.size() ? columns.encodings[i].categories.size() : 0;
    if (categories == 0)
      out.push_back({.name = one_line(columns.names[columns.inputs[i]]),
                     .moments = moments_of(data.train.inputs, at, data.train_rows)});
    at += categories == 0 ? 1 : categories;
  }
  return out;
}

bool is_scaled(const TableColumns& columns) {
  return std::ranges::any_of(columns.encodings,
                             [](const ColumnEncoding& e) { return e.mean != 0 || e.std != 1; });
}

// Whether the first layer brings its inputs to a standard range.
bool begins_with_norm(const Spec& spec) {
  const bool layer =
      !spec.model.empty() && spec.model[0].kind == ModelItem::Kind::layer && spec.model[0].layer;
  return layer && spec.model[0].layer.what->name.find("_norm") != std::string_view::npos;
}

void check_inputs(const Spec& spec, const SessionData& data, std::vector<std::string>& out) {
  const auto& type = static_cast<const DatasetType&>(*spec.data.dataset.what);
  if (type.input_columns == nullptr || !spec.data.transforms.empty() || begins_with_norm(spec) ||
      !data.train.inputs.data || is_scaled(data.train.columns))
    return;
  const std::vector<NumberColumn> columns = number_columns(data);
  constexpr std::string_view kRemedy =
      "inputs near 0 with a deviation of about 1 train better: write `standardize: true` in the "
      "data set";
  const auto large =
      std::ranges::find_if(columns, [](const NumberColumn& c) { return c.moments.is_large(); });
  if (large != columns.end()) {
    out.push_back(fmt::format("the column '{:.40}' has a mean of {} and a deviation of {}; {}",
                              large->name, short_number(large->moments.mean),
                              short_number(large->moments.std), kRemedy));
    return;
  }
  constexpr double kMostApart = 1000;
  const NumberColumn *least = nullptr, *most = nullptr;
  for (const NumberColumn& c : columns) {
    if (c.moments.std == 0) continue;
    if (least == nullptr || c.moments.std < least->moments.std) least = &c;
    if (most == nullptr || c.moments.std > most->moments.std) most = &c;
  }
  if (least == nullptr || most->moments.std < kMostApart * least->moments.std) return;
  out.push_back(fmt::format("the column '{:.40}' has a deviation of {}, and '{:.40}' of {}; {}",
                            least->name, short_number(least->moments.std), most->name,
                            short_number(most->moments.std), kRemedy));
}

void check_targets(const Session& session, std::vector<std::string>& out) {
  const Spec& spec = session.settings.spec;
  const Dataset& d = session.data.train;
  if (!session.settings.loss->estimates || !spec.data.target_transforms.empty() ||
      !d.targets.data || d.targets.desc.dtype != DType::f32 || d.targets.sample().rank() != 1)
    return;
  const auto columns = static_cast<size_t>(d.targets.sample().elements());
  constexpr size_t kMostColumns = 8;
  if (columns > kMostColumns) return;
  std::string means, deviations;
  Moments large;
  for (size_t c = 0; c < columns; ++c) {
    const Moments m = moments_of(d.targets, c, session.data.train_rows);
    if (!large.is_large()) large = m;
    means += (c > 0 ? ", " : "") + short_number(m.mean);
    deviations += (c > 0 ? ", " : "") + short_number(m.std > 0 ? m.std : 1);
  }
  if (!large.is_large()) return;
  if (columns > 1) {
    means = "[" + means + "]";
    deviations = "[" + deviations + "]";
  }
  out.push_back(fmt::format(
      "{} a mean of {} and a deviation of {}; targets near 0 with a deviation of about 1 train "
      "better: write `target_transforms: [standardize: {{mean: {}, std: {}}}]`",
      columns == 1 ? "the targets have" : "a column of the targets has", short_number(large.mean),
      short_number(large.std), means, deviations));
}

}  // namespace

std::vector<std::string> scale_warnings(const Session& session) {
  std::vector<std::string> out;
  if (!session.data.train.made) return out;
  check_inputs(session.settings.spec, session.data, out);
  check_targets(session, out);
  return out;
}

}  // namespace dpt
