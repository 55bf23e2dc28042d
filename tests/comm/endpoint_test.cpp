#include "comm/endpoint.h"

#include <doctest/doctest.h>

namespace dpt {
namespace {

TEST_CASE("endpoints are read as they are written") {
  for (const char* text : {"hosta:29500", "10.0.0.2:1", "[fd00::2]:65535"}) {
    const auto endpoint = parse_endpoint(text);
    REQUIRE(endpoint);
    CHECK(endpoint_text(endpoint->host, endpoint->port) == text);
  }
  CHECK(parse_endpoint("[fd00::2]:7")->host == "fd00::2");
  for (const char* wrong : {"", ":", "hosta", "hosta:", ":1", "hosta:0", "hosta:65536", "hosta:1x",
                            "hosta:-1", "hosta: 1", "fd00::2:1", "[]:1", "[fd00::2:1", "a]:1"}) {
    CAPTURE(wrong);
    CHECK(!parse_endpoint(wrong));
  }
}

}  // namespace
}  // namespace dpt
