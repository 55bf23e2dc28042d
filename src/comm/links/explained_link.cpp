#include "comm/links/explained_link.h"

#include <utility>

namespace dpt {

ExplainedLink::ExplainedLink(std::unique_ptr<Link> link, Explain explain)
    : link_(std::move(link)), explain_(std::move(explain)) {}

template <class F>
auto ExplainedLink::explained(F call) {
  try {
    return call();
  } catch (const LinkFailed& failure) {
    explain_(failure);
    throw;
  }
}

Link::Request ExplainedLink::send(int peer, uint32_t tag, std::span<const std::byte> bytes) {
  return explained([&] { return link_->send(peer, tag, bytes); });
}

Link::Request ExplainedLink::receive(int peer, uint32_t tag, std::span<std::byte> bytes) {
  return explained([&] { return link_->receive(peer, tag, bytes); });
}

void ExplainedLink::wait(Request request) {
  explained([&] { link_->wait(request); });
}

bool ExplainedLink::done(Request request) {
  return explained([&] { return link_->done(request); });
}

}  // namespace dpt
