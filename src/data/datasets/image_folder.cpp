#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/machine.h"
#include "base/units.h"
#include "data/fingerprint.h"
#include "data/image_files.h"
#include "data/readers/bytes.h"
#include "data/readers/image.h"
#include "data/readers/orientation.h"
#include "data/sample_form.h"
#include "data/tables.h"
#include "formats/python_call.h"

namespace dpt::datasets {
namespace {

namespace fs = std::filesystem;

// A folder of images for each class, like torchvision's ImageFolder: classes are the sorted folder
// names, samples are the sorted files in and below each folder. Images are decoded on demand,
// resized like torchvision's Resize of a PIL image and cropped like its CenterCrop, with the
// results of Pillow 13.
struct ImageFolder {
  static constexpr Usage kUsage{
      "torchvision.datasets.ImageFolder",
      "dataset: {image_folder: {path: train, test_path: test, resize: 256, crop: 224}}\n"
      "dataset: {image_folder: {path: train, exif: true, on_error: skip}}"};

  std::string path, test_path;
  std::vector<int64_t> resize, crop;
  bool exif = false;
  std::string on_error = "error";
  static KeyTable<ImageFolder> keys() {
    return KeyTable<ImageFolder>()
        .required_path("path", &ImageFolder::path, "folder with one subfolder of images per class")
        .path("test_path", &ImageFolder::test_path, "the same for the test set")
        .optional("resize", &ImageFolder::resize,
                  "new length of the shorter side, or [height, width]; by default images keep "
                  "their size. Resampled as by Pillow 13",
                  kSide)
        .shared()
        .optional("crop", &ImageFolder::crop,
                  "height and width of the center crop after resizing, or one number for both; "
                  "by default no crop. Without a crop, all images must have one size, unless "
                  "'resize' gives height and width",
                  kSide)
        .shared()
        .optional("exif", &ImageFolder::exif,
                  "whether images are turned as their EXIF orientation says, as by Pillow's "
                  "ImageOps.exif_transpose; torchvision's ImageFolder reads them as stored")
        .shared()
        .choice("on_error", &ImageFolder::on_error, {"error", "skip"},
                "what happens to images that cannot be read: an error when training reaches one, "
                "or all images are decoded once before training, and those are left out and named");
  }
  static constexpr Range kSide{.text = "must be between 1 and 16384", .low = 1, .high = 16384};
  static void check(const ImageFolder& c, const Owner& owner, Diagnostics& d) {
    for (const auto& [name, size] : {std::pair{"resize", &c.resize}, {"crop", &c.crop}})
      if (size->size() > 2)
        d.error(owner.at(name), fmt::format("'{}' must be one number or two", name));
  }
  // Whether the size of samples is that of the files.
  bool sized_by_files() const { return crop.empty() && resize.size() < 2; }
};

std::vector<std::string> classes_of(const std::string& folder) {
  std::vector<std::string> classes = list_folder(folder).folders;
  if (classes.empty())
    fail(Fault::data,
         "{} has no subfolders; put the images of each class into a subfolder of its own", folder);
  return classes;
}

// Height and width after resizing.
ImageSize resized_to(const ImageFolder& s, const ImageSize& image) {
  if (s.resize.empty()) return image;
  if (s.resize.size() == 2) return {s.resize[0], s.resize[1]};
  const int64_t size = s.resize[0];
  const auto longer = [&](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<double>(size * a) / static_cast<double>(b));
  };
  if (image.width <= image.height) return {longer(image.height, image.width), size};
  return {size, longer(image.width, image.height)};
}

Image decoded(const ImageFolder& s, std::span<const std::byte> bytes, const std::string& path) {
  Image image = decode_image(bytes, path);
  return s.exif ? upright(std::move(image), exif_orientation(bytes)) : image;
}

// By the header of the file if it is near the beginning, as in most files.
ImageSize size_of_file(const ImageFolder& s, const std::string& path) {
  constexpr uint64_t kNear = 4 * kKiB;
  const std::unique_ptr<ByteSource> source = open_bytes(path);
  if (!source->compressed() && !s.exif) {
    std::vector<std::byte> begin(std::min(kNear, source->most_bytes()));
    source->read(begin, "the image");
    if (const auto size = image_size(begin)) return *size;
  }
  const std::vector<std::byte> all = bytes_of_image(path);
  if (const auto size = image_size(all))
    return s.exif && exchanges_sides(exif_orientation(all)) ? ImageSize{size->width, size->height}
                                                            : *size;
  const Image image = decoded(s, all, path);  // throws, most likely
  return {image.height, image.width};
}

// "32 x 24", as width and height are usually written.
std::string text_of(const ImageSize& size) {
  return fmt::format("{} x {}", size.width, size.height);
}

// The size of all samples. Reads the header of each file if the settings do not give it.
ImageSize sample_size(const ImageFolder& s, const std::vector<std::string>& files) {
  if (!s.sized_by_files()) {
    const std::vector<int64_t>& size = s.crop.empty() ? s.resize : s.crop;
    return {size.front(), size.back()};
  }
  const ImageSize first = resized_to(s, size_of_file(s, files[0]));
  for (const std::string& file : files)
    if (const ImageSize size = resized_to(s, size_of_file(s, file)); size != first)
      fail(Fault::data,
           "{} has {} pixels{}, but {} has {}: all samples must have one size. Give height and "
           "width "
           "in `resize`, or `crop`",
           files[0], text_of(first), s.resize.empty() ? "" : " after `resize`", file,
           text_of(size));
  return first;
}

// Limits the memory for resizing: a line of pixels, whose file has a few bytes, would need
// gigabytes once its shorter side has the wanted length. resized() first makes all rows in the
// new width; their number of pixels may be at most 16 million, the image's own, or four times the
// size in the spec, whichever is largest.
void check_cost(const ImageFolder& s, const Image& image, const std::string& path) {
  const auto [height, width] = resized_to(s, {image.height, image.width});
  constexpr int64_t kAlways = int64_t{1} << 24;
  const int64_t most =
      std::max({kAlways, image.height * image.width, 4 * s.resize.front() * s.resize.back()});
  const int64_t pixels = std::max(height, image.height) * width;
  if (pixels > most)
    fail(Fault::data,
         "{} has {} x {} pixels; resizing it to {} x {} takes {} MiB: remove it, or crop it "
         "first",
         path, image.width, image.height, width, height, pixels * 3 / kMiB);
}

// Rows with something in common. Thread: any.
class Rows {
 public:
  void add(uint32_t row) {
    const std::lock_guard lock(mutex_);
    rows_.insert(row);
  }
  // How many there are, and the first.
  std::pair<size_t, uint32_t> count() const {
    const std::lock_guard lock(mutex_);
    return {rows_.size(), rows_.empty() ? 0 : *rows_.begin()};
  }

