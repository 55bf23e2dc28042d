#include "comm/hosts/handshake.h"

#include <cerrno>
#include <span>
#include <system_error>

#include <sys/random.h>

#include "base/fail.h"

namespace dpt {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string_view word_of(Handshake::Role role) {
  switch (role) {
    case Handshake::Role::response:
      return "response";
    case Handshake::Role::proof:
      return "proof";
    case Handshake::Role::from_host_0:
      return "from host 0";
    case Handshake::Role::to_host_0:
      return "to host 0";
  }
  return "";
}

template <class Bytes>
Bytes random_bytes() {
  Bytes out;
  if (getrandom(out.data(), out.size(), 0) != static_cast<ssize_t>(out.size()))
    fail(Fault::rank, "the system gives no random numbers: {}",
         std::generic_category().message(errno));
  return out;
}

}  // namespace

Nonce random_nonce() { return random_bytes<Nonce>(); }
LaunchId random_launch_id() { return random_bytes<LaunchId>(); }

// The run id has any length, so it enters a key of its own, and later digests have fixed parts.
Handshake::Handshake(std::string_view secret, std::string_view run_id)
    : key_(hmac_sha256(bytes_of(secret), {bytes_of("dptrain control 2 "), bytes_of(run_id)})) {}

Digest Handshake::digest(Role role, const Nonce& of_host_0, const Nonce& of_other,
                         const LaunchId& launch) const {
  return hmac_sha256(key_, {of_host_0, of_other, launch, bytes_of(word_of(role))});
}

}  // namespace dpt
