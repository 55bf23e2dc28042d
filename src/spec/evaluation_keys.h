// The key tables of validation, evaluation, checkpoints and early stopping.
#pragma once

#include "spec/language.h"

namespace dpt {

// `data.validation`. REQUIRES: `registries` outlives the table.
void add_validation_key(KeyTable<DataSpec>& table, const Registries& registries);
// The section `data` in which a separate validation set has the training set's keys that both must
// have (KeyDoc::shared). Reports those that it gives another value.
Node with_shared_keys(const Node& data, const Registry& datasets, Diagnostics& d);

// `minutes` and `early_stop`, which end a run.
void add_end_keys(KeyTable<TopKeys>& table);

// `evaluate` and `save`.
void add_evaluation_keys(KeyTable<TopKeys>& table);

}  // namespace dpt
