// The binary files in which CIFAR-10 and CIFAR-100 come (Krizhevsky 2009).
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"

namespace dpt {

// What one of the two is made of.
struct CifarFormat {
  std::string name;                      // "cifar10"
  std::string archive;                   // "cifar-10-binary.tar": looked for with .gz, too
  std::string folder;                    // in the archive
  std::vector<std::string> train, test;  // files
  size_t labels = 1;                     // bytes in front of a record's pixels
  size_t label = 0;                      // which of them is the class
  int64_t classes = 10;
};

// Images u8 [N, 3, 32, 32], from `path` or where find_files looks: the archive, or its files.
Dataset load_cifar(const CifarFormat& format, const std::string& path, const LoadQuery& query);
std::string cifar_torch(const CifarFormat& format, const std::string& path, const LoadQuery& query);

// The records of one file, appended to what is there. Throws Error{data} that names the file where
// they are not whole or a label is no class.
struct CifarRecords {
  std::vector<std::byte> pixels;
  std::vector<int32_t> labels;
  void append(const CifarFormat& format, std::span<const std::byte> file, const std::string& path);
};

}  // namespace dpt
