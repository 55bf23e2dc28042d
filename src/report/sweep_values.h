// The values of a sweep: key=32,64,128 and key=1e-3..1e-1:log:5 on the command line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spec/source.h"

namespace dpt {

// LOW..HIGH:lin:N and LOW..HIGH:log:N, or LOW..HIGH of whole numbers.
struct SweepRange {
  double low = 0, high = 0;
  bool log = false;
  bool whole = false;  // both ends are written as whole numbers, so all values are
};

struct SweepKey {
  std::string key;
  std::vector<std::string> values;  // as they are written after key=; empty: a range without N
  std::optional<SweepRange> range;  // empty: the values are a list
};

struct SweepWords {
  std::vector<std::string> constants;  // key=value with one value, which is the same for all runs
  std::vector<SweepKey> keys;          // in the order of the command line
};

// Sorts key=value words into constants and swept keys. Commas inside [], {} and quotes do not
// separate values. A range may leave out N if `random`: its values are drawn. Errors go to `d`,
// with the word as the file. `files` keeps the words, into which locations point.
SweepWords read_sweep_words(const std::vector<std::string>& words, bool random,
                            std::vector<std::unique_ptr<SourceFile>>& files, Diagnostics& d);

// A value of a range, at a fraction from 0 to 1 of its length; rounded to `digits` significant
// digits, or to a whole number.
std::string range_value(const SweepRange& range, double fraction, int digits);

}  // namespace dpt
