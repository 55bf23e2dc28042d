// Tables that name image files: how to turn them into folders or arrays, which can be trained on.
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

struct ImageTable {
  std::string path;
  char delimiter = ',';
  bool header = false;
  ImageColumn images{};
  std::vector<size_t> targets;             // columns; not empty
  bool classes = false;                    // the only target is a class
  std::vector<std::string> class_names{};  // texts of the classes that are no numbers
};

// A command that copies the images into a folder for each class, or, for values, writes arrays, and
// what to do then.
std::string image_table_remedy(const ImageTable& table);

}  // namespace dpt
