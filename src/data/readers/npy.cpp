#include "data/readers/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/half.h"
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
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // a long integer of Python 2
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
  std::string_view code;  // without the byte order
  size_t bytes;
  DType becomes;
};
constexpr ElementType kTypes[] = {
    {"f2", 2, DType::f32}, {"f4", 4, DType::f32}, {"f8", 8, DType::f32}, {"i1", 1, DType::i32},
    {"i2", 2, DType::i32}, {"i4", 4, DType::i32}, {"i8", 8, DType::i32}, {"u1", 1, DType::u8},
    {"u2", 2, DType::i32}, {"u4", 4, DType::i32}, {"u8", 8, DType::i32}, {"b1", 1, DType::u8}};

const ElementType& type_of(const Header& h, const std::string& path) {
  if (h.type.size() == 3 && std::string_view("<>|").find(h.type[0]) != std::string_view::npos)
    for (const ElementType& t : kTypes)
      if (t.code == std::string_view(h.type).substr(1)) return t;
  const bool texts = h.type.find_first_of("USO") != std::string::npos,
             complex = h.type.find('c') != std::string::npos;
  fail(
      Fault::data,
      "{} holds elements of type '{:.40}', but only f2, f4, f8, i1, i2, i4, i8, u1, u2, u4, u8 and "
      "b1 can be read. Save it again as one of these types, for example {}",
      path, h.type,
      texts     ? "by replacing texts with class numbers: numpy.unique(a, return_inverse=True)[1]"
      : complex ? "by splitting real and imaginary parts: numpy.stack([a.real, a.imag], 1)"
                : "with a.astype('float32')");
}

// Where the elements of a file are: those of the first index of Fortran order are adjacent.
class FileOrder {
 public:
  FileOrder(const Shape& shape, bool fortran) : shape_(shape) {
    int64_t step = 1;
    for (int i = 0; i < shape.rank(); ++i) {
      const int dim = fortran ? i : shape.rank() - 1 - i;
      steps_[static_cast<size_t>(dim)] = step;
      step *= shape[dim];
    }
  }
  // Calls f(offset in the file) for the elements in C order.
  template <class F>
  void each(F&& f) const {
    std::array<int64_t, Shape::kMaxRank> index{};
    int64_t offset = 0;
    const int64_t count = shape_.elements();
    for (int64_t i = 0; i < count; ++i) {
      f(static_cast<size_t>(offset));
      for (int d = shape_.rank() - 1; d >= 0; --d) {
        const auto at = static_cast<size_t>(d);
        offset += steps_[at];
        if (++index[at] < shape_[d]) break;
        offset -= steps_[at] * shape_[d];
        index[at] = 0;
      }
    }
  }

 private:
  Shape shape_;
  std::array<int64_t, Shape::kMaxRank> steps_{};
};

// The element as its type's bits, in this machine's byte order.
template <class Bits>
Bits bits_at(std::span<const std::byte> file, size_t offset, bool swap) {
  std::array<std::byte, sizeof(Bits)> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::ranges::copy(file.subspan(offset * sizeof(Bits), sizeof(Bits)), bytes.begin());
  if (swap) std::ranges::reverse(bytes);
  return std::bit_cast<Bits>(bytes);
}

// Converts elements stored as From to To. Throws Error{data} if an integer does not fit.
template <class From, class To>
void convert(std::span<const std::byte> file, const FileOrder& order, bool swap,
             const std::string& path, std::span<To> out) {
  size_t i = 0;
  order.each([&](size_t offset) {
    const From value = bits_at<From>(file, offset, swap);
    if constexpr (std::is_integral_v<From> && std::is_same_v<To, int32_t>)
      if (!std::in_range<int32_t>(value))
        fail(Fault::data, "{}: element {} is {}, which does not fit into 32 bits", path, i, value);
    out[i++] = static_cast<To>(value);
  });
}

template <class To>
void convert_halves(std::span<const std::byte> file, const FileOrder& order, bool swap,
                    std::span<To> out) {
  auto to = out.begin();
  order.each([&](size_t offset) { *to++ = from_f16(bits_at<uint16_t>(file, offset, swap)); });
}

