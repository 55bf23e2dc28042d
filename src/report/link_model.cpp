#include "report/link_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "report/numbers.h"
#include "spec/source.h"

namespace dpt {
namespace {

constexpr double kPerMessage = 5e-6;  // of TCP

struct Unit {
  std::string_view name;
  double value;
};
constexpr std::array<Unit, 6> kBandwidths = {{{"GB/s", 1e9},
                                              {"MB/s", 1e6},
                                              {"kB/s", 1e3},
                                              {"Gbit/s", 1e9 / 8},
                                              {"Mbit/s", 1e6 / 8},
                                              {"kbit/s", 1e3 / 8}}};
constexpr std::array<Unit, 4> kTimes = {{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};

// "1.15GB/s" or "1.15 GB/s"; empty: it is no finite number with one of these units.
template <size_t N>
std::optional<double> quantity(std::string_view text, const std::array<Unit, N>& units) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  while (text.starts_with(' ')) text.remove_prefix(1);
  const auto unit = std::ranges::find(units, text, &Unit::name);
  if (unit == units.end()) return std::nullopt;
  return number * unit->value;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

double time_of(std::string_view link, std::string_view text, std::string_view what) {
  const std::optional<double> seconds = quantity(text, kTimes);
  if (!seconds || *seconds < 0)
    fail(Fault::spec,
         "--link: '{}' in '{}' is not a {}; write a time with its unit: 500ns, 25us, 1ms", text,
         link, what);
  return *seconds;
}

[[noreturn]] void fail_unknown(std::string_view text) {
  if (quantity(text, kBandwidths))
    fail(Fault::spec, "--link: '{0}' has no latency; write it after a comma: {0},25us", text);
  const std::vector<std::string_view> names = link_names();
  const std::string_view near = nearest(text, names);
  fail(Fault::spec,
       "--link: unknown link '{}'{} Write one of {}, or a bandwidth and a latency: 1.15GB/s,25us",
       text, near.empty() ? "." : fmt::format("; did you mean '{}'?", near),
       fmt::join(names, ", "));
}

}  // namespace

Transfer direct_transfer(int hosts, double bytes) {
  const double others = hosts - 1;
  return {.bytes = bytes * others / hosts, .messages = others, .hops = hosts > 1 ? 1.0 : 0.0};
}

Transfer ring_transfer(int hosts, double bytes) {
  const double others = hosts - 1;
  return {.bytes = bytes * others / hosts, .messages = 0, .hops = others};
}

double occupied_seconds(const LinkModel& link, const Transfer& t) {
  return t.messages * link.per_message + t.bytes / link.bandwidth;
}

double seconds(const LinkModel& link, const Transfer& t) {
  return t.hops * link.latency + occupied_seconds(link, t);
}

const std::vector<LinkModel>& named_links() {
  constexpr double kLatency = 25e-6;  // of TCP through a switch
  static const std::vector<LinkModel> links = {
      {"1GbE", 0.115e9, kLatency, kPerMessage},
      {"10GbE", 1.15e9, kLatency, kPerMessage},
      {"25GbE", 2.875e9, kLatency, kPerMessage},
      {"100GbE", 11.5e9, kLatency, kPerMessage},
      // By MPI, which does not go through the kernel.
      {"200GbIB", 23e9, 2e-6, 0.5e-6},
  };
  return links;
}

std::vector<std::string_view> link_names() {
  std::vector<std::string_view> out;
  for (const LinkModel& link : named_links()) out.emplace_back(link.name);
  return out;
}

LinkModel parse_link(std::string_view text) {
  for (const LinkModel& link : named_links())
    if (text == link.name) return link;
  const std::vector<std::string_view> numbers = split(text);
  if (numbers.size() == 1) fail_unknown(text);
  if (numbers.size() > 3)
    fail(Fault::spec,
         "--link: '{}' has {} numbers; write a bandwidth, a latency and, if it matters, a time per "
         "message: 1.15GB/s,25us,5us",
         text, numbers.size());
  const std::optional<double> bandwidth = quantity(numbers[0], kBandwidths);
  if (!bandwidth || *bandwidth <= 0)
    fail(Fault::spec,
         "--link: '{}' in '{}' is not a bandwidth; write a number with its unit: 1.15GB/s, "
         "940Mbit/s",
         numbers[0], text);
  return {.name = std::string(text),
          .bandwidth = *bandwidth,
          .latency = time_of(text, numbers[1], "latency"),
          .per_message =
              numbers.size() == 3 ? time_of(text, numbers[2], "time per message") : kPerMessage};
}

std::string link_text(const LinkModel& link) {
  const bool large = link.bandwidth >= 0.9995e8;
  return fmt::format("{}: {} {}/s each way, latency {}, {} per message", link.name,
                     number_text(link.bandwidth / (large ? 1e9 : 1e6)), large ? "GB" : "MB",
                     time_text(1e3 * link.latency), time_text(1e3 * link.per_message));
}

}  // namespace dpt
