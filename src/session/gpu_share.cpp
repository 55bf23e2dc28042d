#include "session/gpu_share.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "session/gradient_buckets.h"

namespace dpt {

GpuShare::GpuShare(const Devices& devices, const CompiledModel& model, int device)
    : device_(device) {
  // Offset and device of each parameter and buffer.
  std::vector<std::pair<size_t, int>> begins;
  const std::vector<int> homes = model.graph.homes();
  const auto add = [&](size_t offset, ValueId v) {
    const auto home = static_cast<size_t>(homes[static_cast<size_t>(v)]);
    begins.emplace_back(offset, devices.topology.devices_per_replica == 1
                                    ? device
                                    : model.graph.stage_device[home]);
  };
  for (size_t p = 0; p < model.graph.parameters.size(); ++p)
    add(model.layout.offset[p], model.graph.parameters[p]);
  for (size_t b = 0; b < model.graph.buffers.size(); ++b)
    add(model.layout.buffer_offset[b], model.graph.buffers[b]);
  std::ranges::sort(begins);
  bool trains = true;
  for (size_t i = 0; i < begins.size(); ++i) {
    const auto [begin, on] = begins[i];
    if (trains && begin >= model.layout.trainable) pad_trained(pieces_multiple(devices));
    trains = begin < model.layout.trainable;
    if (on != device) continue;
    const size_t end = i + 1 < begins.size() ? begins[i + 1].first : model.layout.total;
    if (begin == end) continue;
    if (!pieces_.empty() && pieces_.back().end == begin &&
        pieces_.back().at + pieces_.back().count() == elements_)
      pieces_.back().end = end;
    else
      pieces_.push_back({.begin = begin, .end = end, .at = elements_});
    elements_ += end - begin;
    trained_ += trains ? std::min(end, model.layout.trainable) - begin : 0;
  }
  if (trains) pad_trained(pieces_multiple(devices));
}

// REQUIRES: no elements without gradients have been added.
void GpuShare::pad_trained(size_t multiple) {
  trained_ = (trained_ + multiple - 1) / multiple * multiple;
  elements_ = trained_;
}

const GpuShare::Piece* GpuShare::piece_of(size_t element) const {
  for (const Piece& p : pieces_)
    if (p.begin <= element && element < p.end) return &p;
  return nullptr;
}

size_t GpuShare::at(size_t element) const {
  const Piece* const p = piece_of(element);
  require(p != nullptr, "a parameter is asked for where it lies");
  return p->at + (element - p->begin);
}

}  // namespace dpt
