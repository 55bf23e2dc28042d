// Specs that must be refused: every NAME.yaml of a folder with exactly the text of NAME.golden.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "spec/spec.h"

namespace dpt::test {

// Says what is wrong with one spec. Places in messages point into `files`.
using Refuse =
    std::function<void(const std::string& path, const std::vector<std::string>& overrides,
                       std::vector<std::unique_ptr<SourceFile>>& files, Diagnostics& d)>;

// A first line "# arguments: a=1 b=2" of a spec gives overrides. DPT_REWRITE_GOLDEN=1 writes the
// goldens anew. `folder` is one of tests/; at least so many specs are there. Lists of all names of
// a registry are <layers>, <optimizers> and so on in a golden, so that a new name changes none.
void check_broken(const std::string& folder, size_t at_least, const Registries& words,
                  const Refuse& refuse);

}  // namespace dpt::test
