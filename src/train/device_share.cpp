#include "train/device_share.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace dpt {

DeviceShare::DeviceShare(const Session& s, int device) {
  // Where each parameter and buffer begins, and on which device.
  std::vector<std::pair<size_t, int>> begins;
  const std::vector<int> homes = s.graph.homes();
  const auto add = [&](size_t offset, ValueId v) {
    const auto home = static_cast<size_t>(homes[static_cast<size_t>(v)]);
    begins.emplace_back(offset, s.who.span == 1 ? device : s.graph.stage_device[home]);
  };
  for (size_t p = 0; p < s.graph.parameters.size(); ++p)
    add(s.layout.offset[p], s.graph.parameters[p]);
  for (size_t b = 0; b < s.graph.buffers.size(); ++b)
    add(s.layout.buffer_offset[b], s.graph.buffers[b]);
  std::ranges::sort(begins);
  for (size_t i = 0; i < begins.size(); ++i) {
    const auto [begin, on] = begins[i];
    if (on != device) continue;
    const size_t end = i + 1 < begins.size() ? begins[i + 1].first : s.layout.total;
    if (begin == end) continue;
    if (!pieces_.empty() && pieces_.back().end == begin)
      pieces_.back().end = end;
    else
      pieces_.push_back({begin, end, elements_});
    elements_ += end - begin;
    trained_ += begin < s.layout.trainable ? std::min(end, s.layout.trainable) - begin : 0;
  }
}

size_t DeviceShare::at(size_t element) const {
  for (const Piece& p : pieces_)
    if (p.begin <= element && element < p.end) return p.at + (element - p.begin);
  throw Error(Fault::failed, "a parameter is asked for where it does not lie");
}

}  // namespace dpt
