#include "describe/message_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/count.h"
#include "describe/torch_messages.h"
#include "layers/model.h"

namespace dpt {
namespace {

constexpr std::string_view kCut = "..";

std::string shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  return text.substr(0, most - kCut.size()) + std::string(kCut);
}

// A text in lines of at most `width` characters, each behind `indent`; 0: one line.
std::string wrapped(std::string_view text, std::string_view indent, size_t width) {
  std::string out(indent);
  size_t column = indent.size();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const bool first = column == indent.size();
    if (!first && width > 0 && column + 1 + end - begin > width) {
      out += "\n" + std::string(indent);
      column = indent.size();
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += text.substr(begin, end - begin);
    column += end - begin;
    begin = end + 1;
  }
  return out + "\n";
}

using Row = std::vector<std::string>;

// Rows of cells: the columns up to `names` are texts, the others numbers. Where lines are longer
// than `width`, column `flexible` is shortened, to at least kLeast characters.
std::string table_text(const std::vector<Row>& rows, size_t names, size_t flexible, size_t width) {
  constexpr size_t kLeast = 6, kIndent = 2, kGap = 2;
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  size_t total = kIndent - kGap;
  for (const size_t w : widths) total += w + kGap;
  if (width > 0 && total > width)
    widths[flexible] = std::max(std::min(kLeast, widths[flexible]),
                                widths[flexible] - std::min(widths[flexible], total - width));
  std::string out;
  for (const Row& row : rows) {
    std::string line(kIndent - kGap, ' ');
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string cell = shortened(row[c], widths[c]);
      line += std::string(kGap, ' ') + (c < names ? fmt::format("{:<{}}", cell, widths[c])
                                                  : fmt::format("{:>{}}", cell, widths[c]));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string name_of(const Message& m) {
  switch (m.kind) {
    case Message::Kind::send:
      return fmt::format("send {} to {}", m.from, m.to);
    case Message::Kind::broadcast:
      return fmt::format("broadcast from {}", m.from);
    case Message::Kind::reduce:
      return fmt::format("reduce to {}", m.to);
    case Message::Kind::all_reduce:
      return "all_reduce";
    case Message::Kind::all_gather:
      return "all_gather";
    case Message::Kind::reduce_scatter:
      return "reduce_scatter";
    case Message::Kind::own:
      return m.own;
  }
  return "";
}

std::string messages_text(const MessageList& list, size_t width) {
  const bool own =
      std::ranges::any_of(list.messages, [](const Message& m) { return !m.own.empty(); });
  std::vector<Row> rows = {own ? Row{"instruction", "bytes"}
                               : Row{"message", "of", "bytes", "times"}};
  for (const Message& m : list.messages)
    rows.push_back(
        own ? Row{name_of(m), fmt::format("{}", m.bytes)}
            : Row{name_of(m), m.what, fmt::format("{}", m.bytes), fmt::format("{}", m.times)});
  return list.messages.empty() ? "" : table_text(rows, own ? 1 : 2, own ? 0 : 1, width);
}

// Consecutive ranks with equal totals are one row.
std::string ranks_text(const std::vector<RankBytes>& ranks, size_t width) {
  std::vector<Row> rows = {{"a step of", "sends", "receives"}};
  for (size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
    for (end = begin + 1; end < ranks.size() && ranks[end] == ranks[begin];) ++end;
    rows.push_back({end == begin + 1 ? fmt::format("rank {}", begin)
                                     : fmt::format("each rank, {} to {}", begin, end - 1),
                    fmt::format("{}", ranks[begin].sends),
                    fmt::format("{}", ranks[begin].receives)});
  }
  return table_text(rows, 1, 0, width);
}

Row total_row(const MessageList& list) {
  RankBytes most;
  int64_t messages = 0;
  for (const RankBytes& r : list.ranks) {
    most.sends = std::max(most.sends, r.sends);
    most.receives = std::max(most.receives, r.receives);
  }
  bool own = false;
  for (const Message& m : list.messages) {
    messages += m.times;
    own = own || !m.own.empty();
  }
  return {own ? list.name : list.name.substr(0, list.name.find(':')), fmt::format("{}", most.sends),
          fmt::format("{}", most.receives), own ? "-" : fmt::format("{}", messages)};
}

}  // namespace

std::string message_text(const Session& s, size_t width) {
  const Topology& t = s.devices.topology;
  std::string out =
      wrapped(fmt::format("Messages of one step of '{}' with {} on {}, with {}, in bytes.",
                          s.settings.spec.name, counted(s.batches.global_batch, "sample"),
                          counted(t.ranks * t.devices_per_rank, "device"),
                          counted(parameter_count(s.model.graph), "parameter")),
              "", width);
  out += wrapped(
      "Ranks are connected as a ring: an all_reduce of b bytes over n ranks sends and receives "
      "2 b (n - 1) / n bytes on each of them, an all_gather or a reduce_scatter half of that; a "
      "broadcast or a reduce passes b bytes from rank to rank.",
      "", width);
  std::vector<Row> totals = {{"a step of", "sends", "receives", "messages"}};
  for (const MessageList& list : message_lists(s)) {
    out += "\n" + wrapped(list.name, "", width);
    if (!list.note.empty()) out += wrapped(list.note, "  ", width);
    out += messages_text(list, width);
    if (list.messages.empty()) continue;
    out += ranks_text(list.ranks, width);
    totals.push_back(total_row(list));
  }
  return out + "\n" + wrapped("totals, of the rank with the most:", "", width) +
         table_text(totals, 1, 0, width);
}

}  // namespace dpt
