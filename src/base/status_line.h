// Text for a terminal's status line: fields fitted into a width, and short numbers for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dpt {

struct StatusField {
  std::string text;                // ASCII
  int importance = 0;              // if the width is too small, the highest number is dropped first
  std::optional<double> fraction;  // [0, 1]: draws a progress bar that takes the remaining width
};

// Joins the fields with two spaces, in at most `columns` - 1 characters, since some terminals wrap
// after writing the last column. If only one field is left and too long, it is truncated.
std::string fit_fields(std::vector<StatusField> fields, int columns);

// The width of the terminal on this descriptor at this moment; `otherwise` if it is unknown.
int terminal_columns(int fd, int otherwise = 80);

std::string grouped(int64_t number);             // "230,000"
std::string rounded_short(double number);        // three digits: "230k", "91.8k", "8.32"
std::string clock_duration(double seconds);      // "0:07", "1:02:33"; from 100 hours on, "4d 05h"
std::string samples_per_second(double samples);  // "230,000 samples/s", "8.32 samples/s"

}  // namespace dpt
