#include "session/load_data.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/cpu/simd/simd.h"
#include "base/count.h"
#include "base/fail.h"
#include "base/generator.h"
#include "data/random_split.h"
#include "data/sample_form.h"
#include "data/tables.h"
#include "session/report_spec_error.h"

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
void check_targets(const Dataset& d, std::string_view set, const Choice& loss) {
  const auto problem_of = static_cast<const LossType*>(loss.what)->target_problem;
  if (problem_of == nullptr || !d.made) return;
  const DType type = d.targets.desc.dtype;
  for (int64_t i = 0; i < d.size(); ++i) {
    std::string problem;
    if (type == DType::f32) problem = problem_of(loss.settings, target_of<float>(d.targets, i), {});
    if (type == DType::i32)
      problem = problem_of(loss.settings, {}, target_of<int32_t>(d.targets, i));
    if (!problem.empty())
      fail(Fault::data, "sample {} of the {} set (counted from 0) {}", i, set, problem);
  }
}

// The same for targets that are inputs: of some samples, evenly spread.
void check_input_targets(const BatchLoader& loader, std::string_view set, const Choice& loss) {
  constexpr int64_t kInMemory = 1000, kRead = 16;
  const auto problem_of = static_cast<const LossType*>(loss.what)->target_problem;
  if (problem_of == nullptr || !loader.target_is_input() || !loader.dataset().made) return;
  const int64_t samples = loader.size();
  const int64_t count = std::min(samples, loader.dataset().reader ? kRead : kInMemory);
  std::vector<float> target(static_cast<size_t>(loader.target().shape.elements()));
  for (int64_t i = 0; i < count; ++i) {
    const auto row = static_cast<uint32_t>(i * samples / count);
    loader.targets(std::span(&row, 1), target.data());
    if (const std::string problem = problem_of(loss.settings, target, {}); !problem.empty())
      fail(Fault::data, "sample {} of the {} set (counted from 0) {}", row, set, problem);
  }
}

// PyTorch draws larger permutations by another algorithm.
void check_samples(const Dataset& d) {
  if (d.size() > static_cast<int64_t>(Generator::kMaxPermutation))
    fail(Fault::data, "{} samples are too many to shuffle as PyTorch does; the limit is {}",
         d.size(), Generator::kMaxPermutation);
}

// What differs if a data set of another kind than the training set's cannot be read as that is.
// Empty: nothing differs.
std::string unlike(const Dataset& d, const Dataset& training) {
  const bool classes = d.classes > 0 && training.classes > 0;
  if (classes && d.classes != training.classes)
    return fmt::format("has not the {} of the training set",
                       counted(training.classes, "class", "classes"));
  if (d.tokens > training.tokens)
    return fmt::format("has {} tokens, the training set only {}", d.tokens, training.tokens);
  const auto names_of = [](const Dataset& set) {
    std::vector<std::string> out = as_stored(set.class_names);
    for (int64_t i = 0; i < set.classes && set.class_names.empty(); ++i)
      out.push_back(std::to_string(i));
    return out;
  };
  const std::vector<std::string> own = names_of(d), known = names_of(training);
  const auto are_words = [](const std::vector<std::string>& names) {
    return std::ranges::any_of(names, [](const std::string& name) {
      return name.empty() || name.find_first_not_of("0123456789") != name.npos;
    });
  };
  // Where one set has numbers and the other one words, the numbers count the words. Where both have
  // numbers, those of the one may be names.
  const bool counted_by_one = (d.class_names.empty() && are_words(known)) ||
                              (training.class_names.empty() && are_words(own));
  if (classes && own != known && !counted_by_one)
    return fmt::format(
        "numbers classes in another way than the training set, whose classes are {}; give both as "
        "data sets of one kind",
        fmt::join(known, ", "));
  if (d.columns.encodings != training.columns.encodings || d.channels != training.channels)
    return "is not encoded and standardized as the training set; give both as data sets of one "
           "kind";
  if (!d.characters.empty() && d.characters != training.characters)
    return "numbers characters in another way than the training set; give both as data sets of "
           "one kind";
  return "";
}

// Whether the spec asks for evaluations: `evaluate: false` turns them off, even with a validation
// set.
bool evaluates(const Spec& spec) {
  const bool off = !spec.evaluate.on && spec.locations.contains("evaluate");
  return spec.evaluate.on || (spec.data.validation.on() && !off);
}

class DataLoading {
 public:
  DataLoading(const RunSettings& settings, const SessionQuery& query)
      : spec_(settings.spec),
        loss_(*settings.loss),
        asked_(query.evaluates),
        query_{.folder = std::filesystem::path(spec_.path).parent_path().string(),
               .binary_labels = has_binary_labels(loss_),
               .sizes_only = query.sizes_only} {
    if (query.fitted) fitted_ = fitted_by(*query.fitted);
    if (loss_.ignore_index && spec_.data.target_transforms.empty() && !mixes(spec_.data.transforms))
      query_.ignore_index = loss_.ignore_index(spec_.loss.settings);
  }

