#include "data/text_files.h"

namespace dpt::datasets {
namespace {

// Any file; its bytes are the characters.
struct Text : TextWindows {
  static constexpr Usage kUsage{
      "", "dataset: {text: {path: book.txt, sequence_length: 128, stride: 64, test_share: 0.1}}"};
  static KeyTable<Text> keys() {
    KeyTable<Text> table;
    table.required_path("path", &TextWindows::path,
                        "text file of at most 1 GiB; its bytes are the characters");
    add_keys(table);
    return table;
  }
};

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& t = std::any_cast<const Text&>(settings);
  return load_text("text", t.path, t, query);
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  const auto& t = std::any_cast<const Text&>(settings);
  return text_torch(t.path, t, query);
}

}  // namespace

DatasetType text() {
  DatasetType t{registry_entry<Text>(
      "text", "Text file as sequences of characters; the targets are the next characters.")};
  t.load = load;
  t.torch = torch;
  return t;
}

}  // namespace dpt::datasets
