// The text of a terminal's status line: fields that fit into a width, and short numbers for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dpt {

struct StatusField {
  std::string text;    // ASCII
  int importance = 0;  // where the width does not suffice, the highest number goes first
  std::optional<double> fraction;  // [0, 1]: a bar that takes the width that is left over
};

// The fields in their order, two spaces between them, in at most `columns` - 1 characters: in the
// last column a terminal may begin a new line. The last field that is left is cut off.
std::string fit_fields(std::vector<StatusField> fields, int columns);

// The width of the terminal on this descriptor at this moment; 80 if it is unknown.
int terminal_columns(int fd);

std::string grouped(int64_t number);             // "230,000"
std::string rounded_short(double number);        // "230k", "91.8k", "8.32": three digits
std::string clock_duration(double seconds);      // "0:07", "1:02:33"; 100 hours and more: "4d 05h"
std::string samples_per_second(double samples);  // "230,000 samples/s", "8.32 samples/s"

}  // namespace dpt
