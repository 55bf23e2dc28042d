// New samples without targets, from files that a user names: for predictions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/sample_form.h"

namespace dpt {

// Samples of several files, in the order of the files.
struct InputFiles {
  Dataset dataset;  // its targets are zeros
  std::vector<std::string> files;
  std::vector<int64_t> first;  // the first sample of each file

  struct Origin {
    const std::string& file;
    int64_t row = 0;  // within the file, from 0
  };
  Origin origin(int64_t sample) const;
};

// Reads files whose samples have the form of a run's training data before transforms:
//   CSV         its columns; if both files have a header, they are found by name
//   NPY         [N, sample shape], or one sample; the element type is that of the training data
//   IDX         [N, H, W], as MNIST's files
//   images      resized and cropped as an image_folder says. For other runs: gray if the samples
//               have one channel, and resized to their height and width
// A folder stands for the images in it, in the order of their names. Images and other files cannot
// be mixed. Throws Error{data} that names the file.
InputFiles read_input_files(const Choice& dataset, const SampleForm& form,
                            std::span<const std::string> paths);

}  // namespace dpt
