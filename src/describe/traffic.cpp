#include "describe/traffic.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace dpt {
namespace {

struct Column {
  std::string_view title;
  uint64_t Traffic::*bytes;
};
constexpr std::array<Column, 6> kColumns = {{{"reads", &Traffic::read},
                                             {"writes", &Traffic::written},
                                             {"sends", &Traffic::sent},
                                             {"receives", &Traffic::received},
                                             {"to host", &Traffic::to_host},
                                             {"from host", &Traffic::from_host}}};

std::string row_text(std::string_view name, const Traffic& bytes, std::span<const Column> columns) {
  std::string out = fmt::format("{:<34}", name);
  for (const Column& c : columns) out += fmt::format(" {:>12}", bytes.*c.bytes);
  return out + "\n";
}

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  for (const Column& c : kColumns) this->*c.bytes += other.*c.bytes;
  return *this;
}

Traffic total(const WorkerTraffic& lines) {
  Traffic out;
  for (const TrafficLine& line : lines) out += line.bytes;
  return out;
}

std::vector<WorkerTraffic> traffic_of(const Session& s) {
  std::vector<WorkerTraffic> out;
  for (int w = 0; w < s.devices.topology.total_workers(); ++w)
    out.push_back(s.devices.on_gpu() ? gpu_traffic(s, w) : cpu_traffic(s, w));
  return out;
}

// Consecutive workers that move the same have one entry.
std::string traffic_text(const Session& s) {
  const std::vector<WorkerTraffic> all = traffic_of(s);
  Traffic sum;
  for (const WorkerTraffic& lines : all) sum += total(lines);
  std::vector<Column> columns;
  for (const Column& c : kColumns)
    if (sum.*c.bytes > 0) columns.push_back(c);
  if (columns.empty()) return "";
  std::string out = fmt::format("{:<34}", "traffic, bytes a step:");
  for (const Column& c : columns) out += fmt::format(" {:>12}", c.title);
  out += "\n";
  const std::string_view who = s.devices.on_gpu() ? "GPU" : "worker";
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    for (end = begin + 1; end < all.size() && all[end] == all[begin];) ++end;
    const std::string name = end == begin + 1
                                 ? fmt::format("  {} {}", who, begin)
                                 : fmt::format("  each {}, {} to {}", who, begin, end - 1);
    out += row_text(name, total(all[begin]), columns);
    for (const TrafficLine& line : all[begin])
      out += row_text("      " + line.name, line.bytes, columns);
  }
  return out;
}

}  // namespace dpt
