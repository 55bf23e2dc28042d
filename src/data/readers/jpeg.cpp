#include "data/readers/image_formats.h"

#if DPT_JPEG
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jerror.h>
#include <jpeglib.h>
#endif

namespace dpt {

#if DPT_JPEG

namespace {

// libjpeg reports errors by longjmp(), which skips destructors. Objects that need destruction
// therefore belong to the callers of the functions that call setjmp().
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

}  // namespace

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& path) {
  Jpeg jpeg(bytes);
  if (!jpeg.header()) damaged_image(path, "JPEG", jpeg.why());
  check_image_size(jpeg.height(), jpeg.width(), bytes.size(), path, "JPEG");
  Image image = new_image(jpeg.height(), jpeg.width());
  std::vector<uint8_t> row(jpeg.row_bytes());
  if (!jpeg.pixels(image.pixels.data(), row.data())) damaged_image(path, "JPEG", jpeg.why());
  return image;
}

#else

Image decode_jpeg(std::span<const std::byte>, const std::string& path) {
  damaged_image(path, "JPEG",
                "this dptrain was built without libjpeg-turbo (tools/setup.sh installs it)");
}

#endif

bool reads_jpeg() { return DPT_JPEG != 0; }

}  // namespace dpt
