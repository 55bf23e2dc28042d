// Texts that are compared with files of the tests.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "paths.h"

namespace dpt {

// `file`: in tests/, "cli/golden/plan.txt". DPT_REWRITE_GOLDEN=1 writes it anew. renew: a command
// that does so, for the message.
inline void check_golden(const std::string& text, const std::string& file,
                         const std::string& renew = "DPT_REWRITE_GOLDEN=1, with this test") {
  const std::string path = test_file(file);
  if (std::getenv("DPT_REWRITE_GOLDEN") != nullptr)  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(path, std::ios::binary) << text;
  CHECK_MESSAGE(text == read_file(path), file,
                " differs; if the change is meant, renew it: ", renew);
}

}  // namespace dpt
