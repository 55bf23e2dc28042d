#include "cli/printed_numbers.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "cli/spec_argument.h"
#include "spec/metric_name.h"
#include "train/run_numbers.h"

namespace dpt {
namespace {

constexpr std::string_view kWeights = "weights.sha256", kOut = "out";

}  // namespace

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    out.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::vector<std::string> printable_names(const Spec& spec) {
  std::vector<std::string> out = number_names(spec);
  out.emplace_back(kWeights);
  out.emplace_back(kOut);
  return out;
}

std::vector<std::string> read_printed_names(const std::string& list, const Spec& spec) {
  const std::vector<std::string> all = printable_names(spec);
  std::vector<std::string> out;
  for (const std::string& given : names_in(list)) {
    out.push_back(full_metric_name(given, spec));
    if (std::ranges::find(all, out.back()) != all.end() ||
        records_metric(spec, without_best(out.back())))
      continue;
    const bool evaluated = given.starts_with("test.") || given.starts_with("accuracy");
    const std::string advice = evaluated ? evaluation_advice(spec) : "";
    throw BadSpec{fmt::format("dptrain: --print: this run has no number '{}'; {}{}it has: {}\n",
                              given, advice, advice.empty() ? "" : "; ", fmt::join(all, ", "))};
  }
  return out;
}

std::string printed_line(const std::vector<std::string>& names, const std::string& run) {
  const RunNumbers numbers = read_numbers(run);
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (name == kOut || name == kWeights) {
      out.push_back(name == kOut ? run : weights_sha256(run));
      continue;
    }
    const auto value = numbers.find(name);
    if (!value)
      fail(Fault::failed,
           "--print: {} has no {}: no epoch with an evaluation was completed{}; see `evaluate` and "
           "`epochs` in the spec",
           run, name, is_by_label(name) ? ", or no label has this name" : "");
    out.push_back(exact_number(*value));
  }
  return fmt::format("{}\n", fmt::join(out, " "));
}

}  // namespace dpt
