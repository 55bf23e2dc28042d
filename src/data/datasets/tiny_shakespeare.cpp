#include <filesystem>

#include "base/fail.h"
#include "data/readers/bytes.h"
#include "data/tables.h"
#include "data/text_files.h"

namespace dpt::datasets {
namespace {

// Karpathy 2015, "The Unreasonable Effectiveness of Recurrent Neural Networks": 40000 lines of
// Shakespeare, 65 characters.
struct TinyShakespeare : TextWindows {
  static constexpr Usage kUsage{
      "",
      "dataset: tiny_shakespeare\n"
      "dataset: {tiny_shakespeare: {path: ~/data, sequence_length: 128, stride: 64,\n"
      "    test_share: 0.1}}"};
  static KeyTable<TinyShakespeare> keys() {
    KeyTable<TinyShakespeare> table;
    table.path("path", &TextWindows::path,
               "folder of input.txt; none: searched in $DPTRAIN_DATA, datasets/ "
               "and the user's cache");
    add_keys(table);
    return table;
  }
};

constexpr uint64_t kBytes = 1115394;

std::string file_of(const TextWindows& t, const LoadQuery& query) {
  const std::string file = find_files("tiny_shakespeare", t.path, query.folder, {"input.txt"})[0];
  const std::unique_ptr<ByteSource> source = open_bytes(file);
  if (!source->compressed() && source->most_bytes() != kBytes)
    fail(Fault::data,
         "{} is not Tiny Shakespeare: it has {} bytes, where {} were expected. Fetch the file "
         "again, or write `dataset: {{text: {{path: FILE}}}}` for a text of your own.",
         file, source->most_bytes(), kBytes);
  return file;
}

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& t = std::any_cast<const TinyShakespeare&>(settings);
  const std::string file = file_of(t, query);
  Dataset d = load_text("tiny_shakespeare", file, t, query);
  if (t.path.empty()) d.found_in = std::filesystem::absolute(file).parent_path().lexically_normal();
  return d;
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  const auto& t = std::any_cast<const TinyShakespeare&>(settings);
  return text_torch(file_of(t, query), t, query);
}

std::string stand_in(const std::any& settings) {
  const auto& t = std::any_cast<const TinyShakespeare&>(settings);
  return fmt::format("{{synthetic_tokens: {{length: {}, vocabulary: 65, targets: next}}}}",
                     t.sequence_length);
}

}  // namespace

DatasetType tiny_shakespeare() {
  DatasetType t{registry_entry<TinyShakespeare>(
      "tiny_shakespeare",
      "Tiny Shakespeare: 1.1 million characters, 65 different ones, as "
      "sequences (Karpathy 2015).")};
  t.load = load;
  t.torch = torch;
  t.stand_in = stand_in;
  return t;
}

}  // namespace dpt::datasets
