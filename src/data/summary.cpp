#include "data/summary.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "data/column_encoding.h"
#include "data/tables.h"

namespace dpt {
namespace {

using Values = DataSummary::Values;

// One for each column or channel, or one for all numbers.
std::vector<Values> parts_of(const Shape& sample, const std::vector<std::string>& names) {
  std::vector<Values> out;
  if (sample.rank() == 1 && std::ssize(names) == sample[0]) {
    for (const std::string& name : names) out.push_back({.name = name, .range = {}});
  } else if (sample.rank() >= 2 && sample[0] <= 16) {
    for (int64_t c = 0; c < sample[0]; ++c)
      out.push_back({.name = fmt::format("channel {}", c), .range = {}});
  } else {
    out.push_back({.name = "all numbers", .range = {}});
  }
  return out;
}

// What `standardize` did to the numbers of a sample, in equal parts; empty: nothing.
std::vector<ChannelScaling> scalings_of(const Dataset& d) {
  std::vector<ChannelScaling> out = d.channels;
  for (const ColumnEncoding& e : d.columns.encodings) {
    if (e.categories.empty()) out.push_back({.mean = e.mean, .std = e.std});
    out.resize(out.size() + e.categories.size());
  }
  const bool any =
      std::ranges::any_of(out, [](const ChannelScaling& s) { return s != ChannelScaling{}; });
  return any ? out : std::vector<ChannelScaling>();
}

void add_in_file_units(std::span<const float> x, const std::vector<ChannelScaling>& scalings,
                       std::vector<Values>& to) {
  const size_t inner = std::max<size_t>(1, x.size() / to.size());
  const size_t part = std::max<size_t>(1, x.size() / scalings.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const ChannelScaling& s = scalings[std::min(i / part, scalings.size() - 1)];
    to[std::min(i / inner, to.size() - 1)].range.add(static_cast<double>(x[i]) * s.std + s.mean);
  }
}

template <class T>
void add_sample(std::span<const T> x, std::vector<Values>& to) {
  const size_t inner = std::max<size_t>(1, x.size() / to.size());
  for (size_t i = 0; i < x.size(); ++i)
    to[std::min(i / inner, to.size() - 1)].range.add(static_cast<double>(x[i]));
}

class Summary {
 public:
  Summary(const Dataset& d, std::span<const uint32_t> rows) : d_(d), rows_(rows) {
    out_.samples = rows.empty() ? d.size() : std::ssize(rows);
  }

  DataSummary run(int64_t most_read) {
    inputs(most_read);
    if (d_.classes > 0)
      count_classes();
    else
      values();
    return std::move(out_);
  }

 private:
  int64_t row(int64_t i) const { return rows_.empty() ? i : rows_[static_cast<size_t>(i)]; }

  template <class T>
  std::span<const T> sample(const Table& table, int64_t i) const {
    return values_of<T>(table).subspan(static_cast<size_t>(row(i) * table.step()),
                                       static_cast<size_t>(table.sample().elements()));
  }

  void inputs(int64_t most_read) {
    const Table& x = d_.inputs;
    out_.inputs = parts_of(x.sample(), input_names(d_.columns));
    out_.read = d_.reader ? std::min(out_.samples, most_read) : out_.samples;
    std::vector<std::byte> bytes(d_.reader ? static_cast<size_t>(x.sample().elements()) : 0);
    std::set<int32_t> tokens;
    const std::vector<ChannelScaling> scalings = scalings_of(d_);
    out_.file_units = !scalings.empty();
    for (int64_t n = 0; n < out_.read; ++n) {
      const int64_t i = n * out_.samples / out_.read;  // fits: at most 2^28 samples
      if (d_.reader) {
        d_.reader->read(static_cast<uint32_t>(row(i)), bytes);
        add_sample<uint8_t>({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                            out_.inputs);
      } else if (x.desc.dtype == DType::u8) {
        add_sample(sample<uint8_t>(x, i), out_.inputs);
      } else if (x.desc.dtype == DType::i32) {
        for (const int32_t t : sample<int32_t>(x, i)) tokens.insert(t);
        add_sample(sample<int32_t>(x, i), out_.inputs);
      } else if (out_.file_units) {
        add_in_file_units(sample<float>(x, i), scalings, out_.inputs);
      } else {
        add_sample(sample<float>(x, i), out_.inputs);
      }
    }
    out_.tokens_used = std::ssize(tokens);
    add_missing();
  }

  void add_missing() {
    for (size_t i = 0; i < d_.missing.size(); ++i)
      if (d_.missing[i] > 0)
        out_.missing.push_back({.column = d_.columns.names[d_.columns.inputs[i]],
                                .fields = static_cast<int64_t>(d_.missing[i])});
  }

  void count_classes() {
    out_.classes = ClassCounts(d_.classes);
    for (int64_t i = 0; i < out_.samples; ++i)
      for (const int32_t c : sample<int32_t>(d_.targets, i))
        if (c >= 0 && c < d_.classes)
          out_.classes.add(c);
        else
          ++out_.ignored;
  }

  void values() {
    if (d_.targets.desc.dtype != DType::f32) return;
    std::vector<std::string> names;
    for (const size_t i : d_.columns.targets) names.push_back(d_.columns.names[i]);
    out_.targets = parts_of(d_.targets.sample(), names);
    for (int64_t i = 0; i < out_.samples; ++i)
      add_sample(sample<float>(d_.targets, i), out_.targets);
  }

  const Dataset& d_;
  std::span<const uint32_t> rows_;
  DataSummary out_;
};

}  // namespace

void ValueRange::add(double x) {
  if (!std::isfinite(x)) {
    ++broken_;
    return;
  }
  min_ = count_ == 0 ? x : std::min(min_, x);
  max_ = count_ == 0 ? x : std::max(max_, x);
  const double before = x - mean_;
  mean_ += before / static_cast<double>(++count_);
  squares_ += before * (x - mean_);
}

double ValueRange::std() const {
  return count_ > 0 ? std::sqrt(squares_ / static_cast<double>(count_)) : 0;
}

int64_t ClassCounts::samples(int64_t c) const {
  const auto found = counts_.find(c);
  return found == counts_.end() ? 0 : found->second;
}

int64_t ClassCounts::rarest() const {
  int64_t next = 0;  // the first class that does not occur
  for (auto at = counts_.begin(); at != counts_.end() && at->first == next; ++at) ++next;
  if (next < classes_) return next;
  return std::ranges::min_element(counts_, {}, [](const auto& c) { return c.second; })->first;
}

DataSummary summarize(const Dataset& dataset, std::span<const uint32_t> rows, int64_t most_read) {
  return Summary(dataset, rows).run(most_read);
}

}  // namespace dpt
