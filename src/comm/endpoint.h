// "host:port" as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dpt {

struct Endpoint {
  std::string host;  // a name or a numeric address, without brackets
  int port = 0;      // 1 to 65535
};

// Reads "hosta:29500", "10.0.0.2:29500" or "[fd00::2]:29500"; nullopt: the text is none of these.
std::optional<Endpoint> parse_endpoint(std::string_view text);
std::string endpoint_text(std::string_view host, int port);  // an IPv6 address gets brackets

}  // namespace dpt
