// How images in files become samples, for every data set that reads such files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/readers/image.h"
#include "spec/keys.h"

namespace dpt {

// Images are resized like torchvision's Resize of a PIL image and cropped like its CenterCrop, with
// the results of Pillow 13. A settings struct of a data set has it as a base.
struct ImageReading {
  std::vector<int64_t> resize, crop;  // none, one for the shorter side or a square, or two
  bool exif = false;
  std::string on_error = "error";

  template <class Config>
  static KeyTable<Config>& add_keys(KeyTable<Config>& table);
  static void check(const ImageReading& r, const Owner& owner, Diagnostics& d);
  bool skips() const { return on_error == "skip"; }
  // Whether the size of samples is that of the files.
  bool sized_by_files() const { return crop.empty() && resize.size() < 2; }

  static constexpr Range kSide{.text = "must be between 1 and 16384", .low = 1, .high = 16384};
};

// The size of all samples. Reads the header of each file if the settings do not give it. Throws
// Error{data} if files differ. REQUIRES: there is a file.
ImageSize sample_size(const ImageReading& r, const std::vector<std::string>& files);

// Decodes each image once, and leaves out files that cannot be read; a warning says why. Returns
// the former numbers of those that stay.
std::vector<size_t> leave_out_damaged(const ImageReading& r, std::vector<std::string>& files,
                                      std::vector<std::string>& warnings);

// Makes samples u8 [3, height, width] of image files, decoded on demand.
std::shared_ptr<const SampleReader> image_files_reader(const ImageReading& r,
                                                       std::vector<std::string> files,
                                                       const ImageSize& sample);

template <class Config>
KeyTable<Config>& ImageReading::add_keys(KeyTable<Config>& table) {
  return table
      .optional("resize", &ImageReading::resize,
                "new length of the shorter side, or [height, width]; by default images keep "
                "their size. Resampled as by Pillow 13",
                kSide)
      .shared()
      .optional("crop", &ImageReading::crop,
                "height and width of the center crop after resizing, or one number for both; "
                "by default no crop. Without a crop, all images must have one size, unless "
                "'resize' gives height and width",
                kSide)
      .shared()
      .optional("exif", &ImageReading::exif,
                "whether images are turned as their EXIF orientation says, as by Pillow's "
                "ImageOps.exif_transpose; torchvision's ImageFolder reads them as stored")
      .shared()
      .choice("on_error", &ImageReading::on_error, {"error", "skip"},
              "what happens to images that cannot be read: an error when training reaches one, "
              "or all images are decoded once before training, and those are left out and named");
}

}  // namespace dpt
