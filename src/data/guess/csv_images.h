// Tables that name image files: which column does, and where the files are.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

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
  bool exists = false;  // the first file
};

// The column whose first fields are names of files, with or without their ending, in the table's
// folder or in one beside it; else the first column whose texts end as images do.
std::optional<ImageColumn> find_image_column(const ScannedColumns& t, const CsvFormat& format,
                                             const std::string& path);

// The names in this column, with the folder and the ending.
std::vector<std::string> files_named(const ImageColumn& images, const CsvFormat& format,
                                     const std::string& path);

// Where the images of another table lie, whose columns are the same: in a folder beside it; empty:
// none is found.
std::string folder_of_images(const ImageColumn& images, const CsvFormat& format,
                             const std::string& path);

}  // namespace dpt
