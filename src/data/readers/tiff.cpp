#include "data/readers/image_formats.h"

#if DPT_TIFF
#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <tiffio.h>

#include "base/fail.h"
#include "base/units.h"
#include "data/readers/orientation.h"
#endif

namespace dpt {

#if DPT_TIFF

namespace {

// A file in memory, and libtiff's first message about it.
struct Source {
  std::span<const std::byte> bytes;
  uint64_t at = 0;
  char message[300] = "libtiff does not say why";
  bool failed = false;
};

tmsize_t read(thandle_t handle, void* to, tmsize_t count) {
  auto& source = *static_cast<Source*>(handle);
  const uint64_t rest = source.bytes.size() - std::min(source.at, uint64_t{source.bytes.size()});
  const uint64_t n = std::min(static_cast<uint64_t>(count), rest);
  if (n > 0) std::memcpy(to, source.bytes.data() + source.at, n);
  source.at += n;
  return static_cast<tmsize_t>(n);
}
tmsize_t write(thandle_t, void*, tmsize_t) { return -1; }
toff_t seek(thandle_t handle, toff_t offset, int from) {
  auto& source = *static_cast<Source*>(handle);
  source.at = offset + (from == SEEK_SET ? 0 : from == SEEK_CUR ? source.at : source.bytes.size());
  return source.at;
}
int close(thandle_t) { return 0; }
toff_t size(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }

int failed(TIFF*, void* data, const char*, const char* format, va_list values) {
  auto& source = *static_cast<Source*>(data);
  // With the number of a row that may be none.
  if (std::strstr(format, "Read error at") != nullptr) format = "the file ends too early";
  if (!source.failed) std::vsnprintf(source.message, sizeof source.message, format, values);
  source.failed = true;
  return 1;  // without it, libtiff prints the message
}
// Without the values of a tag, libtiff goes on with others: a palette's image would become gray.
int warned(TIFF* tiff, void* data, const char* module, const char* format, va_list values) {
  const bool cut = std::strstr(format, "IO error during reading") != nullptr;
  return cut ? failed(tiff, data, module, "the file ends too early", values) : 1;
}

std::string color_space(uint16_t photometric) {
  switch (photometric) {
    case PHOTOMETRIC_SEPARATED:
      return "in CMYK colors";
    case PHOTOMETRIC_YCBCR:
      return "in YCbCr colors without JPEG compression";
    case PHOTOMETRIC_CIELAB:
      return "in Lab colors";
    default:
      return fmt::format("with color space {}", photometric);
  }
}

using Color = std::array<uint8_t, 3>;

// The first page of a file.
class Tiff {
 public:
  Tiff(std::span<const std::byte> bytes, const std::string& path)
      : source_{.bytes = bytes}, path_(path) {
    const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(
        TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
    if (!options) fail(Fault::memory, "libtiff does not start");
    TIFFOpenOptionsSetErrorHandlerExtR(options.get(), failed, &source_);
    TIFFOpenOptionsSetWarningHandlerExtR(options.get(), warned, &source_);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(),
                                        static_cast<tmsize_t>(bytes.size() + 64 * kMiB));
    // 'm': without mapping the file.
    tiff_.reset(TIFFClientOpenExt("image", "rm", &source_, read, write, seek, close, size, nullptr,
                                  nullptr, options.get()));
    if (!tiff_ || source_.failed) damaged();
    TIFFGetField(tiff_.get(), TIFFTAG_IMAGEWIDTH, &width_);
    TIFFGetField(tiff_.get(), TIFFTAG_IMAGELENGTH, &height_);
    check_size(height_, width_);
    bits_ = field(TIFFTAG_BITSPERSAMPLE);
    samples_ = field(TIFFTAG_SAMPLESPERPIXEL);
    separate_ = field(TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE;
    photometric_ = field(TIFFTAG_PHOTOMETRIC);
    check_compression();
    check_samples();
    make_colors();
  }

  Image pixels() {
    Image image = new_image(height_, width_);
    const Blocks blocks = find_blocks();
    std::vector<uint8_t> block(blocks.row_bytes * blocks.rows);
    const int planes = separate_ && is_rgb() ? 3 : 1;
    for (int plane = 0; plane < planes; ++plane)
      for (uint64_t y = 0; y < height_; y += blocks.rows)
        for (uint64_t x = 0; x < width_; x += blocks.columns) {
          const auto top = static_cast<uint32_t>(y), left = static_cast<uint32_t>(x);
          read_block(blocks, top, left, plane, block);
          put(blocks, block, top, left, plane, image);
        }
    return upright(std::move(image), field(TIFFTAG_ORIENTATION));  // as PIL does, for TIFF alone
  }

 private:
  [[noreturn]] void damaged() const { damaged_image(path_, "TIFF", source_.message); }
  [[noreturn]] void unsupported(const std::string& variant) const {
    unsupported_image(path_, "TIFF", variant);
  }

  // Tiles, or strips, which are as wide as the image.
  struct Blocks {
    bool tiled = false;
    uint32_t rows = 0, columns = 0;
    uint64_t row_bytes = 0;
  };
  Blocks find_blocks() const {
    TIFF* const tiff = tiff_.get();
    Blocks out{.tiled = TIFFIsTiled(tiff) != 0, .rows = height_, .columns = width_};
    if (out.tiled) {
      TIFFGetField(tiff, TIFFTAG_TILELENGTH, &out.rows);
      TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &out.columns);
    } else {
      TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &out.rows);
      out.rows = std::min(out.rows, height_);
    }
    check_size(out.rows, out.columns);
    out.row_bytes = out.tiled ? TIFFTileRowSize64(tiff) : TIFFScanlineSize64(tiff);
    const uint64_t samples = uint64_t{out.columns} * (separate_ ? 1 : samples_);
    if (out.row_bytes != (samples * bits_ + 7) / 8) damaged();
    return out;
  }

