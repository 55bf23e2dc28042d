// The decoders of image files, each in a file of its own, and what they share. image.cpp picks one
// by a file's first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/readers/image.h"

namespace dpt {

// Each decodes a whole file. `path` is for messages. Throws as decode_image() does.
Image decode_jpeg(std::span<const std::byte> bytes, const std::string& path);
Image decode_png(std::span<const std::byte> bytes, const std::string& path);

// Throws Error{data}: the file cannot be read as `format`.
[[noreturn]] void damaged_image(const std::string& path, std::string_view format,
                                std::string_view why);

// A black image of the size in a file's header. Throws Error{data} if a side is 0, or if the size
// exceeds PIL's limit or what a file of so many bytes can hold.
Image new_image(uint64_t height, uint64_t width, size_t file_bytes, const std::string& path,
                std::string_view format);

}  // namespace dpt
