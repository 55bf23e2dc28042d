#include "data/input_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "base/lower_case.h"
#include "data/channel_scaling.h"
#include "data/image_files.h"
#include "data/readers/bytes.h"
#include "data/readers/csv.h"
#include "data/readers/idx.h"
#include "data/readers/image.h"
#include "data/readers/npy.h"
#include "data/tables.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

enum class Kind { csv, npy, idx, image, unknown };

// The extension in lower case, without a `.gz` behind it.
std::string ending_of(const fs::path& file) {
  std::string ending = lower_case(file.extension().string());
  return ending == ".gz" ? lower_case(file.stem().extension().string()) : ending;
}

Kind kind_of(const std::string& path) {
  const std::string ending = ending_of(path);
  if (ending == ".csv" || ending == ".tsv" || ending == ".txt") return Kind::csv;
  if (ending == ".npy") return Kind::npy;
  if (ending == ".idx" || ending.ends_with("-ubyte") ||
      fs::path(path).filename().string().find("-ubyte") != std::string::npos)
    return Kind::idx;
  if (is_image_ending(ending)) return Kind::image;
  std::error_code error;
  if (!fs::exists(path, error))
    fail(Fault::data, "{} does not exist: there is no such file or folder", path);
  return Kind::unknown;
}

void refuse_unknown(const std::string& path) {
  if (kind_of(path) == Kind::unknown)
    fail(Fault::data,
         "{} has an unknown file type; name files that end in .csv, .tsv, .txt, .npy, .idx, "
         "-ubyte, {}",
         path, kImageEndings);
}

// The files, with the images in and below each folder in its place.
std::vector<std::string> expanded(std::span<const std::string> paths,
                                  std::vector<std::string>& left_out) {
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      out.push_back(path);
      continue;
    }
    ImageFiles found;
    add_files_below(path, found);
    if (found.images.empty())
      fail(Fault::data, "{} and the folders in it contain no image ({})", path, kImageEndings);
    out.insert(out.end(), found.images.begin(), found.images.end());
    left_out.insert(left_out.end(), found.others.begin(), found.others.end());
  }
  return out;
}

// Images for a run whose samples [1 or 3, H, W] did not come from image files.
class ImageReader : public SampleReader {
 public:
  // sample: [1 or 3, H, W].
  ImageReader(Shape sample, std::vector<std::string> files)
      : sample_(sample), files_(std::move(files)) {}

  void read(uint32_t row, std::span<std::byte> out) const override {
    const std::string& path = files_[row];
    Image image = decode_image(bytes_of_image(path), path);
    if (image.height != sample_[1] || image.width != sample_[2])
      image = resized(image, sample_[1], sample_[2]);
    const auto pixels = static_cast<size_t>(image.height * image.width);
    for (size_t c = 0; c < static_cast<size_t>(sample_[0]); ++c)
      for (size_t i = 0; i < pixels; ++i) {
        const uint8_t* p = &image.pixels[i * 3];
        out[c * pixels + i] = static_cast<std::byte>(sample_[0] == 1 ? gray(p) : p[c]);
      }
  }

 private:
  // As PIL's convert("L"): ITU-R 601-2 luma, in 16-bit fixed-point numbers.
  static uint8_t gray(const uint8_t* p) {
    return static_cast<uint8_t>((p[0] * 19595U + p[1] * 38470U + p[2] * 7471U + 0x8000U) >> 16);
  }

  Shape sample_;
  std::vector<std::string> files_;
};

// Reads images. Notes those that cannot be read, and makes zeros of them.
class NotingReader : public SampleReader {
 public:
  NotingReader(std::shared_ptr<const SampleReader> images, std::shared_ptr<UnreadFiles> unread)
      : images_(std::move(images)), unread_(std::move(unread)) {}

  void read(uint32_t row, std::span<std::byte> out) const override {
    try {
      images_->read(row, out);
    } catch (const Error& e) {
      if (e.fault() != Fault::data) throw;
      unread_->add(row, e.what());
      std::ranges::fill(out, std::byte{});
    }
  }

