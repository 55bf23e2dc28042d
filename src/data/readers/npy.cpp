#include "data/readers/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/units.h"
#include "data/readers/bytes.h"
#include "data/tables.h"

namespace dpt {
namespace {

constexpr size_t kMostHeader = 64 * kKiB;

struct Header {
  std::string type;  // "<f4"
  bool fortran = false;
  std::vector<int64_t> shape;
};

// Parses the one Python dictionary that NumPy writes: {'descr': '<f4', 'fortran_order': False,
// 'shape': (3, 4), }. It is not a Python parser: any other text is refused.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Header read() {
    Header h;
    int seen = 0;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        if (peek() == '[')
          fail(Fault::data, "{} holds records with named fields; save one plain array", path_);
        h.type = quoted();
      } else if (key == "fortran_order") {
        h.fortran = boolean();
      } else if (key == "shape") {
        h.shape = tuple();
      } else {
        refuse();
      }
      ++seen;
      if (!take(',') && peek() != '}') refuse();
    }
    if (seen != 3 || h.type.empty() || peek() != '\0') refuse();
    return h;
  }

 private:
  [[noreturn]] void refuse() const {
    fail(Fault::data, "{}: cannot parse the NPY header at character {}, before \"{:.40}\"", path_,
         at_, text_.substr(std::min(at_, text_.size())));
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse();
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse();
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) refuse();
    const std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }
  bool boolean() {
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      peek();
      if (text_.substr(at_).starts_with(word)) {
        at_ += std::strlen(word);
        return value;
      }
    }
    refuse();
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> out;
    expect('(');
    while (!take(')')) {
      peek();
      int64_t value = 0;
      const char* from = text_.data() + at_;
      const auto [end, error] = std::from_chars(from, text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0) refuse();
      at_ += static_cast<size_t>(end - from);
      out.push_back(value);
      if (!take(',') && peek() != ')') refuse();
    }
    return out;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

Header read_header(ByteSource& source, const std::string& path) {
  std::array<std::byte, 8> magic{};
  source.read(magic, "the header");
  const auto is = [&](std::string_view text) {
    return std::memcmp(magic.data(), text.data(), text.size()) == 0;
  };
  if (is("PK\x03\x04"))
    fail(Fault::data, "{} is an NPZ archive; save one array with numpy.save instead", path);
  if (!is("\x93NUMPY"))
    fail(Fault::data, "{} is not an NPY file: it does not begin with \\x93NUMPY", path);
  const auto version = std::to_integer<int>(magic[6]);
  if (version < 1 || version > 3)
    fail(Fault::data, "{}: NPY version {} is not supported; save the array again with numpy.save",
         path, version);
  std::array<std::byte, 4> length{};
  source.read(std::span(length).first(version == 1 ? 2 : 4), "the header's length");
  size_t bytes = 0;
  for (size_t i = 4; i-- > 0;) bytes = bytes << 8 | std::to_integer<size_t>(length[i]);
  if (bytes > kMostHeader)
    fail(Fault::data,
         "{}: an NPY header of {} bytes is too large; the file is damaged. Fetch the file again.",
         path, bytes);
  std::string text(bytes, '\0');
  source.read(std::as_writable_bytes(std::span(text)), "the header");
  return HeaderReader(text, path).read();
}

struct ElementType {
  std::string_view code;
  size_t bytes;
  DType becomes;
};
constexpr ElementType kTypes[] = {{"<f4", 4, DType::f32}, {"<f8", 8, DType::f32},
                                  {"<i4", 4, DType::i32}, {"<i8", 8, DType::i32},
                                  {"|u1", 1, DType::u8},  {"|b1", 1, DType::u8}};

const ElementType& type_of(const Header& h, const std::string& path) {
  if (h.fortran)
    fail(Fault::data,
         "{} is in Fortran order; write it again with numpy.save(path, numpy.ascontiguousarray(a))",
         path);
  for (const ElementType& t : kTypes)
    if (t.code == h.type) return t;
  fail(Fault::data,
       "{} holds elements of type '{:.40}'; <f4 <f8 <i4 <i8 |u1 and |b1 can be read. Save it again "
       "as one of these types, for example with a.astype('float32')",
       path, h.type);
}

// Converts 64-bit elements to 32-bit ones. Throws Error{data} if an integer does not fit.
template <class From, class To>
Table narrowed(const Table& from, DType to, const std::string& path) {
  NewTable out({to, from.desc.shape});
  const std::span<const From> wide = values_of<From>(from);
  const std::span<To> narrow = out.as<To>();
  for (size_t i = 0; i < wide.size(); ++i) {
    if constexpr (std::is_integral_v<To>)
      if (!std::in_range<To>(wide[i]))
        fail(Fault::data, "{}: element {} is {}, which does not fit into 32 bits", path, i,
             wide[i]);
    narrow[i] = static_cast<To>(wide[i]);
  }
  return std::move(out).done();
}

}  // namespace

Table read_npy(const std::string& path) {
  const std::unique_ptr<ByteSource> source = open_bytes(path);
  const Header h = read_header(*source, path);
  const ElementType& type = type_of(h, path);
  if (h.shape.empty() || h.shape.size() > Shape::kMaxRank)
    fail(Fault::data, "{} has {} dimensions, but 1 to {} are supported", path, h.shape.size(),
         Shape::kMaxRank);
  const Shape shape(h.shape);
  uint64_t bytes = type.bytes;
  bool fits = true;
  for (const int64_t d : h.shape) {
    if (d == 0) fail(Fault::data, "{} is empty: its shape is {}", path, shape.str());
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<uint64_t>(d), &bytes);
  }
  if (!fits || bytes > source->most_bytes())
    fail(Fault::data,
         "{}: the header announces {} elements of {} bytes, which the file cannot hold", path,
         shape.str(), type.bytes);
  const DType raw = type.bytes < 8               ? type.becomes
                    : type.becomes == DType::f32 ? DType::f64
                                                 : DType::i64;
  NewTable table({raw, shape});
  source->read({table.data.get(), bytes}, fmt::format("{} elements", shape.str()));
  source->expect_end();
  Table read = std::move(table).done();
  if (raw == DType::f64) return narrowed<double, float>(read, DType::f32, path);
  if (raw == DType::i64) return narrowed<int64_t, int32_t>(read, DType::i32, path);
  return read;
}

}  // namespace dpt
