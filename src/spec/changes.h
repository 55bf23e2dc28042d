// Specs as flat lists of keys and values, to say where two of them differ.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace dpt {

// "data.batch_size" and "model[2].linear" with the text of their values. Empty lists and maps have
// no entry.
using FlatSpec = std::map<std::string, std::string>;

// Errors of the YAML go to `problem`, where one is given; without one, what could be read is
// returned.
FlatSpec flatten_spec(const std::string& yaml, std::string* problem = nullptr);

struct SpecChange {
  std::string key, before, now;  // values: "(not given)" where a spec does not have the key
};

// In the order of the keys.
std::vector<SpecChange> spec_changes(const std::string& before, const std::string& now);

}  // namespace dpt
