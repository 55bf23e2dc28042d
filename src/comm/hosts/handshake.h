// Handshake: both ends of a connection prove that they know the run's secret, without showing it.
//
//   host 0 -> other   challenge   nonce a
//   other -> host 0   response    nonce b, HMAC(secret, "response", run id, a, b)
//   host 0 -> other   proof       launch id l, HMAC(secret, "proof", run id, a, b, l)   or: denied
//
// Then each direction has a key of its own, HMAC(secret, direction, run id, a, b, l), for its
// frames. The roles are part of what is authenticated, so that no proof can be sent back to where
// it came from; fresh nonces prevent replay. Host 0 draws the launch id, so a host that connects
// again knows whether it has reached the same launch. The run id is the launcher's, which gives the
// same to runs that follow one another.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/sha256.h"

namespace dpt {

using Nonce = Digest;
using LaunchId = std::array<std::byte, 16>;

// These throw Error{rank}.
Nonce random_nonce();
LaunchId random_launch_id();

class Handshake {
 public:
  // What both ends must know; neither is ever sent. An empty secret authenticates nobody, but still
  // keeps runs apart.
  Handshake(std::string_view secret, std::string_view run_id);

  // Whose messages a key or proof is for.
  enum class Role : uint8_t { response, proof, from_host_0, to_host_0 };
  // launch: nothing in a response, whose sender does not know it yet
  Digest digest(Role role, const Nonce& of_host_0, const Nonce& of_other,
                const LaunchId& launch = {}) const;

 private:
  Digest key_;
};

}  // namespace dpt