  // Reads and decompresses a tile or strip.
  void read_block(const Blocks& blocks, uint32_t top, uint32_t left, int plane,
                  std::span<uint8_t> out) const {
    TIFF* const tiff = tiff_.get();
    const auto sample = static_cast<uint16_t>(plane);
    const uint32_t index = blocks.tiled ? TIFFComputeTile(tiff, left, top, 0, sample)
                                        : TIFFComputeStrip(tiff, top, sample);
    if (TIFFGetStrileOffset(tiff, index) == 0)
      damaged_image(path_, "TIFF", "a part of its pixels is missing");
    const uint32_t rows = blocks.tiled ? blocks.rows : std::min(blocks.rows, height_ - top);
    const auto bytes = static_cast<tmsize_t>(rows * blocks.row_bytes);
    const tmsize_t got = blocks.tiled ? TIFFReadEncodedTile(tiff, index, out.data(), bytes)
                                      : TIFFReadEncodedStrip(tiff, index, out.data(), bytes);
    if (got != bytes) damaged();
  }

  // Converts the pixels of a tile or strip that are in the image.
  void put(const Blocks& blocks, std::span<const uint8_t> block, uint32_t top, uint32_t left,
           int plane, Image& image) const {
    const size_t rows = std::min(blocks.rows, height_ - top),
                 columns = std::min(blocks.columns, width_ - left);
    for (size_t y = 0; y < rows; ++y)
      put_row(block.data() + y * blocks.row_bytes, columns, plane,
              image.pixels.data() + ((top + y) * width_ + left) * 3);
  }
  void put_row(const uint8_t* row, size_t count, int plane, uint8_t* to) const {
    const size_t step = separate_ ? 1 : samples_;
    for (size_t x = 0; x < count; ++x, to += 3) {
      if (is_rgb() && separate_) {
        to[plane] = row[x];
      } else if (is_rgb()) {
        std::copy_n(row + x * step, 3, to);
      } else {
        const size_t bit = x * step * bits_, shift = 8 - bits_ - bit % 8;
        std::ranges::copy(colors_[row[bit / 8] >> shift & ((1U << bits_) - 1)], to);
      }
    }
  }

  // 0 if a tag without default is missing, as in PIL.
  uint16_t field(uint32_t tag) const {
    uint16_t value = 0;
    TIFFGetFieldDefaulted(tiff_.get(), tag, &value);
    return value;
  }
  // The size is that of the image, or of a part of it. CCITT codes a row that equals the one above
  // in a bit or two.
  void check_size(uint64_t rows, uint64_t columns) const {
    const uint16_t compression = field(TIFFTAG_COMPRESSION);
    const bool ccitt = compression == COMPRESSION_CCITTFAX3 || compression == COMPRESSION_CCITTFAX4;
    const uint64_t bytes = source_.bytes.size();
    check_image_size(rows, columns, bytes, path_, "TIFF",
                     std::max(kPixelsOfAnyFile, ccitt ? 8 * bytes * columns : 0));
  }
  bool is_rgb() const { return photometric_ == PHOTOMETRIC_RGB; }

