// Keys about parameters: initial weights, what is trained, and with which settings.
#pragma once

#include "spec/language.h"

namespace dpt {

void add_initial_weights(KeyTable<TopKeys>& t);
// The value of a key that takes a pattern or a list of patterns; null: none.
void read_patterns(std::string_view key, Patterns& out, const Node& n, Diagnostics& d);
KeyDoc patterns_doc(std::string fallback);

// parameter_groups, no_decay, freeze and lr_scale.
void add_parameter_keys(KeyTable<TopKeys>& t);

}  // namespace dpt
