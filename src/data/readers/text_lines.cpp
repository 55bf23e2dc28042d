#include "data/readers/text_lines.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/fail.h"
#include "base/units.h"
#include "base/utf8.h"

namespace dpt {
namespace {

// Whether all bytes are ASCII, and none is NUL.
bool is_plain(std::string_view bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  uint64_t others = 0;
  size_t i = 0;
  for (uint64_t word = 0; i + sizeof word <= bytes.size(); i += sizeof word) {
    std::memcpy(&word, bytes.data() + i, sizeof word);
    others |= (word | (word - kOnes)) & kHigh;  // a NUL borrows from its high bit
  }
  for (; i < bytes.size(); ++i) others |= static_cast<signed char>(bytes[i]) > 0 ? 0 : 1;
  return others == 0;
}

void append_utf8(uint32_t code, std::string& out) {
  const auto byte = [&](uint32_t b) { out += static_cast<char>(static_cast<unsigned char>(b)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      byte(0xe0 | code >> 12);
    } else {
      byte(0xf0 | code >> 18);
      byte(0x80 | (code >> 12 & 0x3f));
    }
    byte(0x80 | (code >> 6 & 0x3f));
  }
  byte(0x80 | (code & 0x3f));
}

}  // namespace

void TextLines::Mark::find(const std::string& text, size_t from) {
  if (found && at >= from) return;
  at = text.find(byte, std::max(from, at));
  found = at != text.npos;
  if (!found) at = text.size();
}

void TextLines::Mark::drop_front(size_t bytes) {
  found = found && at >= bytes;
  at -= std::min(at, bytes);
}

TextLines::TextLines(const std::string& path) : path_(path), source_(open_bytes(path)) {
  if (source_->compressed())
    fail(Fault::data, "{} is compressed; unpack it with gunzip first", path);
  left_ = source_->most_bytes();
}

bool TextLines::next(std::string_view& line) {
  begin_ = next_;
  ++number_;
  const LineEnd end = find_end();
  if (end.at - begin_ > kMostLine)
    fail(Fault::data, "{}:{}:1: the line has more than {} MiB; a table has a line for each sample",
         path_, number_, kMostLine / kMiB);
  line = std::string_view(text_).substr(begin_, end.at - begin_);
  const bool more = begin_ < text_.size();
  next_ = end.next;
  if (!ascii_) check_encoding(line);
  return more;
}

bool TextLines::extend(std::string_view& text) {
  const LineEnd end = find_end();
  const size_t first = next_ - begin_, size = end.at - begin_;
  const bool more = first < text_.size() - begin_ && size <= kMostLine;
  text = std::string_view(text_).substr(begin_, more ? size : text.size());
  if (!more) return false;
  ++number_;
  next_ = end.next;
  if (!ascii_) check_encoding(text.substr(first));
  return true;
}

// Beyond kMostLine bytes the search ends, so that a line without an end costs little.
TextLines::LineEnd TextLines::find_end() {
  for (;;) {
    feed_.find(text_, next_);
    carriage_.find(text_, next_);
    const bool returns = carriage_.found && carriage_.at < feed_.at;
    const size_t at = returns ? carriage_.at : feed_.at;
    const bool found = returns || feed_.found;
    // A \r at the end of the block may be followed by \n.
    if (left_ == 0 || (found && (!returns || at + 1 < text_.size())) || at - begin_ > kMostLine) {
      const size_t length = returns && at + 1 < text_.size() && text_[at + 1] == '\n' ? 2 : 1;
      return {.at = at, .next = std::min(at + length, text_.size())};
    }
    read_more();
  }
}

void TextLines::read_more() {
  text_.erase(0, begin_);
  next_ -= begin_;
  feed_.drop_front(begin_);
  carriage_.drop_front(begin_);
  begin_ = 0;
  const size_t kept = text_.size(), fresh = std::min<uint64_t>(left_, kMiB);
  text_.resize(kept + fresh);
  source_->read(std::as_writable_bytes(std::span(text_)).subspan(kept), "the text");
  left_ -= fresh;
  if (encoding_ == Encoding::unknown) take_mark();
  if (encoding_ != Encoding::utf8) {
    const std::string bytes = text_.substr(kept);
    text_.resize(kept);
    append_utf16(bytes);
  }
  ascii_ = ascii_ && is_plain(std::string_view(text_).substr(kept));
}

// Reads and removes the byte order mark. REQUIRES: text_ is the first block.
void TextLines::take_mark() {
  using namespace std::string_view_literals;
  const auto starts = [&](std::string_view mark) { return text_.starts_with(mark); };
  if (starts("PK\x03\x04"))
    fail(Fault::data,
         "{} is a ZIP archive, such as a workbook of a spreadsheet program; save the table as CSV",
         path_);
  if (starts("\xff\xfe\0\0"sv) || starts("\0\0\xfe\xff"sv))
    fail(Fault::data,
         "{0} is encoded in UTF-32; convert it to UTF-8: iconv -f UTF-32 -t UTF-8 {0} > utf8.csv",
         path_);
  encoding_ = starts("\xff\xfe")   ? Encoding::utf16_little
              : starts("\xfe\xff") ? Encoding::utf16_big
                                   : Encoding::utf8;
  text_.erase(0, encoding_ != Encoding::utf8 ? 2 : starts("\xef\xbb\xbf") ? 3 : 0);
}

// REQUIRES: only the last block of a file has an odd number of bytes.
void TextLines::append_utf16(std::string_view bytes) {
  const auto wrong = [&] {
    fail(Fault::data,
         "{}: the file has the byte order mark of UTF-16, but is no valid UTF-16 text; save it as "
         "UTF-8",
         path_);
  };
  const size_t low = encoding_ == Encoding::utf16_little ? 0 : 1;
  if (bytes.size() % 2 != 0) wrong();
  for (size_t i = 0; i < bytes.size(); i += 2) {
    const auto byte = [&](size_t at) { return uint32_t{static_cast<unsigned char>(bytes[at])}; };
    const uint32_t unit = byte(i + low) | byte(i + 1 - low) << 8;
    const bool is_high = unit >> 10 == 0x36, is_low = unit >> 10 == 0x37;
    if (is_low != (high_surrogate_ != 0)) wrong();
    if (is_high)
      high_surrogate_ = unit;
    else
      append_utf8(is_low ? 0x10000 + ((high_surrogate_ & 0x3ff) << 10 | (unit & 0x3ff)) : unit,
                  text_);
    if (is_low) high_surrogate_ = 0;
  }
  if (left_ == 0 && high_surrogate_ != 0) wrong();
}

void TextLines::check_encoding(std::string_view line) const {
  if (const size_t nul = line.find('\0'); nul != line.npos) refuse_nul(line, nul);
  const size_t at = invalid_utf8(line);
  if (at == line.npos) return;
  fail(Fault::data,
       "{0}:{1}:{2}: the byte 0x{3:02x} is not UTF-8; convert the file, if it is in Latin-1 or "
       "Windows-1252 by iconv -f WINDOWS-1252 -t UTF-8 {0} > utf8.csv, else by the same with its "
       "encoding",
       path_, number_, at + 1, static_cast<unsigned char>(line[at]));
}

void TextLines::refuse_nul(std::string_view line, size_t at) const {
  // Every second byte of ASCII characters in UTF-16 is NUL.
  const size_t other = at + 2;
  if (number_ > 1 || at > 1 || other >= line.size() || line[other] != '\0')
    fail(Fault::data, "{}:{}:{}: a NUL byte; the file is not a text, or it is damaged", path_,
         number_, at + 1);
  fail(Fault::data,
       "{0} seems to be encoded in {1} without a byte order mark; convert it to UTF-8: iconv -f "
       "{1} -t UTF-8 {0} > utf8.csv",
       path_, at == 1 ? "UTF-16LE" : "UTF-16BE");
}

}  // namespace dpt
