// A text as sequences of characters, for character-level language models.
#pragma once

#include <string>

#include "data/dataset.h"

namespace dpt {

// Characters are bytes. A character's token is its index among the byte values that occur in the
// file, in ascending order. A sample is `sequence_length` consecutive tokens; its target, of the
// same shape, is the token after each.
struct TextWindows {
  std::string path;
  int64_t sequence_length = 64, stride = 0;
  double test_share = 0.1;  // share of the characters, at the end of the file, as in nanoGPT

  // Adds the keys that follow the path, which each data set declares itself.
  template <class Config>
  static void add_keys(KeyTable<Config>& table) {
    table.optional("sequence_length", &TextWindows::sequence_length, "characters per sample", kSize)
        .optional("stride", &TextWindows::stride,
                  "characters from the start of one training sample to the start of the next; 0: "
                  "sequence_length, so that samples do not overlap",
                  kSizeOrZero)
        .optional("test_share", &TextWindows::test_share,
                  "share of the file, at its end, that is the test set", kBelowOne);
  }
};

// Loads inputs i32 [N, T] and targets i32 [N, T], which share one copy in memory. `file`:
// settings.path, or the file that was found. Throws Error{data} if the file is missing or too
// short.
Dataset load_text(const std::string& name, const std::string& file, const TextWindows& settings,
                  const LoadQuery& query);
std::string text_torch(const std::string& file, const TextWindows& settings,
                       const LoadQuery& query);

}  // namespace dpt
