#include "data/small_font.h"

#include <algorithm>
#include <cstdint>

#include "base/utf8.h"

namespace dpt {
namespace {

// Each digit is a row from the top, whose three bits are the pixels from the left.
constexpr std::string_view kDigits[] = {"75557", "26227", "71747", "71717", "55711",
                                        "74717", "74757", "71111", "75757", "75717"};
constexpr std::string_view kLetters[] = {
    "25755", "65656", "34443", "65556", "74647", "74644", "34553", "55755", "72227",
    "11152", "55655", "44447", "57755", "65555", "25552", "65644", "25573", "65655",
    "34216", "72222", "55557", "55552", "55775", "55255", "55222", "71247"};

std::string_view rows_of(char c) {
  if (c >= '0' && c <= '9') return kDigits[c - '0'];
  if (c >= 'a' && c <= 'z') return kLetters[c - 'a'];
  if (c >= 'A' && c <= 'Z') return kLetters[c - 'A'];
  switch (c) {
    case ' ':
      return "00000";
    case '-':
      return "00700";
    case '_':
      return "00007";
    case '.':
      return "00002";
    case ',':
      return "00024";
    case ':':
      return "02020";
    case '=':
      return "07070";
    case '+':
      return "02720";
    case '/':
      return "11244";
    case '(':
      return "24442";
    case ')':
      return "21112";
    default:
      return "71202";
  }
}

// The letters that Latin-1 and Latin Extended-A (U+00C0 to U+017F) put marks on.
constexpr std::string_view kBases =
    "AAAAAAACEEEEIIIIDNOOOOO*OUUUUYTSAAAAAAACEEEEIIIIDNOOOOO/OUUUUYTY"
    "AAAAAACCCCCCCCDDDDEEEEEEEEEEGGGGGGGGHHHHIIIIIIIIIIIIJJKKKLLLLLLLLLLNNNNNNNNNOOOOOOOORRRRRRSSS"
    "SSSSSTTTTTTUUUUUUUUUUUUWWYYYZZZZZZS";
constexpr uint32_t kFirstBase = 0xC0;
static_assert(kFirstBase + kBases.size() == 0x180);

uint32_t code_of(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  uint32_t code = byte(0) & (0xFFU >> (character.size() + 1));
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3FU);
  return code;
}

// Two letters in one, and s in its second form.
std::string_view letters_of(uint32_t code) {
  switch (code) {
    case 0xC6:
    case 0xE6:
      return "AE";
    case 0xDF:
      return "SS";
    case 0x152:
    case 0x153:
      return "OE";
    default:
      return code >= kFirstBase && code - kFirstBase < kBases.size()
                 ? kBases.substr(code - kFirstBase, 1)
                 : "?";
  }
}

}  // namespace

std::string drawable(std::string_view utf8) {
  std::string out;
  while (!utf8.empty()) {
    const size_t length = utf8_length(utf8);
    if (length == 1) {
      out += utf8[0];
    } else if (length == 0) {
      out += '?';
    } else {
      const uint32_t code = code_of(utf8.substr(0, length));
      const bool mark = code >= 0x300 && code < 0x370;  // on the letter before
      if (!mark) out += letters_of(code);
    }
    utf8.remove_prefix(std::max<size_t>(1, length));
  }
  return out;
}

bool glyph_pixel(char character, int64_t x, int64_t y) {
  const int bits = rows_of(character)[static_cast<size_t>(y)] - '0';
  return (bits >> (kGlyphWidth - 1 - x) & 1) != 0;
}

int64_t text_pixels(std::string_view text) {
  return text.empty() ? 0 : static_cast<int64_t>(text.size()) * (kGlyphWidth + 1) - 1;
}

}  // namespace dpt
