// Exchanges between the leaders of all hosts (machines) that end before they return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/links/link.h"

namespace dpt {

// The tags of all messages between leaders, during steps and between them.
struct HostTag {
  enum : uint32_t {
    results,
    gradients,
    weights,
    squares,
    sums,
    evaluation,
    metrics,
    non_finite,
    statistics,
    states,
    largest
  };
};

// All leaders make the same calls in the same order. Thread and errors: as Link.

// frames [hosts]: memory for what each host sends. Sends this host's frame to all others and
// receives theirs. Every host passes the same lengths; frames may be empty.
void all_gather(Link& link, uint32_t tag, std::span<const std::span<std::byte>> frames);

// Copies the bytes of host 0 to all others.
void broadcast(Link& link, uint32_t tag, std::span<std::byte> bytes);

}  // namespace dpt
