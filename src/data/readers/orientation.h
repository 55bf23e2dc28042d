// Which way up an image is to be shown: the orientation tag of EXIF and TIFF.
#pragma once

#include <cstddef>
#include <span>

#include "data/readers/image.h"

namespace dpt {

// The orientation, 1 to 8, in the EXIF data of a JPEG, PNG or WebP file, of which `bytes` may be
// the beginning, or else in its XMP data, as Pillow reads them; 1, as stored, if there is none, if
// it is damaged, and for other files.
int exif_orientation(std::span<const std::byte> bytes);

// Whether an image of this orientation is stored with its sides exchanged.
inline bool exchanges_sides(int orientation) { return orientation >= 5 && orientation <= 8; }

// The image as it is to be shown, as by Pillow's ImageOps.exif_transpose().
Image upright(Image image, int orientation);

}  // namespace dpt
