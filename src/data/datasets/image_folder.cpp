#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/ranges.h>

#include "base/fail.h"
#include "data/image_files.h"
#include "data/image_samples.h"
#include "data/sample_form.h"
#include "data/tables.h"
#include "formats/python_call.h"

namespace dpt::datasets {
namespace {

namespace fs = std::filesystem;

// A folder of images for each class, like torchvision's ImageFolder: classes are the sorted folder
// names, samples are the sorted files in and below each folder.
struct ImageFolder : ImageReading {
  static constexpr Usage kUsage{
      "torchvision.datasets.ImageFolder",
      "dataset: {image_folder: {path: train, test_path: test, resize: 256, crop: 224}}\n"
      "dataset: {image_folder: {path: train, exif: true, on_error: skip}}"};

  std::string path, test_path;
  static KeyTable<ImageFolder> keys() {
    KeyTable<ImageFolder> t;
    t.required_path("path", &ImageFolder::path, "folder with one subfolder of images per class")
        .path("test_path", &ImageFolder::test_path, "the same for the test set");
    return add_keys(t);
  }
};

std::vector<std::string> classes_of(const std::string& folder) {
  std::vector<std::string> classes = list_folder(folder).folders;
  if (classes.empty())
    fail(Fault::data,
         "{} has no subfolders; put the images of each class into a subfolder of its own", folder);
  return classes;
}

// The numbers that classes have in the training set. Throws if they are none of its classes.
std::vector<int32_t> numbers_in(const std::vector<std::string>& known,
                                const std::vector<std::string>& classes,
                                const std::string& folder) {
  std::vector<int32_t> out;
  for (const std::string& name : classes) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end())
      fail(Fault::data, "{} has the class '{}', which the training set lacks; its {}: {}", folder,
           name, known.size() == 1 ? "class is" : "classes are", fmt::join(known, ", "));
    out.push_back(static_cast<int32_t>(found - known.begin()));
  }
  return out;
}

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& s = std::any_cast<const ImageFolder&>(settings);
  const bool train = query.split == Split::train;
  if (!train && s.test_path.empty()) throw NoTestSplit("image_folder", "test_path");
  const std::string& folder = train ? s.path : s.test_path;
  const std::vector<std::string> classes = classes_of(folder);
  const Dataset* const known =
      query.training_set != nullptr && !query.training_set->class_names.empty() ? query.training_set
                                                                                : nullptr;
  const std::vector<std::string> all = known != nullptr ? known->class_names
                                       : train          ? classes
                                                        : classes_of(s.path);
  const std::vector<int32_t> numbers = known != nullptr
                                           ? numbers_in(as_stored(all), as_stored(classes), folder)
                                           : numbers_in(all, classes, folder);
  ImageFiles found;
  std::vector<int32_t> labels;
  for (size_t c = 0; c < classes.size(); ++c) {
    const std::string of_class = (fs::path(folder) / classes[c]).string();
    const size_t others = found.others.size();
    add_files_below(of_class, found);
    if (found.images.size() == labels.size())
      fail(Fault::data, "{} contains no image ({}){}", of_class, kImageEndings,
           found.others.size() == others
               ? ""
               : fmt::format(", but files of types that are not read: {}",
                             count_by_ending(std::span(found.others).subspan(others))));
    labels.resize(found.images.size(), numbers[c]);
  }
  Dataset d;
  if (!found.others.empty())
    d.warnings.push_back(fmt::format("{}: {}", folder, left_out_text(found.others)));
  std::vector<std::string>& files = found.images;
  if (const std::string deep = gray16_text(files); !deep.empty())
    d.warnings.push_back(fmt::format("{}: {}", folder, deep));
  if (s.skips()) {
    const std::vector<size_t> kept = leave_out_damaged(s, files, d.warnings);
    for (size_t i = 0; i < kept.size(); ++i) labels[i] = labels[kept[i]];
    labels.resize(kept.size());
  }
  for (size_t c = 0; c < classes.size(); ++c)
    if (std::ranges::find(labels, numbers[c]) == labels.end())
      fail(Fault::data, "{} contains no image that can be read",
           (fs::path(folder) / classes[c]).string());
  const auto samples = static_cast<int64_t>(files.size());
  const ImageSize image = sample_size(s, files);
  NewTable targets({DType::i32, {samples}});
  std::ranges::copy(labels, targets.as<int32_t>().begin());
  d.inputs = {.desc = {DType::u8, {samples, 3, image.height, image.width}}};
  d.reader = image_files_reader(s, std::move(files), image);
  d.targets = std::move(targets).done();
  d.class_names = all;
  d.classes = std::ssize(d.class_names);
  d.description = describe("image_folder", d, folder);
  return d;
}

