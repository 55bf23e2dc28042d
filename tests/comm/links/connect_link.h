// How the hosts of a test get their links.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "comm/links/link.h"
#include "comm/links/load.h"

namespace dpt {

using ConnectLink = std::function<std::unique_ptr<Link>(const LinkWorld& world)>;

inline std::unique_ptr<Link> connect_link(std::string_view backend, const LinkWorld& world) {
  return link_module(backend).connect(world);
}

}  // namespace dpt