 private:
  std::shared_ptr<const SampleReader> images_;
  std::shared_ptr<UnreadFiles> unread_;
};

// Integers of a file may be of any size.
std::string text_of(const TensorDesc& d) {
  return fmt::format("{} {}", d.shape.str(), d.dtype == DType::i32 ? "integers" : name_of(d.dtype));
}

// The table as samples of the run's form.
Table fitted(const Table& table, const SampleForm& form, const std::string& path) {
  const TensorDesc& want = form.stored;
  const Shape& shape = table.desc.shape;
  if (table.desc.dtype == want.dtype) {
    if (shape == want.shape) return reshaped(table, want.shape.batch(1));
    if (shape.rank() == want.shape.rank() + 1 && shape.tail(1) == want.shape) return table;
  }
  fail(Fault::data, "{} holds {}, but the samples of this run are {}{}", path, text_of(table.desc),
       text_of(want),
       want.dtype == DType::u8 && table.desc.dtype != DType::u8
           ? ": bytes as they are before transforms"
           : "");
}

// Values [shape] as float32, standardized as the run's training data.
Table numbers(std::span<const double> values, const Shape& shape, const SampleForm& form) {
  const std::vector<ChannelScaling> as_they_are(1);
  return scaled(values, shape, form.channels.empty() ? as_they_are : form.channels);
}

// All columns of a text file as samples of numbers.
Table plain_columns(const SampleForm& form, const std::string& path) {
  if (form.stored.dtype != DType::f32)
    fail(Fault::data, "{} is a text table, but the samples of this run are {}", path,
         text_of(form.stored));
  const CsvTable read = read_csv(path, {});
  const auto columns = static_cast<int64_t>(read.columns());
  if (columns != form.stored.shape.elements())
    fail(Fault::data, "{} has {} columns, but a sample of this run has {} numbers", path, columns,
         form.stored.shape.elements());
  return numbers(read.values, form.stored.shape.batch(static_cast<int64_t>(read.rows)), form);
}

Table read_array(const SampleForm& form, const std::string& path) {
  if (form.channels.empty()) return fitted(read_npy(path), form, path);
  const NpyValues read = read_npy_values(path);
  if (read.values.empty()) return fitted(read_npy(path), form, path);  // says why not
  const bool one = read.shape == form.stored.shape;
  if (!one && (read.shape.rank() == 0 || read.shape.tail(1) != form.stored.shape))
    return fitted(read_npy(path), form, path);
  return numbers(read.values, one ? form.stored.shape.batch(1) : read.shape, form);
}

Table read_table(const Choice& dataset, const SampleForm& form, const std::string& path,
                 std::vector<std::string>& notes) {
  const auto& type = *static_cast<const DatasetType*>(dataset.what);
  switch (kind_of(path)) {
    case Kind::npy:
      return read_array(form, path);
    case Kind::idx:
      return fitted(with_channel(read_idx(path)), form, path);
    case Kind::csv:
    case Kind::unknown:
    case Kind::image:
      break;
  }
  if (type.input_columns == nullptr || form.columns.names.empty()) return plain_columns(form, path);
  return fitted(type.input_columns(dataset.settings, form.columns, path, notes), form, path);
}

Table joined(const std::vector<Table>& tables, const SampleForm& form) {
  if (tables.size() == 1) return tables[0];
  if (tables.empty()) return NewTable({form.stored.dtype, form.stored.shape.batch(0)}).done();
  int64_t samples = 0;
  for (const Table& t : tables) samples += t.size();
  NewTable out({tables[0].desc.dtype, tables[0].desc.shape.with(0, samples)});
  std::byte* to = out.data.get();
  for (const Table& t : tables) to = std::copy_n(t.data.get(), t.desc.bytes(), to);
  return std::move(out).done();
}

