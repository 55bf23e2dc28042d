// The images in a folder and below it, and the other files there.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/image.h"

namespace dpt {

struct ImageFiles {
  std::vector<std::string> images;
  std::vector<std::string> others;  // of types that are not read; without hidden files
};

// Whether desktops, archives or notebooks leave files or folders of this name beside samples.
bool is_hidden(std::string_view name);

// The names in a folder, without hidden folders, sorted by their bytes, as Python sorts them.
// Throws Error{data} if it cannot be read.
struct FolderListing {
  std::vector<std::string> folders, files;
};
FolderListing list_folder(const std::string& folder);

// Adds the files in a folder and all folders below, following links: first its own files, then
// those of its subfolders. The order is torchvision's. Throws Error{data} if links lead to a folder
// twice.
void add_files_below(const std::string& folder, ImageFiles& out);

// Whether this folder or one below it has hidden folders, in which torchvision finds images, too.
bool has_hidden_folders(const std::string& folder);

// "2 .gif, 1 .heic"; empty if there are no files.
std::string count_by_ending(std::span<const std::string> files);

// "3 files are left out, as their types are not read: 2 .gif, 1 .heic"; empty if there are none.
std::string left_out_text(std::span<const std::string> others);

// A sentence about 16-bit gray values, most of which become white, by the headers of at most 100
// of the files, evenly spread; empty if they have none.
std::string gray16_text(std::span<const std::string> files);

// The bytes of an image file. Throws Error{data} if it has more than 64 MiB.
std::vector<std::byte> bytes_of_image(const std::string& path);

}  // namespace dpt
