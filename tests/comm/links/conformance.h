// What every implementation of Link must do, as functions that run on all hosts of a link at once.
// They throw ConformanceError; they use no doctest, since MPI's processes run them, too.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/links/link.h"

namespace dpt {

struct ConformanceError : std::runtime_error {
  using runtime_error::runtime_error;
};

// One host's part.
using LinkBody = std::function<void(Link& link)>;

struct LinkCase {
  std::string name;
  LinkBody body;
  double timeout_s = 60;
  int hosts = 0;  // 0: any number
};

// Messages of a tag arrive in order, even if later tags are waited for first.
void check_order(Link& link);
// Lengths 0, 1, odd and large, to and from all hosts at once, with the bytes that were sent.
void check_all_to_all(Link& link);
// Host 0 sends a byte less, or more, than host 1 expects, which throws and names both lengths.
void check_unequal_lengths(Link& link);
void check_longer_message(Link& link);
// The same on the sender's side; no case of all links, since MPI does not notice it there.
void check_sender_notices(Link& link);
// abort() in another thread ends wait().
void check_abort(Link& link);
// If no data comes for the time limit, wait() names the host.
void check_silence(Link& link);

const std::vector<LinkCase>& link_cases();

// The message of the Error{rank} that `call` must throw.
std::string rank_error(const std::function<void()>& call);
void check_that(bool good, const std::string& what);

}  // namespace dpt
