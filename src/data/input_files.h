// New samples without targets, from files that a user names: for predictions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/sample_form.h"

namespace dpt {

// Files that could not be read, by their index in InputFiles::files, with the reason, which names
// the file. Thread: any.
class UnreadFiles {
 public:
  void add(size_t file, const std::string& reason);
  std::map<size_t, std::string> reasons() const;

 private:
  mutable std::mutex mutex_;
  std::map<size_t, std::string> reasons_;
};

// Samples of several files, in the order of the files.
struct InputFiles {
  Dataset dataset;  // its targets are zeros
  std::vector<std::string> files;
  std::vector<std::string> left_out;  // files in folders whose types are not read
  std::vector<int64_t> first;         // the first sample of each file
  // Tables among these have no samples. Images are read when the data set is: those that cannot be
  // read are samples of zeros, and stand here from then on.
  std::shared_ptr<UnreadFiles> unread = std::make_shared<UnreadFiles>();
  std::vector<std::string> notes;  // about their contents, as sentences without their ends

  struct Origin {
    const std::string& file;
    int64_t row = 0;  // within the file, from 0
  };
  Origin origin(int64_t sample) const;
  // Samples that have been read, in order.
  std::vector<int64_t> read_samples() const;
};

// Reads files whose samples have the form of a run's training data before transforms:
//   CSV         its columns; if both files have a header, they are found by name
//   NPY         [N, sample shape], or one sample; the element type is that of the training data
//   IDX         [N, H, W], as MNIST's files
//   images      resized and cropped as an image_folder says. For other runs: gray if the samples
//               have one channel, and resized to their height and width
// A folder stands for the images in it, in the order of their names. Images and other files cannot
// be mixed. Throws Error{data} if they are, if a file's type is unknown, and if a folder has no
// images. What else is wrong with a file makes it an unread one.
InputFiles read_input_files(const Choice& dataset, const SampleForm& form,
                            std::span<const std::string> paths);

}  // namespace dpt
