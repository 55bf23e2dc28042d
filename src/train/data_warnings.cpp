#include "train/data_warnings.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/image_shape.h"
#include "data/tables.h"
#include "train/scale_warnings.h"

namespace dpt {
namespace {

// The samples of each class among these rows; empty rows: all.
std::vector<int64_t> class_counts(const Dataset& d, std::span<const uint32_t> rows) {
  std::vector<int64_t> out(static_cast<size_t>(d.classes));
  const std::span<const int32_t> all = values_of<int32_t>(d.targets);
  const auto add = [&](int32_t label) {
    if (label >= 0 && label < d.classes) ++out[static_cast<size_t>(label)];
  };
  for (const uint32_t row : rows) add(all[row]);
  if (rows.empty())
    for (const int32_t label : all) add(label);
  return out;
}

bool has_one_class_each(const Dataset& d) {
  return d.made && d.classes > 0 && d.targets.desc.dtype == DType::i32 &&
         d.targets.sample().rank() == 0;
}

// "2 of the 10 classes: 'a', 'b'". REQUIRES: there is one.
std::string named(const Dataset& d, const std::vector<size_t>& classes) {
  constexpr size_t kShown = 5;
  std::vector<std::string> names;
  for (const size_t c : classes) {
    if (names.size() == kShown) break;
    names.push_back(c < d.class_names.size() ? fmt::format("'{:.40}'", d.class_names[c])
                                             : std::to_string(c));
  }
  return fmt::format("{} of the {} classes: {}{}", classes.size(), d.classes,
                     fmt::join(names, ", "), classes.size() > kShown ? ", ..." : "");
}

void check_classes(const Spec& spec, const SessionData& data, std::vector<std::string>& out) {
  const Dataset& d = data.train;
  constexpr int64_t kFew = 2;
  // Those of made-up data are as the spec asks for.
  const bool own = !d.class_names.empty() || !d.columns.names.empty();
  if (!own || !has_one_class_each(d)) return;
  const std::vector<int64_t> trained = class_counts(d, data.train_rows);
  std::vector<size_t> few;
  for (size_t c = 0; c < trained.size(); ++c)
    if (trained[c] <= kFew) few.push_back(c);
  const int64_t limit = spec.data.limit;
  if (!few.empty())
    out.push_back(fmt::format(
        "the training set has at most {} of {}; {}", counted(kFew, "sample"), named(d, few),
        limit > 0 ? fmt::format("data.limit={0} takes the first {0}, and samples are often in "
                                "the order of their classes: raise it, or leave it out",
                                limit)
                  : "add samples, or merge such classes"));
  // rows: those of a share of the training data; empty: a set of its own.
  const auto check = [&](const Dataset& set, std::string_view name,
                         std::span<const uint32_t> rows) {
    if (!has_one_class_each(set)) return;
    const std::vector<int64_t> evaluated = class_counts(set, rows);
    std::vector<size_t> unseen;
    for (size_t c = 0; c < evaluated.size(); ++c)
      if (evaluated[c] == 0 && trained[c] > 0) unseen.push_back(c);
    if (!unseen.empty())
      out.push_back(fmt::format(
          "the {} set has no sample of {}; its results say nothing about them: {}", name,
          named(d, unseen),
          rows.empty() ? "add samples of them" : "give it a larger share of the samples"));
  };
  if (data.test && data.evaluated != EvaluatedSet::training)
    check(*data.test, data.evaluated_set(), data.test_rows);
  if (data.final_test) check(*data.final_test, "test", {});
}

// Warns of class numbers without a sample, as of labels 1 to 10, or 0 and 7, in arrays.
void check_gaps(const Spec& spec, const SessionData& data, std::vector<std::string>& out) {
  const std::string_view type = spec.data.dataset.what->name;
  const Dataset& d = data.train;
  if ((type != "npy" && type != "idx") || !has_one_class_each(d)) return;
  const std::span<const int32_t> all = values_of<int32_t>(d.targets);
  std::vector<bool> occurs(static_cast<size_t>(d.classes));
  const auto see = [&](int32_t c) {
    if (c >= 0 && c < d.classes) occurs[static_cast<size_t>(c)] = true;
  };
  for (const uint32_t row : data.train_rows) see(all[row]);
  if (data.train_rows.empty()) std::ranges::for_each(all, see);
  const auto missing = std::ranges::count(occurs, false);
  if (missing == 0) return;
  const auto first = std::ranges::find(occurs, false) - occurs.begin();
  out.push_back(fmt::format(
      "the training set has no sample of {} of the {} classes 0..{}, such as class {}; number "
      "classes from 0 without gaps: numpy.unique(y, return_inverse=True)[1]",
      missing, d.classes, d.classes - 1, first));
}

// The first layer or transform that takes images [channels, height, width] from the data; empty:
// none does.
std::string_view takes_images(const Spec& spec) {
  for (const Choice& t : spec.data.transforms) {
    const auto& type = *static_cast<const TransformType*>(t.what);
    if (type.random.change != nullptr || type.colors != nullptr) return type.name;
  }
  const bool layer =
      !spec.model.empty() && spec.model[0].kind == ModelItem::Kind::layer && spec.model[0].layer;
  const std::string_view first = layer ? spec.model[0].layer.what->name : "";
  return first.ends_with("2d") ? first : "";
}

void check_channel_order(const Spec& spec, const Shape& sample, std::vector<std::string>& out) {
  const std::string_view name = takes_images(spec);
  if (name.empty() || !like_channels_last(sample)) return;
  out.push_back(fmt::format(
      "the samples are {}, as images with their channels last (Keras), but {} takes [channels, "
      "height, width]: save the array as x.transpose(0, 3, 1, 2)",
      sample.str(), name));
}

}  // namespace

std::vector<std::string> data_warnings(const Session& session) {
  const SessionData& data = session.data;
  std::vector<std::string> out = data.train.warnings;
  const auto add = [&](const Dataset& set) {
    out.insert(out.end(), set.warnings.begin(), set.warnings.end());
  };
  if (data.test && data.test_rows.empty()) add(*data.test);
  if (data.final_test) add(*data.final_test);
  check_classes(session.settings.spec, data, out);
  check_gaps(session.settings.spec, data, out);
  check_channel_order(session.settings.spec, data.train.inputs.sample(), out);
  for (std::string& text : scale_warnings(session)) out.push_back(std::move(text));
  return out;
}

}  // namespace dpt
