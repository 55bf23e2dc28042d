#include "data/small_font.h"

#include <string>

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

}  // namespace

bool glyph_pixel(char character, int64_t x, int64_t y) {
  const int bits = rows_of(character)[static_cast<size_t>(y)] - '0';
  return (bits >> (kGlyphWidth - 1 - x) & 1) != 0;
}

int64_t text_pixels(std::string_view text) {
  return text.empty() ? 0 : static_cast<int64_t>(text.size()) * (kGlyphWidth + 1) - 1;
}

}  // namespace dpt
