// Flattens specs to lists of keys and values, to find where two of them differ.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace dpt {

// Maps keys such as "data.batch_size" and "model[2].linear" to the text of their values. Empty
// lists and maps have no entry.
using FlatSpec = std::map<std::string, std::string>;

// Flattens YAML text. `problem` receives the errors, if it is not null; whatever could be read is
// returned either way.
FlatSpec flatten_spec(const std::string& yaml, std::string* problem = nullptr);

struct SpecChange {
  std::string key, before, now;  // values; "(not given)" if a spec lacks the key
};

// The changes, ordered by key.
std::vector<SpecChange> spec_changes(const std::string& before, const std::string& now);

}  // namespace dpt
