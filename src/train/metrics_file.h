// metrics.jsonl: one flat JSON object a line, {"step": 1, "loss": 2.3} or {"epoch": 1,
// "loss": 2.3}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string_view>

namespace dpt {

inline constexpr size_t kMostRecordBytes = 1 << 16;  // of a line; the rest of it is dropped

// Calls `line` with each line of a stream and its number, from 1. The last one may lack its line
// break: a run may be writing it. Memory does not grow with the stream. `in.bad()` tells afterwards
// whether reading failed.
void read_lines(std::istream& in,
                const std::function<void(std::string_view line, int64_t number)>& line);

// The number under a key of a record. NaN for null (which stands for what JSON has no number for)
// and for Python's NaN; empty where the record has no such key, or no number under it.
std::optional<double> metric(std::string_view record, std::string_view key);

}  // namespace dpt
