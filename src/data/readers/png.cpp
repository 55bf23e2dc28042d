#include "data/readers/image_formats.h"

#if DPT_PNG
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <png.h>

#include "base/fail.h"
#endif

namespace dpt {

#if DPT_PNG

namespace {

// libpng reports errors by longjmp(), which skips destructors. Objects that need destruction
// therefore belong to the callers of the functions that call setjmp().
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
    passes_ = png_set_interlace_handling(png_);
    png_set_read_user_transform_fn(png_, row_read);
    rows_to_come_ = stored_rows();
    png_read_update_info(png_, info_);
    return true;
  }
  uint64_t height() const { return png_get_image_height(png_, info_); }
  uint64_t width() const { return png_get_image_width(png_, info_); }
  size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  bool grey16() const { return grey16_; }  // rows have two bytes per pixel, the upper one first

  // Data that follow the last row are ignored, as by PIL.
  bool pixels(uint8_t** rows) {
    switch (setjmp(back_)) {  // NOLINT(cert-err52-cpp)
      case 0:
        break;
      case kSurplus:
        return true;
      default:
        return false;
    }
    for (int pass = 0; pass < passes_; ++pass)
      for (uint64_t y = 0; y < height(); ++y) png_read_row(png_, rows[y], nullptr);
    rows_to_come_ = kNone;
    png_read_end(png_, nullptr);
    return true;
  }
  const char* why() const { return message_; }

 private:
  [[noreturn]] static void failed(png_structp png, png_const_charp message) {
    auto* self = static_cast<Png*>(png_get_error_ptr(png));
    std::snprintf(self->message_, sizeof self->message_, "%s", message);
    std::longjmp(self->back_, kFailed);  // NOLINT(cert-err52-cpp)
  }
  static void read(png_structp png, png_bytep to, png_size_t bytes) {
    auto* self = static_cast<Png*>(png_get_io_ptr(png));
    if (bytes > self->rest_.size()) png_error(png, "the file ends too early");
    // libpng inflates whatever follows the last row, which may be a thousand times as large.
    if (self->rows_to_come_ == 0 && (self->surplus_ += bytes) > kMostSurplus)
      std::longjmp(self->back_, kSurplus);  // NOLINT(cert-err52-cpp)
    std::memcpy(to, self->rest_.data(), bytes);
    self->rest_ = self->rest_.subspan(bytes);
  }
  // libpng calls it for each row of the file that it has inflated.
  static void row_read(png_structp png, png_row_infop, png_bytep) {
    --static_cast<Png*>(png_get_io_ptr(png))->rows_to_come_;
  }
  // An interlaced image has the rows of seven smaller ones, of which some may be empty.
  uint64_t stored_rows() const {
    if (passes_ == 1) return height();
    uint64_t out = 0;
    for (int pass = 0; pass < passes_; ++pass)
      if (PNG_PASS_COLS(png_get_image_width(png_, info_), pass) > 0)
        out += PNG_PASS_ROWS(png_get_image_height(png_, info_), pass);
    return out;
  }

  static constexpr int kFailed = 1, kSurplus = 2;  // what longjmp() hands over
  static constexpr uint64_t kNone = ~uint64_t{0};
  static constexpr uint64_t kMostSurplus = 16384;

  std::span<const std::byte> rest_;
  std::jmp_buf back_{};
  char message_[200] = {};
  bool grey16_ = false;
  int passes_ = 1;
  // Rows of the file whose data are not read yet, and bytes that were read after the last one.
  uint64_t rows_to_come_ = kNone, surplus_ = 0;
  png_structp png_;
  png_infop info_;
};

// PIL reads 16-bit gray as integers and clips them to 255. Works in place, from the end.
void widen_grey16(uint8_t* row, int64_t width) {
  for (int64_t x = width - 1; x >= 0; --x)
    std::fill_n(row + 3 * x, 3, row[2 * x] != 0 ? uint8_t{255} : row[2 * x + 1]);
}

}  // namespace

Image decode_png(std::span<const std::byte> bytes, const std::string& path) {
  Png png(bytes);
  if (!png.header()) damaged_image(path, "PNG", png.why());
  check_image_size(png.height(), png.width(), bytes.size(), path, "PNG");
  Image image = new_image(png.height(), png.width());
  const size_t row = static_cast<size_t>(image.width) * 3;
  require(png.row_bytes() == (png.grey16() ? row / 3 * 2 : row), "libpng gives whole pixels");
  std::vector<uint8_t*> rows;
  for (size_t y = 0; y < png.height(); ++y) rows.push_back(image.pixels.data() + y * row);
  if (!png.pixels(rows.data())) damaged_image(path, "PNG", png.why());
  if (png.grey16())
    for (uint8_t* each : rows) widen_grey16(each, image.width);
  return image;
}

#else

Image decode_png(std::span<const std::byte>, const std::string& path) {
  damaged_image(path, "PNG", "this dptrain was built without libpng (tools/setup.sh installs it)");
}

#endif

bool reads_png() { return DPT_PNG != 0; }

}  // namespace dpt
