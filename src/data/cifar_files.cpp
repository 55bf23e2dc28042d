#include "data/cifar_files.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/fail.h"
#include "base/units.h"
#include "data/readers/tar.h"
#include "data/tables.h"
#include "formats/python_call.h"

namespace dpt {
namespace {

constexpr size_t kPixels = 3 * 32 * 32;
// Bytes of a file or an archive: CIFAR-10's and CIFAR-100's archives hold 184 million.
constexpr uint64_t kMostBytes = 256 * kMiB;

const std::vector<std::string>& files_of(const CifarFormat& f, Split split) {
  return split == Split::train ? f.train : f.test;
}

// The paths of the unpacked files, or of the archive alone.
std::vector<std::string> find(const CifarFormat& f, const std::string& path,
                              const LoadQuery& query) {
  std::vector<std::string> inside;
  for (const std::string& file : files_of(f, query.split)) inside.push_back(f.folder + "/" + file);
  return find_files(f.name, path, query.folder, files_of(f, query.split), {inside, {f.archive}});
}

bool is_archive(const CifarFormat& f, const std::vector<std::string>& found) {
  const std::string name = std::filesystem::path(found[0]).filename().string();
  return name == f.archive || name == f.archive + ".gz";
}

void read_archive(const CifarFormat& f, const std::string& path, Split split, CifarRecords& out) {
  std::map<std::string, TarMember> members;
  const auto& files = files_of(f, split);
  read_tar(
      path, kMostBytes,
      [&](std::string_view name) {
        return std::ranges::any_of(
            files, [&](const std::string& file) { return name == f.folder + "/" + file; });
      },
      [&](TarMember m) { members.insert_or_assign(m.name, std::move(m)); });
  for (const std::string& file : files) {
    const auto member = members.find(f.folder + "/" + file);
    if (member == members.end())
      fail(Fault::data, "{} does not hold {}/{}: it is not the archive of {}", path, f.folder, file,
           f.name);
    out.append(f, member->second.bytes(), path + ": " + member->first);
  }
}

void read_file(const CifarFormat& f, const std::string& path, CifarRecords& out) {
  const std::unique_ptr<ByteSource> source = open_bytes(path);
  if (source->compressed())
    fail(Fault::data, "{} is compressed; unpack it with gunzip first", path);  // size unknown
  if (source->most_bytes() > kMostBytes)
    fail(Fault::data, "{} is not a file of {}: it has {} bytes. Fetch the file again.", path,
         f.name, source->most_bytes());
  std::vector<std::byte> bytes(source->most_bytes());
  source->read(bytes, "the records");
  source->expect_end();
  out.append(f, bytes, path);
}

}  // namespace

void CifarRecords::append(const CifarFormat& f, std::span<const std::byte> file,
                          const std::string& path) {
  const size_t record = f.labels + kPixels;
  if (file.empty() || file.size() % record != 0)
    fail(Fault::data,
         "{} is not a file of {}: its {} bytes are not whole records of {} ({} of labels, {} of "
         "pixels). Fetch the file again.",
         path, f.name, file.size(), record, f.labels, kPixels);
  pixels.reserve(pixels.size() + file.size());
  for (size_t n = 0; n < file.size() / record; ++n) {
    const auto one = file.subspan(n * record, record);
    const auto label = std::to_integer<int32_t>(one[f.label]);
    if (label >= f.classes)
      fail(Fault::data,
           "{}: the label of sample {} (counted from 0) is {}, which is not one of the {} classes "
           "0..{}",
           path, n, label, f.classes, f.classes - 1);
    labels.push_back(label);
    pixels.insert(pixels.end(), one.begin() + static_cast<std::ptrdiff_t>(f.labels), one.end());
  }
}

Dataset load_cifar(const CifarFormat& f, const std::string& path, const LoadQuery& query) {
  const std::vector<std::string> found = find(f, path, query);
  CifarRecords records;
  if (is_archive(f, found))
    read_archive(f, found[0], query.split, records);
  else
    for (const std::string& file : found) read_file(f, file, records);
  const auto samples = static_cast<int64_t>(records.labels.size());
  NewTable inputs({DType::u8, {samples, 3, 32, 32}}), targets({DType::i32, {samples}});
  std::ranges::copy(records.pixels, inputs.data.get());
  std::ranges::copy(records.labels, targets.as<int32_t>().begin());
  Dataset d;
  d.inputs = std::move(inputs).done();
  d.targets = std::move(targets).done();
  d.classes = f.classes;
  const std::string folder_path = std::filesystem::path(found[0]).parent_path().string();
  if (path.empty()) d.found_in = std::filesystem::absolute(folder_path).lexically_normal();
  d.description = describe(f.name, d, folder_path);
  return d;
}

std::string cifar_torch(const CifarFormat& f, const std::string& path, const LoadQuery& query) {
  const std::vector<std::string> found = find(f, path, query);
  std::string files;
  for (const std::string& file : found)
    files += (files.empty() ? "" : ", ") + python(std::filesystem::absolute(file).string());
  std::string out;
  if (is_archive(f, found)) {
    std::string names;
    for (const std::string& file : files_of(f, query.split))
      names += (names.empty() ? "" : ", ") + python(f.folder + "/" + file);
    out = fmt::format(
        "with tarfile.open({}) as archive:\n"
        "    records = [archive.extractfile(name).read() for name in [{}]]\n",
        files, names);
  } else {
    out = fmt::format("records = [Path(path).read_bytes() for path in [{}]]\n", files);
  }
  return out + fmt::format(
                   "records = torch.frombuffer(bytearray(b\"\".join(records)), "
                   "dtype=torch.uint8).view(-1, {})\n"
                   "x = records[:, {}:].reshape(-1, 3, 32, 32)\ny = records[:, {}].long()\n",
                   f.labels + kPixels, f.labels, f.label);
}

}  // namespace dpt
