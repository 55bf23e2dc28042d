#include "engine/host_messages.h"

namespace dpt {

void all_gather(Link& link, uint32_t tag, std::span<const std::span<std::byte>> frames) {
  std::vector<Link::Request> requests;
  // Each host begins with its next one, so that not all of them send to the same host at a time.
  const auto peer = [&](int k) { return (link.host() + k) % link.hosts(); };
  const auto frame = [&](int host) { return frames[static_cast<size_t>(host)]; };
  for (int k = 1; k < link.hosts(); ++k)
    if (!frame(peer(k)).empty()) requests.push_back(link.receive(peer(k), tag, frame(peer(k))));
  for (int k = 1; k < link.hosts(); ++k)
    if (!frame(link.host()).empty())
      requests.push_back(link.send(peer(k), tag, frame(link.host())));
  for (const Link::Request r : requests) link.wait(r);
}

void broadcast(Link& link, uint32_t tag, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  if (link.host() != 0) return link.wait(link.receive(0, tag, bytes));
  std::vector<Link::Request> requests;
  for (int h = 1; h < link.hosts(); ++h) requests.push_back(link.send(h, tag, bytes));
  for (const Link::Request r : requests) link.wait(r);
}

}  // namespace dpt