// REQUIRES: `out` has the type that `code` becomes.
void convert(std::string_view code, std::span<const std::byte> file, const FileOrder& order,
             bool swap, const std::string& path, const NewTable& out) {
  const auto from = [&]<class From, class To>(From, To) {
    convert<From, To>(file, order, swap, path, out.as<To>());
  };
  if (code == "f2") return convert_halves(file, order, swap, out.as<float>());
  if (code == "f4") return from(float{}, float{});
  if (code == "f8") return from(double{}, float{});
  if (code == "i1") return from(int8_t{}, int32_t{});
  if (code == "i2") return from(int16_t{}, int32_t{});
  if (code == "i4") return from(int32_t{}, int32_t{});
  if (code == "i8") return from(int64_t{}, int32_t{});
  if (code == "u2") return from(uint16_t{}, int32_t{});
  if (code == "u4") return from(uint32_t{}, int32_t{});
  if (code == "u8") return from(uint64_t{}, int32_t{});
  return from(uint8_t{}, uint8_t{});
}

// An array whose header has been read and checked.
class NpyArray {
 public:
  explicit NpyArray(const std::string& path)
      : path_(path),
        source_(open_bytes(path)),
        header_(read_header(*source_, path)),
        type_(&type_of(header_, path)) {
    if (header_.shape.empty() || header_.shape.size() > Shape::kMaxRank)
      fail(Fault::data, "{} has {} dimensions, but 1 to {} are supported", path,
           header_.shape.size(), Shape::kMaxRank);
    shape_ = Shape(header_.shape);
    bytes_ = type_->bytes;
    bool fits = true;
    for (const int64_t d : header_.shape) {
      if (d == 0) fail(Fault::data, "{} is empty: its shape is {}", path, shape_.str());
      fits = fits && !__builtin_mul_overflow(bytes_, static_cast<uint64_t>(d), &bytes_);
    }
    if (!fits || bytes_ > source_->most_bytes())
      fail(Fault::data,
           "{}: the header announces {} elements of {} bytes, which the file cannot hold", path,
           shape_.str(), type_->bytes);
    swap_ = header_.type[0] == '>' && type_->bytes > 1;
  }

  const Shape& shape() const { return shape_; }
  const ElementType& type() const { return *type_; }

  Table table() {
    const NewTable out({type_->becomes, shape_});
    const bool fortran = header_.fortran && header_.shape.size() > 1;
    if (!swap_ && !fortran && (type_->code == "f4" || type_->code == "i4" || type_->bytes == 1) &&
        type_->code != "i1") {
      read({out.data.get(), bytes_});
    } else {
      each_byte([&](std::span<const std::byte> file, const FileOrder& order) {
        convert(type_->code, file, order, swap_, path_, out);
      });
    }
    return NewTable(out).done();
  }

  // REQUIRES: type().becomes is f32.
  std::vector<double> doubles() {
    std::vector<double> out(static_cast<size_t>(shape_.elements()));
    const std::span<double> to(out);
    each_byte([&](std::span<const std::byte> file, const FileOrder& order) {
      if (type_->code == "f2")
        convert_halves(file, order, swap_, to);
      else if (type_->code == "f4")
        convert<float>(file, order, swap_, path_, to);
      else
        convert<double>(file, order, swap_, path_, to);
    });
    return out;
  }

 private:
  void read(std::span<std::byte> to) {
    source_->read(to, fmt::format("{} elements", shape_.str()));
    source_->expect_end();
  }
  template <class F>
  void each_byte(F&& f) {
    const std::shared_ptr<std::byte[]> file = allocate_bytes(bytes_);
    read({file.get(), bytes_});
    f(std::span<const std::byte>(file.get(), bytes_), FileOrder(shape_, header_.fortran));
  }

  const std::string& path_;
  std::unique_ptr<ByteSource> source_;
  Header header_;
  const ElementType* type_;
  Shape shape_;
  uint64_t bytes_ = 0;
  bool swap_ = false;
};

}  // namespace

Table read_npy(const std::string& path) { return NpyArray(path).table(); }

NpyValues read_npy_values(const std::string& path) {
  NpyArray array(path);
  if (array.type().becomes != DType::f32) return {.shape = array.shape(), .values = {}};
  return {.shape = array.shape(), .values = array.doubles()};
}

TensorDesc npy_desc(const std::string& path) {
  const NpyArray array(path);
  return {array.type().becomes, array.shape()};
}

}  // namespace dpt
