#include "comm/hosts/control_channel.h"

#include <utility>

#include "comm/hosts/control_loop.h"

namespace dpt {

ControlChannel::ControlChannel(GatheredHosts hosts, const ChannelSettings& settings)
    : loop_(std::make_unique<ControlLoop>(std::move(hosts), settings)) {}
ControlChannel::~ControlChannel() = default;

int ControlChannel::host() const { return loop_->host; }
const HostMap& ControlChannel::map() const { return loop_->map; }
std::vector<std::string> ControlChannel::all_gather(const std::string& own) {
  return loop_->all_gather(own);
}
void ControlChannel::broadcast(std::span<std::byte> bytes) { loop_->broadcast(bytes); }
void ControlChannel::watch(Team team, LinkActivity* link) { loop_->watch(team, link); }
void ControlChannel::data_failed(int peer, const std::string& why) {
  loop_->data_failed(peer, why);
}
void ControlChannel::goodbye() noexcept { loop_->end(true); }
void ControlChannel::give_up(const std::string& why) noexcept {
  loop_->give_up(why);
  loop_->end(true);
}

}  // namespace dpt
