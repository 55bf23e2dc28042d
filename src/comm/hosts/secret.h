// The secret by which the hosts of a run know each other.
#pragma once

#include <string>

#include "comm/hosts/tcp.h"
#include "comm/world.h"

namespace dpt {

struct NetworkTrust {
  std::string secret;           // from DPTRAIN_SECRET_FILE; empty: there is none
  bool trusts_network = false;  // DPTRAIN_TRUST_NETWORK=1
};

// Reads DPTRAIN_SECRET_FILE, a file of 64 hexadecimal digits, which are 32 random bytes, and white
// space at its end, that nobody but its owner, this user or root, can read or write, and
// DPTRAIN_TRUST_NETWORK. Throws Error{spec} with the remedy.
NetworkTrust trust_from_environment(const Environment& get);
NetworkTrust trust_from_environment();  // of this process

// Without a secret only loopback addresses are allowed, unless the user trusts the network. Throws
// Error{spec} with the remedy.
void check_trust(const NetworkTrust& trust, const TcpAddress& address);

}  // namespace dpt
