#include "data/readers/image.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#if DPT_JPEG
#include <jerror.h>
#include <jpeglib.h>
#endif
#if DPT_PNG
#include <png.h>
#endif

#include "base/fail.h"

namespace dpt {
namespace {

// PIL's limit against decompression bombs: twice a quarter of a gigabyte divided by three bytes.
constexpr uint64_t kMostPixels = 178956970;

[[noreturn]] void broken(const std::string& path, std::string_view what, std::string_view why) {
  fail(Fault::data, "{} cannot be read as {}: {}. Fetch the file again, or remove it.", path, what,
       why);
}

// Upper bound of pixels per byte of a file: deflate expands a byte to at most 1032 bytes of 8
// pixels each, and JPEG expands less.
constexpr uint64_t kMostOfByte = 8 * 1032;

Image image_of(uint64_t height, uint64_t width, size_t bytes, const std::string& path,
               std::string_view what) {
  if (height == 0 || width == 0 || height > std::min(kMostPixels, bytes * kMostOfByte) / width)
    broken(path, what,
           fmt::format("its header announces {} x {} pixels, which its {} bytes can't hold", width,
                       height, bytes));
  return {.height = static_cast<int64_t>(height),
          .width = static_cast<int64_t>(width),
          .pixels = std::vector<uint8_t>(height * width * 3)};
}

// Both libraries report errors by longjmp(), which skips destructors. Objects that need destruction
// therefore belong to the callers of the functions that call setjmp().

#if DPT_JPEG

class Jpeg {
 public:
  explicit Jpeg(std::span<const std::byte> bytes) : bytes_(bytes) {
    state_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = failed;
    errors_.base.emit_message = warned;
    errors_.base.output_message = [](j_common_ptr) {};
  }
  ~Jpeg() { jpeg_destroy_decompress(&state_); }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  bool header() {
    if (setjmp(errors_.back) != 0) return false;  // NOLINT(cert-err52-cpp)
    jpeg_create_decompress(&state_);
    jpeg_mem_src(&state_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    jpeg_read_header(&state_, TRUE);
    inks_ = state_.jpeg_color_space == JCS_CMYK || state_.jpeg_color_space == JCS_YCCK;
    state_.out_color_space = inks_ ? JCS_CMYK : JCS_RGB;
    return true;
  }
  uint64_t height() const { return state_.image_height; }
  uint64_t width() const { return state_.image_width; }
  size_t row_bytes() const { return size_t{state_.image_width} * (inks_ ? 4 : 3); }

  // `row` has room for row_bytes(). NOLINTNEXTLINE(readability-make-member-function-const)
  bool pixels(uint8_t* out, uint8_t* row) {
    if (setjmp(errors_.back) != 0) return false;  // NOLINT(cert-err52-cpp)
    jpeg_start_decompress(&state_);
    while (state_.output_scanline < state_.output_height) {
      uint8_t* const to = out + size_t{state_.output_scanline} * state_.output_width * 3;
      jpeg_read_scanlines(&state_, &row, 1);
      if (inks_)
        from_inks(row, state_.output_width, to);
      else
        std::memcpy(to, row, size_t{state_.output_width} * 3);
    }
    jpeg_finish_decompress(&state_);
    return true;
  }
  const char* why() const { return errors_.message; }

 private:
  struct Errors {
    jpeg_error_mgr base;
    std::jmp_buf back;
    char message[JMSG_LENGTH_MAX];
  };
  [[noreturn]] static void failed(j_common_ptr state) {
    auto* errors = reinterpret_cast<Errors*>(state->err);
    state->err->format_message(state, errors->message);
    std::longjmp(errors->back, 1);  // NOLINT(cert-err52-cpp)
  }
  // Like PIL, ignores damage, except for a premature end of the file.
  static void warned(j_common_ptr state, int level) {
    if (level < 0 && state->err->msg_code == JWRN_JPEG_EOF) failed(state);
  }
  // Converts CMYK by Adobe's convention (255 is no ink) with PIL's arithmetic.
  static void from_inks(const uint8_t* from, size_t width, uint8_t* to) {
    for (size_t x = 0; x < width; ++x, from += 4)
      for (size_t i = 0; i < 3; ++i) {
        const int key = from[3], product = (255 - from[i]) * key + 128;
        *to++ = static_cast<uint8_t>(std::max(0, key - (((product >> 8) + product) >> 8)));
      }
  }

  std::span<const std::byte> bytes_;
  jpeg_decompress_struct state_{};
  Errors errors_{};
  bool inks_ = false;
};

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& path) {
  Jpeg jpeg(bytes);
  if (!jpeg.header()) broken(path, "JPEG", jpeg.why());
  Image image = image_of(jpeg.height(), jpeg.width(), bytes.size(), path, "JPEG");
  std::vector<uint8_t> row(jpeg.row_bytes());
  if (!jpeg.pixels(image.pixels.data(), row.data())) broken(path, "JPEG", jpeg.why());
  return image;
}

#else

Image decode_jpeg(std::span<const std::byte>, const std::string& path) {
  broken(path, "JPEG", "this dptrain was built without libjpeg-turbo (tools/setup.sh installs it)");
}

#endif

#if DPT_PNG

class Png {
 public:
  explicit Png(std::span<const std::byte> bytes)
      : rest_(bytes),
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, failed,
                                    [](png_structp, png_const_charp) {})),
        info_(png_ != nullptr ? png_create_info_struct(png_) : nullptr) {
    if (info_ == nullptr) fail(Fault::memory, "libpng does not start");
  }
  ~Png() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  bool header() {
    if (setjmp(back_) != 0) return false;  // NOLINT(cert-err52-cpp)
    png_set_read_fn(png_, this, read);
    png_read_info(png_, info_);
    png_set_palette_to_rgb(png_);
    const int type = png_get_color_type(png_, info_);
    grey16_ = type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png_, info_) == 16;
    if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    if ((type & PNG_COLOR_MASK_COLOR) == 0 && !grey16_) png_set_gray_to_rgb(png_);
    if (!grey16_) png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }
  uint64_t height() const { return png_get_image_height(png_, info_); }
  uint64_t width() const { return png_get_image_width(png_, info_); }
  size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  bool grey16() const { return grey16_; }  // rows have two bytes per pixel, the upper one first

  bool pixels(uint8_t** rows) {
    if (setjmp(back_) != 0) return false;  // NOLINT(cert-err52-cpp)
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }
  const char* why() const { return message_; }

 private:
  [[noreturn]] static void failed(png_structp png, png_const_charp message) {
    auto* self = static_cast<Png*>(png_get_error_ptr(png));
    std::snprintf(self->message_, sizeof self->message_, "%s", message);
    std::longjmp(self->back_, 1);  // NOLINT(cert-err52-cpp)
  }
  static void read(png_structp png, png_bytep to, png_size_t bytes) {
    auto* self = static_cast<Png*>(png_get_io_ptr(png));
    if (bytes > self->rest_.size()) png_error(png, "the file ends too early");
    std::memcpy(to, self->rest_.data(), bytes);
    self->rest_ = self->rest_.subspan(bytes);
  }

  std::span<const std::byte> rest_;
  std::jmp_buf back_{};
  char message_[200] = {};
  bool grey16_ = false;
  png_structp png_;
  png_infop info_;
};