 private:
  mutable std::mutex mutex_;
  std::set<uint32_t> rows_;
};

class Reader : public SampleReader {
 public:
  Reader(const ImageFolder& settings, std::vector<std::string> files, const ImageSize& size)
      : s_(settings), files_(std::move(files)), size_(size) {}

  void read(uint32_t row, std::span<std::byte> out) const override {
    const std::string& path = files_[row];
    const std::vector<std::byte> bytes = bytes_of_image(path);
    if (!s_.exif && exif_orientation(bytes) != 1) turned_.add(row);
    Image image = decoded(s_, bytes, path);
    const auto [height, width] = resized_to(s_, {image.height, image.width});
    if (s_.sized_by_files() && ImageSize{height, width} != size_)
      fail(Fault::data,
           "{} has {} pixels{}, but the samples of this run have {}; resize it, or train with "
           "height and width in `resize`, or with `crop`",
           path, text_of({height, width}), s_.resize.empty() ? "" : " after `resize`",
           text_of(size_));
    if (!s_.resize.empty()) {
      check_cost(s_, image, path);
      image = resized(image, height, width);
    }
    cut(image, reinterpret_cast<uint8_t*>(out.data()));
  }

  uint64_t fingerprint() const override {
    uint64_t out = 0;
    for (const std::string& file : files_) {
      const fs::path path(file);
      const std::string name = (path.parent_path().filename() / path.filename()).string();
      out = hash_of(std::as_bytes(std::span(name)), out);
    }
    return out;
  }

