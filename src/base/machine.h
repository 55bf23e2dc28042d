// What this process may use of the machine.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dpt {

// Numbers of the cores that this process may run on: its affinity mask, cut to what the control
// group's quota pays for (ceil of quota / period). Never empty.
std::vector<int> usable_cores();

// Bytes of memory that may still be used: of the machine, or of the control group where it has
// less.
size_t usable_memory();

std::string cpu_name();  // "Intel(R) Xeon(R) Processor"; "unknown" where the system does not say

}  // namespace dpt
