#include "spec/expansion.h"

#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace dpt {

Amount amount_of(const Node& tree) {
  Amount out{.values = 1, .bytes = std::ssize(tree.text)};
  const auto add = [&](const Node& n, size_t key) {
    const Amount more = amount_of(n);
    out.values += more.values;
    out.bytes += more.bytes + static_cast<int64_t>(key);
  };
  for (const Node& i : tree.items) add(i, 0);
  for (const Node::Entry& e : tree.entries) add(e.value, e.key.value.size());
  return out;
}

bool Expansion::add(const Amount& more, const Span& where, Diagnostics& d) {
  if (full_) return false;
  const auto fits = [&](int64_t used, int64_t n, int64_t most, std::string_view what) {
    if (n > most - used && !full_)
      d.error(where,
              fmt::format("more than {} {} after blocks and repeats are expanded", most, what));
    full_ = full_ || n > most - used;
  };
  fits(used_.layers, more.layers, kMostExpanded.layers, "layers");
  fits(used_.values, more.values, kMostExpanded.values, "values");
  fits(used_.bytes, more.bytes, kMostExpanded.bytes, "bytes of text");
  if (full_) return false;
  used_.layers += more.layers;
  used_.values += more.values;
  used_.bytes += more.bytes;
  return true;
}

}  // namespace dpt
