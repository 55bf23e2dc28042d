#include "session/load_data.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/generator.h"
#include "data/random_split.h"
#include "data/tables.h"

namespace dpt {
namespace {

// The target of a sample: its class indices, or its values.
template <class T>
std::span<const T> target_of(const Table& targets, int64_t sample) {
  return values_of<T>(targets).subspan(static_cast<size_t>(sample * targets.step()),
                                       static_cast<size_t>(targets.sample().elements()));
}

// rows: the samples that count; empty: all.
int64_t count_ignored(const Dataset& d, std::optional<int64_t> ignore_index,
                      std::span<const uint32_t> rows = {}) {
  if (d.classes == 0 || !ignore_index || !d.made) return 0;
  int64_t out = 0;
  const auto count = [&](int64_t i) {
    out += std::ranges::count(target_of<int32_t>(d.targets, i), *ignore_index);
  };
  for (const uint32_t row : rows) count(row);
  for (int64_t i = 0; i < d.size() && rows.empty(); ++i) count(i);
  return out;
}

// PyTorch rejects such targets too, but only when it reaches them.
void check_unit_targets(const Dataset& d, std::string_view set, const LossType& loss) {
  if (d.targets.desc.dtype != DType::f32 || !d.made) return;
  for (int64_t i = 0; i < d.size(); ++i)
    for (const float t : target_of<float>(d.targets, i))
      if (!(t >= 0 && t <= 1))
        fail(Fault::data,
             "sample {} of the {} set (counted from 0) has the target {:g}, but {} takes targets "
             "from 0 to 1; scale the targets, or choose another loss",
             i, set, t, loss.name);
}

// PyTorch draws larger permutations by another algorithm.
void check_samples(const Dataset& d) {
  if (d.size() > static_cast<int64_t>(Generator::kMaxPermutation))
    fail(Fault::data, "{} samples are too many to shuffle as PyTorch does; the limit is {}",
         d.size(), Generator::kMaxPermutation);
}

// Whether the spec asks for evaluations: `evaluate: false` turns them off, even with a validation
// set.
bool evaluates(const Spec& spec) {
  const bool off = !spec.evaluate.on && spec.locations.contains("evaluate");
  return spec.evaluate.on || (spec.data.validation.on() && !off);
}

class DataLoading {
 public:
  DataLoading(Session& s, bool sizes_only)
      : s_(s),
        query_{.folder = std::filesystem::path(s.spec.path).parent_path().string(),
               .sizes_only = sizes_only} {
    if (s.loss->ignore_index && s.spec.data.target_transforms.empty())
      query_.ignore_index = s.loss->ignore_index(s.spec.loss.settings);
  }

  void run(Diagnostics& d) {
    const DataSpec& data = s_.spec.data;
    s_.train = load(data.dataset, Split::train);
    if (data.limit > 0) take_first(s_.train, data.limit);
    s_.validates = data.validation.on() && evaluates(s_.spec);
    if (data.validation.fraction > 0)
      split(d);
    else if (s_.validates)
      s_.test = load(data.validation.dataset, Split::train);
    else if (s_.spec.evaluate.on)
      s_.test = load(data.dataset, Split::test);
    if (s_.validates && s_.spec.evaluate.on) load_final_test();
    if (!s_.loss->unit_targets || !data.target_transforms.empty()) return;
    check_unit_targets(s_.train, "training", *s_.loss);
    if (s_.test && s_.test_rows.empty()) check_unit_targets(*s_.test, s_.evaluated_set(), *s_.loss);
  }

 private:
  Dataset load(const Choice& dataset, Split split) {
    query_.split = split;
    Dataset d = static_cast<const DatasetType*>(dataset.what)->load(dataset.settings, query_);
    check_samples(d);
    d.ignored = count_ignored(d, query_.ignore_index);
    return d;
  }

  // Takes validation samples out of the training set. Both keep the same tables.
  void split(Diagnostics& d) {
    const double fraction = s_.spec.data.validation.fraction;
    const int64_t samples = s_.train.size();
    RandomSplit parts = random_split(samples, fraction, static_cast<uint64_t>(s_.spec.seed));
    if (parts.train.empty() || parts.validation.empty())
      return d.error(
          s_.spec.at("data.validation"),
          fmt::format("{:g} of {} leaves no sample for {}; take another fraction", fraction,
                      counted(samples, "sample"), parts.train.empty() ? "training" : "validation"));
    if (s_.validates) {
      s_.test = s_.train;
      s_.test->ignored = count_ignored(s_.train, query_.ignore_index, parts.validation);
      s_.test_rows = std::move(parts.validation);
    }
    s_.train.ignored = count_ignored(s_.train, query_.ignore_index, parts.train);
    s_.train_rows = std::move(parts.train);
    s_.train.description +=
        fmt::format("; {} of the samples are for validation", samples - s_.train_samples());
  }

  // A data set without test samples is none: then only the validation set is evaluated.
  void load_final_test() {
    const Choice& dataset = s_.spec.data.dataset;
    if (!static_cast<const DatasetType*>(dataset.what)->has_test_split) return;
    try {
      s_.final_test = load(dataset, Split::test);
    } catch (const NoTestSplit&) {
    }
  }

  Session& s_;
  LoadQuery query_;
};

}  // namespace

void load_data(Session& s, const SessionQuery& query, Diagnostics& d) {
  if (query.data_of == nullptr) return DataLoading(s, query.sizes_only).run(d);
  s.train = query.data_of->train;
  s.train_rows = query.data_of->train_rows;
  s.test = query.data_of->final_test;
}

}  // namespace dpt