// PIL reads 16-bit gray as integers and clips them to 255. Works in place, from the end.
void widen_grey16(uint8_t* row, int64_t width) {
  for (int64_t x = width - 1; x >= 0; --x)
    std::fill_n(row + 3 * x, 3, row[2 * x] != 0 ? uint8_t{255} : row[2 * x + 1]);
}

Image decode_png(std::span<const std::byte> bytes, const std::string& path) {
  Png png(bytes);
  if (!png.header()) broken(path, "PNG", png.why());
  Image image = image_of(png.height(), png.width(), bytes.size(), path, "PNG");
  const size_t row = static_cast<size_t>(image.width) * 3;
  require(png.row_bytes() == (png.grey16() ? row / 3 * 2 : row), "libpng gives whole pixels");
  std::vector<uint8_t*> rows;
  for (size_t y = 0; y < png.height(); ++y) rows.push_back(image.pixels.data() + y * row);
  if (!png.pixels(rows.data())) broken(path, "PNG", png.why());
  if (png.grey16())
    for (uint8_t* each : rows) widen_grey16(each, image.width);
  return image;
}

#else

Image decode_png(std::span<const std::byte>, const std::string& path) {
  broken(path, "PNG", "this dptrain was built without libpng (tools/setup.sh installs it)");
}

#endif

bool begins(std::span<const std::byte> bytes, std::string_view with) {
  return bytes.size() >= with.size() && std::memcmp(bytes.data(), with.data(), with.size()) == 0;
}

}  // namespace

bool is_image_ending(std::string_view extension) {
  const auto same = [&](std::string_view known) {
    return std::ranges::equal(extension, known, [](char a, char b) {
      return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
    });
  };
  return same(".jpg") || same(".jpeg") || same(".png");
}

bool reads_jpeg() { return DPT_JPEG != 0; }
bool reads_png() { return DPT_PNG != 0; }

Image decode_image(std::span<const std::byte> bytes, const std::string& path) {
  if (begins(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes, path);
  if (begins(bytes, "\x89PNG\r\n\x1a\n")) return decode_png(bytes, path);
  fail(Fault::data, "{} is neither a JPEG nor a PNG image, despite its name; remove it", path);
}

}  // namespace dpt
