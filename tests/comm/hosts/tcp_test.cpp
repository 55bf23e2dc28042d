#include "comm/hosts/tcp.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace dpt {

TEST_CASE("an address is that of a network interface, or of none") {
  CHECK(interface_of("127.0.0.1") == "lo");
  CHECK(interface_of("127.0.0.3") == "lo");  // a pretended host's
  CHECK(interface_of("192.0.2.1").empty());  // reserved for documentation
  CHECK(interface_of("not an address").empty());
  // The address that leads to others, if this machine has a network.
  if (const auto away = numeric_address("192.0.2.1", 1)) {
    try {
      const TcpAddress own = own_address_towards(*away);
      CHECK(!interface_of(own.host()).empty());
    } catch (const Error&) {  // no route
    }
  }
}

}  // namespace dpt
