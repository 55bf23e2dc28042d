#include "engine/gpu/batch_input.h"

#include <fmt/format.h>

#include "base/units.h"
#include "engine/gpu/resident_input.h"
#include "engine/gpu/staged_input.h"

namespace dpt {

size_t resident_bytes(const Feeder& feeder) {
  const auto bytes = [](const Feeder::Stored& s) {
    return s.bytes.size() + (s.values.size() + s.colours.size()) * sizeof(float);
  };
  const size_t order = static_cast<size_t>(feeder.size()) * sizeof(uint32_t);
  return bytes(feeder.stored_inputs()) + bytes(feeder.stored_targets()) + order;
}

bool fits_on_gpu(const Feeder& feeder, size_t room) {
  return feeder.not_stored().empty() && resident_bytes(feeder) <= room;
}

std::unique_ptr<DeviceFeed> make_device_feed(const FeedRequest& request, bool resident,
                                             size_t& room) {
  if (!resident) return std::make_unique<StagedFeed>(request);
  room -= resident_bytes(request.feeder);
  return std::make_unique<ResidentFeed>(request);
}

std::string feed_text(const Feeder& feeder) {
  const std::string why_not = feeder.not_stored();
  if (why_not.empty())
    return fmt::format("{} on the GPU, where the data set ({:.2f} MiB) lies if it has room",
                       feeder.stored_inputs().changes.count > 0 ? "drawn" : "gathered",
                       static_cast<double>(resident_bytes(feeder)) / kMiB);
  return fmt::format("made by the host, since {}, and copied while the GPU computes the one before",
                     why_not);
}

}  // namespace dpt
