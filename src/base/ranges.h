// A set of numbers as disjoint ranges [begin, end).
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

namespace dpt {

class Ranges {
 public:
  // Calls f(begin, end) for each part of [begin, end) that is not in the set.
  template <class F>
  void each_gap(size_t begin, size_t end, F f) const {
    auto next = ends_.upper_bound(begin);
    if (next != ends_.begin()) begin = std::max(begin, std::prev(next)->second);
    for (; begin < end; ++next) {
      const size_t until = next == ends_.end() ? end : std::min(end, next->first);
      if (begin < until) f(begin, until);
      if (next == ends_.end()) return;
      begin = std::max(begin, next->second);
    }
  }

  // Adds [begin, end). Returns how many numbers are new.
  size_t add(size_t begin, size_t end) {
    size_t out = 0;
    each_gap(begin, end, [&](size_t from, size_t to) { out += to - from; });
    auto first = ends_.upper_bound(begin);
    if (first != ends_.begin() && std::prev(first)->second >= begin) --first;
    while (first != ends_.end() && first->first <= end) {
      begin = std::min(begin, first->first);
      end = std::max(end, first->second);
      first = ends_.erase(first);
    }
    if (begin < end) ends_[begin] = end;
    return out;
  }

 private:
  std::map<size_t, size_t> ends_;  // by begin
};

// The number of elements that [a, b) and [c, d) share.
inline size_t overlap(size_t a, size_t b, size_t c, size_t d) {
  const size_t begin = std::max(a, c), end = std::min(b, d);
  return begin < end ? end - begin : 0;
}

}  // namespace dpt
