// The text of `dptrain plan --bytes`. It is stable, for golden files.
#pragma once

#include <cstddef>
#include <string>

#include "session/session.h"

namespace dpt {

// For each way to train: its messages, and what each rank sends and receives in a step; then one
// line for each way. width: characters per line; columns of names are shortened to fit, but not
// below what tells them apart; 0: no limit. REQUIRES: as message_lists().
std::string message_text(const Session& session, size_t width);

}  // namespace dpt
