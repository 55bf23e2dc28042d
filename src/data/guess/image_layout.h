// Which folders hold the training, test and validation images of a user, and which the classes.
#pragma once

#include <string>
#include <vector>

namespace dpt {

struct ImageLayout {
  std::string train, test, validation;  // folders with one subfolder per class; empty: none
  std::vector<std::string> classes;     // the subfolders of `train`
  std::vector<std::string> notes;       // sentences about folders that are left out
};

// Throws Error{data} that says what a folder holds instead of classes, and what to do: images side
// by side, images and masks, or boxes of objects.
ImageLayout image_layout(const std::string& folder);

// Whether there are images in folders below this one.
bool holds_image_folders(const std::string& folder);

// What is missing if images lie in the folder itself; empty: none do.
std::string loose_images(const std::string& folder);

// Images and arrays of types that are not read, in the folder and its subfolders, counted by their
// ending: "2 .gif, 1 .npz"; empty: there are none.
std::string unread_files(const std::string& folder);

}  // namespace dpt