void read_images(const Choice& dataset, const SampleForm& form, InputFiles& out) {
  const auto& type = *static_cast<const DatasetType*>(dataset.what);
  const Shape& sample = form.stored.shape;
  const auto samples = static_cast<int64_t>(out.files.size());
  for (int64_t i = 0; i < samples; ++i) out.first.push_back(i);
  if (const std::string deep = gray16_text(out.files); !deep.empty()) out.notes.push_back(deep);
  if (type.image_reader != nullptr) {
    out.dataset.reader = type.image_reader(dataset.settings, out.files, sample);
  } else {
    const bool gray = sample.rank() == 2, colors = sample.rank() == 3 && sample[0] == 3;
    if (form.stored.dtype != DType::u8 ||
        !(gray || colors || (sample.rank() == 3 && sample[0] == 1)))
      fail(
          Fault::data,
          "{} is an image, but the samples of this run are {}; image files can be read "
          "only for runs on u8 samples [H, W], [1, H, W] or [3, H, W]; save the images as an array "
          "like the training data",
          out.files[0], text_of(form.stored));
    out.dataset.reader = std::make_shared<ImageReader>(gray ? sample.batch(1) : sample, out.files);
  }
  out.dataset.reader = std::make_shared<NotingReader>(out.dataset.reader, out.unread);
  out.dataset.inputs = {.desc = {form.stored.dtype, sample.batch(samples)}};
}

// Tokens index the rows of a weight.
void check_tokens(const Table& samples, const SampleForm& form, const std::string& path) {
  if (form.stored.dtype != DType::i32 || form.tokens == 0) return;
  for (const int32_t token : values_of<int32_t>(samples))
    if (token < 0 || token >= form.tokens)
      fail(Fault::data, "{} holds the token {}, but the model was trained with {} tokens", path,
           token, form.tokens);
}

void read_tables(const Choice& dataset, const SampleForm& form, InputFiles& out) {
  std::vector<Table> tables;
  int64_t samples = 0;
  for (size_t i = 0; i < out.files.size(); ++i) {
    out.first.push_back(samples);
    try {
      Table table = read_table(dataset, form, out.files[i], out.notes);
      check_tokens(table, form, out.files[i]);
      samples += table.size();
      tables.push_back(std::move(table));
    } catch (const Error& e) {
      if (e.fault() != Fault::data) throw;
      out.unread->add(i, e.what());
    }
  }
  out.dataset.inputs = joined(tables, form);
}

}  // namespace

void UnreadFiles::add(size_t file, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  reasons_.emplace(file, reason);
}

std::map<size_t, std::string> UnreadFiles::reasons() const {
  const std::lock_guard lock(mutex_);
  return reasons_;
}

std::vector<int64_t> InputFiles::read_samples() const {
  std::vector<int64_t> out;
  const std::map<size_t, std::string> without =
      dataset.reader ? unread->reasons() : std::map<size_t, std::string>();
  for (int64_t i = 0; i < dataset.size(); ++i)
    if (!without.contains(static_cast<size_t>(i))) out.push_back(i);
  return out;
}

InputFiles::Origin InputFiles::origin(int64_t sample) const {
  const auto file =
      static_cast<size_t>(std::ranges::upper_bound(first, sample) - first.begin()) - 1;
  return {.file = files[file], .row = sample - first[file]};
}

InputFiles read_input_files(const Choice& dataset, const SampleForm& form,
                            std::span<const std::string> paths) {
  InputFiles out;
  out.files = expanded(paths, out.left_out);
  require(!out.files.empty(), "predictions are made for at least one file");
  const auto count = [&](Kind kind) {
    return std::ranges::count_if(out.files, [&](const auto& f) { return kind_of(f) == kind; });
  };
  const auto images = count(Kind::image);
  // Beside images, a named file of an unknown type is an image that cannot be read.
  if (images == 0)
    std::ranges::for_each(out.files, refuse_unknown);
  else if (images + count(Kind::unknown) != std::ssize(out.files))
    fail(Fault::data, "images and other files cannot be mixed; run the command once for each");
  if (images > 0)
    read_images(dataset, form, out);
  else
    read_tables(dataset, form, out);
  NewTable targets({DType::i32, {out.dataset.size()}});
  std::ranges::fill(targets.as<int32_t>(), 0);
  out.dataset.targets = std::move(targets).done();
  return out;
}

}  // namespace dpt
