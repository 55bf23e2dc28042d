#include "data/readers/image_formats.h"

#if DPT_WEBP
#include <webp/decode.h>

#include "base/fail.h"
#endif

namespace dpt {

#if DPT_WEBP

namespace {

std::string_view text_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "the file ends too early";
    case VP8_STATUS_OUT_OF_MEMORY:
      return "there is too little memory";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "libwebp does not know its variant of the format";
    default:
      return "its data are damaged";
  }
}

// The size of the whole file that its header announces.
uint64_t announced_bytes(std::span<const std::byte> bytes) {
  return little_endian_at(bytes, 4, 4) + 8;
}

}  // namespace

Image decode_webp(std::span<const std::byte> bytes, const std::string& path) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) fail(Fault::memory, "libwebp does not start");
  VP8StatusCode status = WebPGetFeatures(data, bytes.size(), &config.input);
  if (status != VP8_STATUS_OK) damaged_image(path, "WebP", text_of(status));
  if (config.input.has_animation != 0) unsupported_image(path, "WebP", "with an animation");
  if (announced_bytes(bytes) > bytes.size()) damaged_image(path, "WebP", "the file ends too early");
  const auto height = static_cast<uint64_t>(config.input.height),
             width = static_cast<uint64_t>(config.input.width);
  check_image_size(height, width, bytes.size(), path, "WebP", kPixelsOfAnyFile);
  Image image = new_image(height, width);
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {.rgba = image.pixels.data(),
                          .stride = static_cast<int>(width * 3),
                          .size = image.pixels.size()};
  status = WebPDecode(data, bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) damaged_image(path, "WebP", text_of(status));
  return image;
}

#else

Image decode_webp(std::span<const std::byte>, const std::string& path) {
  damaged_image(path, "WebP",
                "this dptrain was built without libwebp (tools/setup.sh installs it)");
}

#endif

bool reads_webp() { return DPT_WEBP != 0; }

}  // namespace dpt
