// Reads a text file line by line, keeping only part of it in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/readers/bytes.h"

namespace dpt {

// The lines of a file in UTF-8, or in UTF-16 with a byte order mark, as UTF-8. A line ends with \n,
// \r\n or \r. Throws Error{data} as "path:line:column: ..." for other encodings and for lines of
// more than kMostLine bytes. Memory: a block and one line. Not thread-safe.
class TextLines {
 public:
  static constexpr size_t kMostLine = size_t{8} << 20;

  // `path` must outlive the object. Refuses compressed files and archives.
  explicit TextLines(const std::string& path);

  // Gets the next line without its end; valid until the next call. Returns false at the end.
  bool next(std::string_view& line);
  // Appends the next line, with the line end between both, to the text that next() returned.
  // Returns false, and leaves it, at the end of the file and if it would exceed kMostLine.
  bool extend(std::string_view& text);
  size_t number() const { return number_; }  // of the last line read, from 1
  // About how many bytes of the file come after that line.
  uint64_t bytes_left() const { return left_ + (text_.size() - next_); }

 private:
  // The next occurrence of a byte in text_, so that no part of it is searched twice.
  struct Mark {
    char byte;
    size_t at = 0;  // of the byte; if it was not found, the end of what was searched
    bool found = false;
    void find(const std::string& text, size_t from);
    void drop_front(size_t bytes);
  };
  enum class Encoding { unknown, utf8, utf16_little, utf16_big };
  struct LineEnd {
    size_t at = 0, next = 0;  // of the end's first byte, and of the next line's
  };

  LineEnd find_end();  // of the line at next_; reads more of the file as needed
  void read_more();
  void take_mark();
  void append_utf16(std::string_view bytes);
  void check_encoding(std::string_view line) const;
  [[noreturn]] void refuse_nul(std::string_view line, size_t at) const;

  const std::string& path_;
  std::unique_ptr<ByteSource> source_;
  uint64_t left_ = 0;  // bytes not yet in text_
  Encoding encoding_ = Encoding::unknown;
  uint32_t high_surrogate_ = 0;  // the first half of a UTF-16 pair whose second is to come; 0: none
  std::string text_;
  size_t begin_ = 0, next_ = 0;  // offsets in text_: of the current text, and of the next line
  Mark feed_{.byte = '\n'}, carriage_{.byte = '\r'};
  bool ascii_ = true;  // the file holds only ASCII without NUL so far
  size_t number_ = 0;
};

}  // namespace dpt
