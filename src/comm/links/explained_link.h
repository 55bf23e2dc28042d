// ExplainedLink: a Link whose failures are reported by somebody who knows their cause.
#pragma once

#include <functional>
#include <memory>

#include "comm/links/link.h"

namespace dpt {

// What a link knows, "connection reset by peer", names neither the rank that has ended nor its
// step. Threads as for Link.
class ExplainedLink final : public Link {
 public:
  // explain: called by the thread whose call has failed. It throws what the call then throws.
  using Explain = std::function<void(const LinkFailed& failure)>;

  ExplainedLink(std::unique_ptr<Link> link, Explain explain);

  int host() const override { return link_->host(); }
  int hosts() const override { return link_->hosts(); }
  Request send(int peer, uint32_t tag, std::span<const std::byte> bytes) override;
  Request receive(int peer, uint32_t tag, std::span<std::byte> bytes) override;
  void wait(Request request) override;
  bool done(Request request) override;
  void abort() noexcept override { link_->abort(); }
  uint64_t bytes_sent() const override { return link_->bytes_sent(); }
  uint64_t bytes_received() const override { return link_->bytes_received(); }

 private:
  template <class F>
  auto explained(F call);

  std::unique_ptr<Link> link_;
  Explain explain_;
};

}  // namespace dpt