std::shared_ptr<const SampleReader> image_reader(const std::any& settings,
                                                 std::vector<std::string> files,
                                                 const Shape& sample) {
  return image_files_reader(std::any_cast<const ImageFolder&>(settings), std::move(files),
                            {sample[1], sample[2]});
}

// ImageFolder without hidden folders, such as .ipynb_checkpoints.
constexpr std::string_view kVisible = R"py(def visible(name):
    return not name.startswith(".") and name != "__MACOSX"

class VisibleFolders(datasets.ImageFolder):
    def find_classes(self, directory):
        names = list(filter(visible, super().find_classes(directory)[0]))
        return names, {name: index for index, name in enumerate(names)}

)py";

std::string torch(const std::any& settings, const LoadQuery& query) {
  const auto& s = std::any_cast<const ImageFolder&>(settings);
  if (query.split == Split::test && s.test_path.empty())
    throw NoTestSplit("image_folder", "test_path");
  const auto step = [](std::string_view name, const std::vector<int64_t>& size) {
    PythonCall call(name);
    return (size.size() == 1 ? call.arg(size[0]) : call.arg(size)).str() + ", ";
  };
  // ImageFolder numbers the classes of each folder from 0.
  std::string steps, readable, numbers;
  if (query.split == Split::test && fs::is_directory(s.path) && fs::is_directory(s.test_path))
    if (const auto all = classes_of(s.path), own = classes_of(s.test_path); all != own)
      numbers = fmt::format("{}", fmt::join(numbers_in(all, own, s.test_path), ", "));
  if (s.exif) steps += "transforms.Lambda(ImageOps.exif_transpose), ";
  if (!s.resize.empty()) steps += step("transforms.Resize", s.resize);
  if (!s.crop.empty()) steps += step("transforms.CenterCrop", s.crop);
  const std::string& folder = query.split == Split::train ? s.path : s.test_path;
  const bool skips = s.skips();
  const bool hidden = fs::is_directory(folder) && has_hidden_folders(folder);
  if (skips || hidden)
    readable = fmt::format(
        "def readable(path):\n{}{}"
        "    endings = datasets.folder.IMG_EXTENSIONS\n"
        "    return datasets.folder.has_file_allowed_extension(path, endings)\n"
        "\n",
        hidden
            ? fmt::format("    if not all(map(visible, Path(path).relative_to({}).parts[:-1])):\n"
                          "        return False\n",
                          python(folder))
            : "",
        skips ? "    try:\n"
                "        datasets.folder.pil_loader(path)\n"
                "    except Exception:\n"
                "        return False\n"
              : "");
  return fmt::format(
      "{}{}decode = transforms.Compose([{}transforms.PILToTensor()])\n"
      "data = {}({}, decode{}{})\n",
      hidden ? kVisible : "", readable, steps, hidden ? "VisibleFolders" : "datasets.ImageFolder",
      python(folder),
      numbers.empty() ? "" : fmt::format(", target_transform=[{}].__getitem__", numbers),
      readable.empty() ? "" : ", is_valid_file=readable");
}

}  // namespace

DatasetType image_folder() {
  DatasetType t{registry_entry<ImageFolder>("image_folder",
                                            "JPEG, PNG, BMP, PPM, PGM, WebP and TIFF images in one "
                                            "folder per class, decoded during training.")};
  t.load = load;
  t.has_test_set = [](const std::any& s) {
    return !std::any_cast<const ImageFolder&>(s).test_path.empty();
  };
  t.image_reader = image_reader;
  t.torch = torch;
  t.torch_reads_samples = true;
  return t;
}

}  // namespace dpt::datasets
