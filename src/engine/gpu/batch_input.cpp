#include "train/device_feed.h"

#include <fmt/format.h>

#include "train/device_resident.h"
#include "train/device_staging.h"

namespace dpt {

size_t resident_bytes(const Feeder& feeder) {
  const auto bytes = [](const Feeder::Stored& s) {
    return s.bytes.size() + (s.values.size() + s.colours.size()) * sizeof(float);
  };
  const size_t order = static_cast<size_t>(feeder.size()) * sizeof(uint32_t);
  return bytes(feeder.stored_inputs()) + bytes(feeder.stored_targets()) + order;
}

std::unique_ptr<DeviceFeed> make_device_feed(const FeedRequest& request, size_t& room) {
  if (request.feeder.not_stored().empty()) {
    const size_t bytes = resident_bytes(request.feeder);
    if (bytes <= room) {
      room -= bytes;
      return std::make_unique<ResidentFeed>(request);
    }
  }
  return std::make_unique<StagedFeed>(request);
}

std::string feed_text(const Feeder& feeder) {
  const std::string why_not = feeder.not_stored();
  if (why_not.empty())
    return fmt::format("{} on the GPU, where the data set ({:.2f} MiB) lies if it has room",
                       feeder.stored_inputs().changes.count > 0 ? "drawn" : "gathered",
                       static_cast<double>(resident_bytes(feeder)) / 1048576);
  return fmt::format("made by the host, since {}, and copied while the GPU computes the one before",
                     why_not);
}

}  // namespace dpt