  SessionData run(Diagnostics& d) {
    load_sets(d);
    return std::move(out_);
  }

 private:
  void load_sets(Diagnostics& d) {
    const DataSpec& data = spec_.data;
    if (fitted_) query_.training_set = &*fitted_;
    query_.trained = [this](int64_t samples) { return trained(samples); };
    try {
      out_.train = load(data.dataset, Split::train);
    } catch (const Error& e) {
      if (e.fault() != Fault::data || !fitted_ || asked_ != EvaluatedSet::test ||
          !has_test_set(data.dataset))
        throw;
      return load_test_alone();
    }
    query_.trained = nullptr;
    if (!fitted_) query_.training_set = &out_.train;
    if (data.limit > 0) take_first(out_.train, data.limit);
    const bool validates = data.validation.on() && evaluates(spec_);
    out_.evaluated = asked_.value_or(validates ? EvaluatedSet::validation : EvaluatedSet::test);
    // Also if another set is evaluated: these samples are not trained on.
    if (data.validation.fraction > 0) split(d);
    if (asked_ || evaluates(spec_)) load_evaluated();
    if (validates && spec_.evaluate.on && !asked_) load_final_test();
    if (!data.target_transforms.empty()) return;
    check_targets(out_.train, "training", spec_.loss);
    if (out_.test && out_.test_rows.empty())
      check_targets(*out_.test, out_.evaluated_set(), spec_.loss);
  }

  // The training data cannot be read, but a trained model is evaluated on its test set, which does
  // not need them: `train` then holds the whole test set, too.
  void load_test_alone() {
    query_.trained = nullptr;
    out_.evaluated = EvaluatedSet::test;
    load_test();
    out_.train = *out_.test;
    if (spec_.data.target_transforms.empty())
      check_targets(*out_.test, out_.evaluated_set(), spec_.loss);
  }

  void load_evaluated() {
    const DataSpec& data = spec_.data;
    switch (out_.evaluated) {
      case EvaluatedSet::test:
        load_test();
        return;
      case EvaluatedSet::validation:
        if (data.validation.fraction > 0) return;
        out_.test = load(data.validation.dataset, Split::train);
        return;
      case EvaluatedSet::training:
        out_.test = out_.train;
        out_.test_rows = out_.train_rows;
        return;
    }
  }

  void load_test() {
    try {
      out_.test = load(spec_.data.dataset, Split::test);
    } catch (const NoTestSplit& e) {
      if (asked_) throw;
      fail(Fault::data,
           "{}, or hold out samples with `data.validation: 0.1`, or write `evaluate: "
           "false`",
           e.what());
    }
  }

  Dataset load(const Choice& dataset, Split split) {
    query_.split = split;
    Dataset d = static_cast<const DatasetType*>(dataset.what)->load(dataset.settings, query_);
    check_samples(d);
    if (query_.training_set != nullptr)
      if (const std::string problem = unlike(d, *query_.training_set); !problem.empty())
        fail(Fault::data, "{} {}", d.description, problem);
    d.ignored = count_ignored(d, query_.ignore_index);
    return d;
  }

  // What split() will choose.
  std::vector<uint32_t> trained(int64_t samples) const {
    if (spec_.data.limit > 0) samples = std::min(samples, spec_.data.limit);
    if (spec_.data.validation.fraction > 0)
      return random_split(samples, spec_.data.validation.fraction,
                          static_cast<uint64_t>(spec_.seed))
          .train;
    std::vector<uint32_t> out(static_cast<size_t>(samples));
    std::iota(out.begin(), out.end(), 0U);
    return out;
  }

  // Takes validation samples out of the training set. Both keep the same tables.
  void split(Diagnostics& d) {
    const double fraction = spec_.data.validation.fraction;
    const int64_t samples = out_.train.size();
    RandomSplit parts = random_split(samples, fraction, static_cast<uint64_t>(spec_.seed));
    if (parts.train.empty() || parts.validation.empty())
      return d.error(
          spec_.at("data.validation"),
          fmt::format("{:g} of {} leaves no sample for {}; take another fraction", fraction,
                      counted(samples, "sample"), parts.train.empty() ? "training" : "validation"));
    if (out_.evaluated == EvaluatedSet::validation && (asked_ || evaluates(spec_))) {
      out_.test = out_.train;
      out_.test->ignored = count_ignored(out_.train, query_.ignore_index, parts.validation);
      out_.test_rows = std::move(parts.validation);
    }
    out_.train.ignored = count_ignored(out_.train, query_.ignore_index, parts.train);
    out_.train_rows = std::move(parts.train);
    out_.train.description +=
        fmt::format("; {} of the samples are for validation", samples - out_.train_samples());
  }

  // A data set without test samples is none: then only the validation set is evaluated.
  void load_final_test() {
    const Choice& dataset = spec_.data.dataset;
    if (has_test_set(dataset)) out_.final_test = load(dataset, Split::test);
  }