  std::string remarks() const override {
    const auto [turned, first] = turned_.count();
    if (turned == 0) return "";
    return fmt::format(
        "{} of the images that were read {} to be turned, as {} EXIF data says ({}), but {} read "
        "as stored, as by torchvision's ImageFolder; `exif: true` turns images",
        turned, turned == 1 ? "is" : "are", turned == 1 ? "its" : "their", files_[first],
        turned == 1 ? "is" : "are");
  }

 private:
  // Writes the image's center as [3, height, width], black outside of the image. As in CenterCrop,
  // padding puts the smaller half on the left, and cropping rounds halves to even.
  void cut(const Image& image, uint8_t* out) const {
    const auto first = [](int64_t whole, int64_t part) {
      return part > whole
                 ? -((part - whole) / 2)
                 : static_cast<int64_t>(std::nearbyint(static_cast<double>(whole - part) / 2));
    };
    const int64_t top = first(image.height, size_.height), left = first(image.width, size_.width);
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t y = top; y < top + size_.height; ++y)
        for (int64_t x = left; x < left + size_.width; ++x) {
          const bool inside = y >= 0 && y < image.height && x >= 0 && x < image.width;
          *out++ = inside ? image.pixels[static_cast<size_t>((y * image.width + x) * 3 + c)]
                          : uint8_t{0};
        }
  }

  ImageFolder s_;
  std::vector<std::string> files_;
  ImageSize size_;  // of samples
  mutable Rows turned_;
};

// Leaves out images that cannot be decoded, and names them.
void leave_out_damaged(const ImageFolder& s, std::vector<std::string>& files,
                       std::vector<int32_t>& labels, std::vector<std::string>& warnings) {
  std::vector<std::string> reasons(files.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < files.size(); i = next++) try {
        const Image image = decoded(s, bytes_of_image(files[i]), files[i]);
        if (!s.resize.empty()) check_cost(s, image, files[i]);
      } catch (const std::exception& e) {
        reasons[i] = e.what();
      }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < usable_cores().size(); ++i) threads.emplace_back(work);
    work();
  }
  size_t kept = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!reasons[i].empty()) {
      warnings.push_back("left out: " + reasons[i]);
      continue;
    }
    if (kept != i) files[kept] = std::move(files[i]);
    labels[kept++] = labels[i];
  }
  files.resize(kept);
  labels.resize(kept);
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
  if (s.on_error == "skip") leave_out_damaged(s, files, labels, d.warnings);
  for (size_t c = 0; c < classes.size(); ++c)
    if (std::ranges::find(labels, numbers[c]) == labels.end())
      fail(Fault::data, "{} contains no image that can be read",
           (fs::path(folder) / classes[c]).string());
  const auto samples = static_cast<int64_t>(files.size());
  const ImageSize image = sample_size(s, files);
  NewTable targets({DType::i32, {samples}});
  std::ranges::copy(labels, targets.as<int32_t>().begin());
  d.inputs = {.desc = {DType::u8, {samples, 3, image.height, image.width}}};
  d.reader = std::make_shared<Reader>(s, std::move(files), image);
  d.targets = std::move(targets).done();
  d.class_names = all;
  d.classes = std::ssize(d.class_names);
  d.description = describe("image_folder", d, folder);
  return d;
}

std::shared_ptr<const SampleReader> image_reader(const std::any& settings,
                                                 std::vector<std::string> files,
                                                 const Shape& sample) {
  return std::make_shared<Reader>(std::any_cast<const ImageFolder&>(settings), std::move(files),
                                  ImageSize{sample[1], sample[2]});
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
  const bool skips = s.on_error == "skip";
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
