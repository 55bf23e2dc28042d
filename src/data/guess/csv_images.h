// Tables that name image files: how to turn them into folders or arrays, which can be trained on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/column_profile.h"

namespace dpt {

// Whether all texts of the column end as image files do.
bool names_images(const ColumnProfile& column);

struct ImageTable {
  std::string path;
  char delimiter = ',';
  bool header = false;
  size_t images = 0;            // the column of file names
  std::vector<size_t> targets;  // columns; not empty
  bool classes = false;         // the only target is a class
};

// A command that copies the images into a folder for each class, or, for values, writes arrays, and
// what to do then. image: one of the names.
std::string image_table_remedy(const ImageTable& table, const std::string& image);

}  // namespace dpt
