// Reads the binary files of CIFAR-10 and CIFAR-100 (Krizhevsky 2009).
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"

namespace dpt {

// The files and the record format of one of the two data sets.
struct CifarFormat {
  std::string name;                      // "cifar10"
  std::string archive;                   // "cifar-10-binary.tar"; a .gz is found, too
  std::string folder;                    // inside the archive
  std::vector<std::string> train, test;  // file names
  size_t labels = 1;                     // label bytes in front of a record's pixels
  size_t label = 0;                      // index of the label byte that is the class
  int64_t classes = 10;
};

// Loads images u8 [N, 3, 32, 32] from `path` or the folders that find_files() searches: from the
// archive, or from its unpacked files.
Dataset load_cifar(const CifarFormat& format, const std::string& path, const LoadQuery& query);
std::string cifar_torch(const CifarFormat& format, const std::string& path, const LoadQuery& query);

// Appends the records of one file. Throws Error{data} that names the file if it does not hold whole
// records or a label is not a class.
struct CifarRecords {
  std::vector<std::byte> pixels;
  std::vector<int32_t> labels;
  void append(const CifarFormat& format, std::span<const std::byte> file, const std::string& path);
};

}  // namespace dpt
