// Tables that name image files: which column does, and where the files are.
#pragma once

#include <optional>
#include <string>

#include "data/guess/csv_columns.h"

namespace dpt {

// Whether all texts of the column end as image files do.
bool names_images(const ColumnProfile& column);

// A column that names image files.
struct ImageColumn {
  size_t column = 0;
  std::string folder;   // what the names are relative to
  std::string ending;   // ".jpg" if the names lack it
  std::string first;    // "'img0' on line 2"
  bool exists = false;  // most of the files
};

// The column that names images, if the images are the inputs: most of its names are files in the
// table's folder or in one beside it, with or without their ending, or it is the only input. Throws
// Error{data} if the files of an only input do not exist.
std::optional<ImageColumn> images_of(const ScannedColumns& t, const CsvFormat& format,
                                     const std::string& path);

// Makes the guess that of an `image_table`. REQUIRES: it has the settings of the sets and targets.
void add_images(DataGuess& g, const ScannedColumns& t, const ImageColumn& images,
                const CsvFormat& format, const std::string& path);

}  // namespace dpt
