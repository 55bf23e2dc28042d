// Flattens specs to lists of keys and values, to find where two of them differ.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace dpt {

struct Registries;

// "data.batch_size" and "model[2].linear.out_features" with the text of their values. Empty lists
// and maps have no entry.
using FlatSpec = std::map<std::string, std::string>;

// A main value has its key: `optimizer: {adam: 0.01}` is "optimizer" with "adam" and
// "optimizer.adam.lr" with "0.01", as with `adam: {lr: 0.01}`. Errors of the YAML go to `problem`,
// where one is given; without one, what could be read is returned.
FlatSpec flatten_spec(const std::string& yaml, const Registries& registries,
                      std::string* problem = nullptr);

// "optimizer.adam.lr" of "optimizer.adam"; other keys as they are.
std::string key_of_main_value(const std::string& key, const Registries& registries);

struct SpecChange {
  std::string key, before, now;  // values; "(not given)" if a spec lacks the key
};

// In the order of the keys.
std::vector<SpecChange> spec_changes(const std::string& before, const std::string& now,
                                     const Registries& registries);

}  // namespace dpt
