// How long messages between hosts (machines) take: the model behind `dptrain plan --link`.
//
// An exchange of `bytes` that a host sends in `messages`, and in which data passes from host to
// host `hops` times, takes
//
//   hops * latency + messages * per_message + bytes / bandwidth      seconds
//
// This is Hockney's model (Parallel Computing 20, 1994) with the overhead per message of LogGP
// (Alexandrov et al., SPAA 1995). All hosts send and receive at the same time at the full
// bandwidth: the switch between them has no limit of its own.
//
// The sum of B bytes over N hosts, left with all of them, is a reduce_scatter and an all_gather of
// (N - 1) / N of B each. As a ring both take N - 1 hops, each of which waits for the one before; as
// a direct exchange one hop, and a message to each other host:
//
//   ring     2 ((N - 1) latency                       + (N - 1) / N B / bandwidth)
//   direct   2 (latency + (N - 1) per_message         + (N - 1) / N B / bandwidth)
//
// Patarasu and Yuan (Journal of Parallel and Distributed Computing 69, 2009) show that no algorithm
// sends fewer bytes. A message of a ring costs its latency only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dpt {

struct LinkModel {
  std::string name;        // as the user wrote it
  double bandwidth = 0;    // bytes a second of each host, in each direction; > 0
  double latency = 0;      // seconds from a send to its arrival, besides the bytes
  double per_message = 0;  // seconds for which a message occupies its host
};

// One exchange, as one host sees it.
struct Transfer {
  double bytes = 0;  // sent or received, whichever are more
  double messages = 0;
  double hops = 1;
};
// A reduce_scatter or an all_gather of `bytes` over all hosts.
Transfer direct_transfer(int hosts, double bytes);
Transfer ring_transfer(int hosts, double bytes);

// Seconds for which a transfer occupies the link, and after which all of it has arrived.
double occupied_seconds(const LinkModel& link, const Transfer& transfer);
double seconds(const LinkModel& link, const Transfer& transfer);

// The links that have a name. Bandwidths are usable ones: 92 % of the line rate, as headers take 6
// % of frames of 1500 bytes.
const std::vector<LinkModel>& named_links();
std::vector<std::string_view> link_names();

// A link by its name, "10GbE", or by its numbers: "1.15GB/s,25us", with the time per message as an
// optional third one, "1.15GB/s,25us,5us". Throws Error{spec} that says what is wrong with the
// text.
LinkModel parse_link(std::string_view text);

// "10GbE: 1.15 GB/s each way, latency 25.0 us, 5.00 us per message"
std::string link_text(const LinkModel& link);

}  // namespace dpt
