// Reads metrics.jsonl: one flat JSON object per line, {"step": 1, "loss": 2.3}, {"epoch": 1,
// "loss": 2.3}, or a record with one of the keys kOtherRecords.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "formats/json.h"

namespace dpt {

inline constexpr size_t kMostRecordBytes = 64 * kKiB;  // of a line; the rest of it is dropped

// The keys of records that are neither of a step nor of an epoch, and have no training loss.
inline constexpr std::array<std::string_view, 3> kOtherRecords = {"evaluation", "final",
                                                                  "stopped_early"};

// Calls `line` for each line of a stream, with its number from 1. The last line may lack a line
// break, since a run may be writing it. Memory use is bounded. Afterwards `in.bad()` says whether
// reading failed.
void read_lines(std::istream& in,
                const std::function<void(std::string_view line, int64_t number)>& line);

// The object in a line, also with Python's NaN and Infinity; empty if it holds something else. Of a
// line that read_lines() cut off, what comes before the cut.
std::optional<Json> record_of(std::string_view line);

// The number under a key of a record. NaN for null (JSON's stand-in for infinity and NaN); empty if
// the key is missing or its value is not a number.
std::optional<double> number_at(const Json& record, std::string_view key);

}  // namespace dpt
