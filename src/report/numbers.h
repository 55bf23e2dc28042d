// Numbers of a benchmark for people: at least three significant digits, no exponents.
#pragma once

#include <string>

namespace dpt {

std::string number_text(double x);  // "1.26", "12.6", "12600"
std::string time_text(double ms);   // "250 ns", "6.40 us", "1.56 ms", "12.0 s"
std::string ratio_text(double x);   // "1.26x"
std::string percent_text(double share);

}  // namespace dpt
