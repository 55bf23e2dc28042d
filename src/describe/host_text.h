// What several hosts (machines) own and exchange, as text.
#pragma once

#include <string>

#include "session/session.h"

namespace dpt {

// For each host, at most sixteen of them: its ranks, its shards, and what it sends in a step.
// REQUIRES: several hosts.
std::string hosts_text(const Session& session);

}  // namespace dpt
