// A text as sequences of characters: what a character-level language model is trained on.
#pragma once

#include <string>

#include "data/dataset.h"

namespace dpt {

// A character is a byte, and its token the byte's place among those that the whole file has, from
// the smallest on. A sample is `sequence_length` tokens that follow each other; its target, of the
// same shape, the token behind each.
struct TextWindows {
  std::string path;
  int64_t sequence_length = 64, stride = 0;
  double test_share = 0.1;  // of the characters: the end of the file, as in nanoGPT

  // Behind the path, which each data set has for itself.
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

// Tokens i32 [N, T] and targets i32 [N, T], which lie in memory once. `file` is the one of
// settings.path, or the one that was found. Throws Error{data}: no such file, or too short.
Dataset load_text(const std::string& name, const std::string& file, const TextWindows& settings,
                  const LoadQuery& query);
std::string text_torch(const std::string& file, const TextWindows& settings,
                       const LoadQuery& query);

}  // namespace dpt
