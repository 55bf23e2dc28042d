// `dptrain SPEC --print test.accuracy`: numbers of a run on standard output, for shells.
#pragma once

#include <string>
#include <vector>

#include "spec/spec.h"

namespace dpt {

// The parts between the commas of a list.
std::vector<std::string> names_in(const std::string& list);

// The names in "loss,test.accuracy", in full. Throws BadSpec if a run of the spec has no such
// number.
std::vector<std::string> read_printed_names(const std::string& list, const Spec& spec);

// The names that read_printed_names() accepts.
std::vector<std::string> printable_names(const Spec& spec);

// The line that --print prints after the run in this directory: values, separated by spaces. Throws
// Error{failed} if the run did not record one of them.
std::string printed_line(const std::vector<std::string>& names, const std::string& run);

}  // namespace dpt