  void check_compression() {
    constexpr uint16_t kKnown[] = {
        COMPRESSION_NONE,     COMPRESSION_LZW,       COMPRESSION_ADOBE_DEFLATE,
        COMPRESSION_DEFLATE,  COMPRESSION_PACKBITS,  COMPRESSION_JPEG,
        COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3, COMPRESSION_CCITTFAX4};
    const uint16_t compression = field(TIFFTAG_COMPRESSION);
    if (std::ranges::find(kKnown, compression) == std::end(kKnown) ||
        TIFFIsCODECConfigured(compression) == 0)
      unsupported(fmt::format("with compression {}", compression));
    // libjpeg converts to RGB.
    if (compression == COMPRESSION_JPEG && photometric_ == PHOTOMETRIC_YCBCR && !separate_) {
      TIFFSetField(tiff_.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
      photometric_ = PHOTOMETRIC_RGB;
    }
  }

  void check_samples() const {
    if (field(TIFFTAG_SAMPLEFORMAT) != SAMPLEFORMAT_UINT)
      unsupported("whose samples are not unsigned integers");
    const bool gray =
        photometric_ == PHOTOMETRIC_MINISWHITE || photometric_ == PHOTOMETRIC_MINISBLACK;
    if (!gray && !is_rgb() && photometric_ != PHOTOMETRIC_PALETTE)
      unsupported(color_space(photometric_));
    const bool few = (bits_ == 1 || bits_ == 2 || bits_ == 4) && samples_ == 1 && !is_rgb();
    if (samples_ < (is_rgb() ? 3 : 1) || samples_ > (is_rgb() ? 6 : 2))
      unsupported_image(
          path_, "TIFF", fmt::format("with {} samples per pixel", samples_),
          "save such images as one array by numpy.save, [N, channels, height, width], and train "
          "with the dataset `npy`");
    if (bits_ == 16 && gray)
      unsupported_image(path_, "TIFF", "with 16-bit samples",
                        fmt::format("save it with 8 bits: {}", kTo8Bits));
    if (bits_ != 8 && !few) unsupported(fmt::format("with {}-bit samples", bits_));
    uint16_t extra = 0;
    const uint16_t* kinds = nullptr;
    TIFFGetFieldDefaulted(tiff_.get(), TIFFTAG_EXTRASAMPLES, &extra, &kinds);
    if (extra > 0 && kinds[0] == EXTRASAMPLE_ASSOCALPHA)
      unsupported("with premultiplied transparency");
  }

  // Fills colors_ for gray and palette images.
  void make_colors() {
    if (is_rgb()) return;
    const size_t count = size_t{1} << bits_;
    const uint16_t* map[3] = {};
    if (photometric_ == PHOTOMETRIC_PALETTE &&
        TIFFGetField(tiff_.get(), TIFFTAG_COLORMAP, &map[0], &map[1], &map[2]) == 0)
      damaged_image(path_, "TIFF", "it has no palette");
    for (size_t i = 0; i < count; ++i) {
      const auto gray = static_cast<uint8_t>(i * 255 / (count - 1));
      for (size_t c = 0; c < 3; ++c)
        colors_[i][c] = photometric_ == PHOTOMETRIC_PALETTE ? static_cast<uint8_t>(map[c][i] >> 8)
                        : photometric_ == PHOTOMETRIC_MINISWHITE ? static_cast<uint8_t>(255 - gray)
                                                                 : gray;
    }
  }

  Source source_;
  const std::string& path_;
  std::unique_ptr<TIFF, void (*)(TIFF*)> tiff_{nullptr, TIFFClose};
  uint32_t height_ = 0, width_ = 0;
  uint16_t bits_ = 0, samples_ = 0, photometric_ = 0;
  bool separate_ = false;  // each sample of a pixel in a plane of its own
  std::array<Color, 256> colors_{};
};

}  // namespace

Image decode_tiff(std::span<const std::byte> bytes, const std::string& path) {
  return Tiff(bytes, path).pixels();
}

#else

Image decode_tiff(std::span<const std::byte>, const std::string& path) {
  damaged_image(path, "TIFF",
                "this dptrain was built without libtiff (tools/setup.sh installs it)");
}

#endif

bool reads_tiff() { return DPT_TIFF != 0; }

}  // namespace dpt
