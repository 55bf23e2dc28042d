#include "data/text_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "base/units.h"
#include "data/readers/bytes.h"
#include "data/tables.h"
#include "formats/python_call.h"

namespace dpt {
namespace {

constexpr uint64_t kMostText = kGiB;  // tokens take four times as many bytes

std::vector<std::byte> read_text(const std::string& file) {
  const std::unique_ptr<ByteSource> source = open_bytes(file);
  if (source->compressed())
    fail(Fault::data, "{} is compressed; unpack it with gunzip first", file);
  if (source->most_bytes() > kMostText)
    fail(Fault::data, "{} has {} bytes; at most 1 GiB of text is read: train on a part of it", file,
         source->most_bytes());
  std::vector<std::byte> text(source->most_bytes());
  source->read(text, "the text");
  if (text.empty()) fail(Fault::data, "{} is empty, where a text was expected", file);
  return text;
}

// The token of each byte value, and the number of tokens.
struct Vocabulary {
  std::array<int32_t, 256> token{};
  int32_t size = 0;
  std::string characters;  // the byte of each token
  explicit Vocabulary(std::span<const std::byte> text) {
    std::array<bool, 256> there{};
    for (const std::byte b : text) there[std::to_integer<size_t>(b)] = true;
    for (size_t b = 0; b < there.size(); ++b)
      if (there[b]) {
        token[b] = size++;
        characters += static_cast<char>(b);
      }
  }
  // That of the text that `characters` come from. Throws Error{data} if this text has others.
  Vocabulary(std::span<const std::byte> text, std::string of_run, const std::string& file)
      : characters(std::move(of_run)) {
    std::array<bool, 256> there{};
    for (const char c : characters) {
      const auto b = static_cast<unsigned char>(c);
      there[b] = true;
      token[b] = size++;
    }
    const auto other = std::ranges::find_if_not(
        text, [&](std::byte b) { return there[std::to_integer<size_t>(b)]; });
    if (other != text.end())
      fail(Fault::data,
           "{}: byte {:#04x} at offset {} does not occur in the text that the model is trained "
           "on; remove it, or train with it",
           file, std::to_integer<int>(*other), other - text.begin());
  }
};

struct Piece {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
Piece piece_of(int64_t characters, const TextWindows& s, Split split) {
  const auto cut = static_cast<int64_t>(static_cast<double>(characters) * (1 - s.test_share));
  return split == Split::train ? Piece{0, cut} : Piece{cut, characters};
}

// In an evaluation, windows do not overlap.
int64_t stride_of(const TextWindows& s, Split split) {
  return split == Split::train && s.stride > 0 ? s.stride : s.sequence_length;
}

// The number of windows in a piece.
int64_t windows(const Piece& piece, const TextWindows& s, Split split, const std::string& file) {
  if (split == Split::test && piece.size() == 0)
    fail(Fault::data, "{} has no test split: set test_share above 0", file);
  if (piece.size() <= s.sequence_length)
    fail(Fault::data,
         "{}: the part to {} has {} characters, but sequence_length {} and the character that "
         "follows take {}; write a smaller sequence_length, or another test_share",
         file, split == Split::train ? "train on" : "evaluate on", piece.size(), s.sequence_length,
         s.sequence_length + 1);
  const int64_t count = (piece.size() - s.sequence_length - 1) / stride_of(s, split) + 1;
  if (count > std::numeric_limits<uint32_t>::max())
    fail(Fault::data, "{} makes {} samples, more than 2^32; write a larger stride", file, count);
  return count;
}

}  // namespace

Dataset load_text(const std::string& name, const std::string& file, const TextWindows& settings,
                  const LoadQuery& query) {
  const std::vector<std::byte> text = read_text(file);
  const Dataset* const training = query.training_set;
  const Vocabulary vocabulary = training != nullptr && !training->characters.empty()
                                    ? Vocabulary(text, training->characters, file)
                                    : Vocabulary(text);
  const Piece piece = piece_of(std::ssize(text), settings, query.split);
  const int64_t count = windows(piece, settings, query.split, file);
  const NewTable tokens({DType::i32, {piece.size()}});
  std::transform(text.begin() + piece.begin, text.begin() + piece.end, tokens.as<int32_t>().begin(),
                 [&](std::byte b) { return vocabulary.token[std::to_integer<size_t>(b)]; });
  const std::shared_ptr<const std::byte[]> next(tokens.data, tokens.data.get() + sizeof(int32_t));
  const TensorDesc desc{DType::i32, {count, settings.sequence_length}};
  Dataset d;
  d.inputs = {.desc = desc, .data = tokens.data, .stride = stride_of(settings, query.split)};
  d.targets = {.desc = desc, .data = next, .stride = stride_of(settings, query.split)};
  d.classes = d.tokens = vocabulary.size;
  d.characters = vocabulary.characters;
  d.description = describe(name, d, file);
  return d;
}

std::string text_torch(const std::string& file, const TextWindows& settings,
                       const LoadQuery& query) {
  const std::vector<std::byte> text = read_text(file);
  if (query.training_set != nullptr &&
      Vocabulary(text).characters != query.training_set->characters)
    return "";  // the program would number the characters anew
  const Piece piece = piece_of(std::ssize(text), settings, query.split);
  return fmt::format(
      "text = np.fromfile({}, dtype=np.uint8)\n"
      "tokens = torch.from_numpy(np.searchsorted(np.unique(text), text))[{}:{}]\n"
      "x = tokens[:-1].unfold(0, {}, {})\n"
      "y = tokens[1:].unfold(0, {}, {})\n",
      python(std::filesystem::absolute(file).string()), piece.begin, piece.end,
      settings.sequence_length, stride_of(settings, query.split), settings.sequence_length,
      stride_of(settings, query.split));
}

}  // namespace dpt