  const Spec& spec_;
  const LossType& loss_;
  std::optional<EvaluatedSet> asked_;
  std::optional<Dataset> fitted_;  // of a trained run
  SessionData out_;
  LoadQuery query_;
};

void check_evaluated_set(const SessionData& out) {
  const std::string_view set = out.evaluated_set();
  if (out.test_loader->input() != out.loader->input())
    fail(Fault::data, "the {} samples are {}, but the training samples are {}", set,
         out.test_loader->input().shape.str(), out.loader->input().shape.str());
  if (!out.loader->mixes() && out.test_loader->target() != out.loader->target())
    fail(Fault::data, "the {} targets are {} {}, but the training targets are {} {}", set,
         out.test_loader->target().shape.str(), name_of(out.test_loader->target().dtype),
         out.loader->target().shape.str(), name_of(out.loader->target().dtype));
}

void make_loaders(SessionData& out, const Spec& spec, Diagnostics& d) {
  const DataSpec& data = spec.data;
  const SimdKernels& simd = simd_kernels();
  const GatherKernels gather{
      .u8 = simd.gather_u8, .u8_table = simd.gather_u8_table, .f32 = simd.gather_f32};
  report_spec_error(d, spec.at("data.transforms"), [&] {
    out.loader.emplace(out.train, data.transforms, data.target_transforms, gather, Split::train,
                       out.train_rows);
    if (!out.test) return;
    const bool random = std::ranges::any_of(data.transforms, [](const Choice& t) {
      return static_cast<const TransformType*>(t.what)->draws();
    });
    // Samples of one data set are transformed once.
    if (!out.test_rows.empty() && !random)
      out.test_loader.emplace(*out.loader);
    else
      out.test_loader.emplace(*out.test, data.transforms, data.target_transforms, gather,
                              Split::test);
    check_evaluated_set(out);
  });
}

// Only cross_entropy, among the losses of classes, takes probabilities.
void check_mixed_targets(const SessionData& out, const RunSettings& settings, Diagnostics& d) {
  const LossType& loss = *settings.loss;
  const DataSpec& data = settings.spec.data;
  if (!mixes(data.transforms) || !data.target_transforms.empty() || out.train.classes == 0) return;
  if (loss.classes && loss.name != "cross_entropy")
    d.error(settings.spec.at("data.transforms"),
            fmt::format("transforms 'mixup' and 'cutmix' turn classes into probabilities, but {} "
                        "takes class numbers: leave them out, or write `loss: cross_entropy`",
                        loss.name));
}

// Crops change how many targets the loss ignores.
void count_ignored_after_crops(SessionData& out, const RunSettings& settings) {
  const auto ignore_index = settings.loss->ignore_index;
  if (ignore_index == nullptr || out.train.classes == 0 || !out.loader->moves_targets()) return;
  const int64_t ignored = ignore_index(settings.spec.loss.settings);
  out.ignores_padding = ignored == 0;
  if (!out.test_loader || !out.test_loader->moves_targets() || !out.test->made) return;
  std::vector<int32_t> target(static_cast<size_t>(out.test_loader->target().shape.elements()));
  out.test->ignored = 0;
  for (const uint32_t row : out.test_order()) {
    out.test_loader->targets(std::span(&row, 1), target.data());
    out.test->ignored += std::ranges::count(target, ignored);
  }
}

// Needs one class per sample.
void prepare_sampler(SessionData& out, const Spec& spec, Diagnostics& d) {
  const Dataset& train = out.train;
  if (spec.data.sampler != "weighted") return;
  if (!spec.data.shuffle)
    return d.error(spec.at("data.sampler"),
                   "'sampler: weighted' draws samples at random, which 'shuffle: false' forbids; "
                   "leave out one of them");
  if (train.classes == 0 || train.targets.sample().rank() > 0)
    return d.error(
        spec.at("data.sampler"),
        fmt::format("'sampler: weighted' needs one class per sample, but the targets are "
                    "{} {}",
                    train.targets.sample().str(), name_of(train.targets.desc.dtype)));
  if (train.made)
    out.weighted.emplace(class_weights(values_of<int32_t>(train.targets), out.train_rows));
}

}  // namespace

SessionData load_data(const RunSettings& settings, const SessionQuery& query, Diagnostics& d) {
  SessionData out;
  if (query.data_of) {
    out.train = query.data_of->train;
    out.train_rows = query.data_of->train_rows;
    out.test = query.data_of->final_test;
  } else {
    out = DataLoading(settings, query).run(d);
  }
  if (d.ok()) prepare_sampler(out, settings.spec, d);
  if (d.ok()) make_loaders(out, settings.spec, d);
  if (d.ok()) check_mixed_targets(out, settings, d);
  if (d.ok()) count_ignored_after_crops(out, settings);
  if (d.ok()) check_input_targets(*out.loader, "training", settings.spec.loss);
  if (d.ok() && out.test_loader)
    check_input_targets(*out.test_loader, out.evaluated_set(), settings.spec.loss);
  out.train.description += query.data_note;
  return out;
}

}  // namespace dpt
