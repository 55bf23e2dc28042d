#include "data/text_files.h"

namespace dpt::datasets {
namespace {

// text: any file, whose bytes are the characters.
struct Text : TextWindows {
  static KeyTable<Text> keys() {
    KeyTable<Text> table;
    table.required_path("path", &TextWindows::path,
                        "a file of at most 1 GiB, whose bytes are the characters");
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
  return {nameable<Text>("text",
                         "A file of text as sequences of characters; the next ones are to be "
                         "learned."),
          load, true, torch};
}

}  // namespace dpt::datasets
