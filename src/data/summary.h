// What a data set holds: counts of classes, ranges of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace dpt {

// Of numbers that are added one by one (Welford, 1962).
class ValueRange {
 public:
  void add(double x);
  int64_t count() const { return count_; }    // of finite numbers
  int64_t broken() const { return broken_; }  // numbers that are not finite
  double min() const { return min_; }
  double max() const { return max_; }
  double mean() const { return mean_; }
  double std() const;  // of the population

 private:
  int64_t count_ = 0, broken_ = 0;
  double min_ = 0, max_ = 0, mean_ = 0, squares_ = 0;
};

// The samples of each class. Memory: by the classes that occur, not by the largest label.
class ClassCounts {
 public:
  ClassCounts() = default;  // no classes: targets are values
  explicit ClassCounts(int64_t classes) : classes_(classes) {}
  void add(int64_t c) { ++counts_[c]; }  // REQUIRES: 0 <= c < classes()
  int64_t classes() const { return classes_; }
  int64_t samples(int64_t c) const;
  const std::map<int64_t, int64_t>& occurring() const { return counts_; }  // by class
  int64_t rarest() const;  // the first of the classes with the fewest samples

 private:
  int64_t classes_ = 0;
  std::map<int64_t, int64_t> counts_;
};

struct DataSummary {
  struct Values {
    std::string name;  // "channel 0", or a column's name
    ValueRange range;
  };
  struct Missing {
    std::string column;
    int64_t fields = 0;
  };
  int64_t samples = 0;
  int64_t read = 0;  // samples whose inputs were read; the others would have to be decoded
  std::vector<Values> inputs, targets;  // targets: of values; empty: they are classes
  bool file_units = false;  // inputs are given as in the file: without what `standardize` did
  ClassCounts classes;
  int64_t ignored = 0;           // targets that are no class
  std::vector<Missing> missing;  // input columns with fields without a value in the file
  int64_t tokens_used = 0;       // different tokens that occur
};

// rows: the samples of the set; empty: all. Reads all samples in memory, and at most `most_read`,
// evenly spread, of those that are read one by one. REQUIRES: dataset.made. Throws Error{data}.
DataSummary summarize(const Dataset& dataset, std::span<const uint32_t> rows, int64_t most_read);

}  // namespace dpt
