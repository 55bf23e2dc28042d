// Keys about parameters: initial weights, what is trained, and with which settings.
#pragma once

#include "spec/language.h"

namespace dpt {

void add_initial_weights(KeyTable<TopKeys>& t);
// parameter_groups, no_decay, freeze and lr_scale.
void add_parameter_keys(KeyTable<TopKeys>& t);

}  // namespace dpt
