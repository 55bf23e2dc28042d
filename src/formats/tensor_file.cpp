#include "formats/tensor_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/fail.h"
#include "base/half.h"
#include "formats/random_access_file.h"
#include "formats/safetensors.h"
#include "formats/torch_file.h"

namespace dpt {
namespace {

bool is_zip(const std::string& path) {
  constexpr std::array kZip = {std::byte{'P'}, std::byte{'K'}, std::byte{3}, std::byte{4}};
  const RandomAccessFile file(path);
  std::array<std::byte, kZip.size()> head{};
  if (file.size() < head.size()) return false;
  file.read(0, head);
  return head == kZip;
}

}  // namespace

const TensorFile::Entry* TensorFile::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  return found == entries_.end() ? nullptr : &*found;
}

std::string without_wrappers(std::string_view name) {
  std::string out;
  while (true) {
    const size_t dot = name.find('.');
    if (dot == name.npos) return out += name;
    if (std::ranges::find(kWrapperNames, name.substr(0, dot)) == kWrapperNames.end())
      out += name.substr(0, dot + 1);
    name.remove_prefix(dot + 1);
  }
}

bool readable_as_floats(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || is_half(dtype);
}

void read_floats(const TensorFile& file, const TensorFile::Entry& entry, std::span<float> out) {
  if (entry.desc.dtype == DType::f32) return file.read(entry, std::as_writable_bytes(out));
  require(readable_as_floats(entry.desc.dtype), "a tensor of floats");
  if (entry.desc.dtype == DType::f64) {
    std::vector<double> wide(out.size());
    file.read(entry, std::as_writable_bytes(std::span(wide)));
    std::ranges::transform(wide, out.begin(), [](double x) { return static_cast<float>(x); });
    return;
  }
  std::vector<uint16_t> halves(out.size());
  file.read(entry, std::as_writable_bytes(std::span(halves)));
  std::ranges::transform(halves, out.begin(),
                         entry.desc.dtype == DType::bf16 ? from_bf16 : from_f16);
}

bool readable_as_counts(DType dtype) {
  return dtype == DType::i64 || dtype == DType::i32 || readable_as_floats(dtype);
}

void read_counts(const TensorFile& file, const TensorFile::Entry& entry, std::span<int64_t> out) {
  if (entry.desc.dtype == DType::i64) return file.read(entry, std::as_writable_bytes(out));
  if (entry.desc.dtype == DType::i32) {
    std::vector<int32_t> narrow(out.size());
    file.read(entry, std::as_writable_bytes(std::span(narrow)));
    std::ranges::copy(narrow, out.begin());
    return;
  }
  constexpr float kLimit = 0x1p63F;
  std::vector<float> floats(out.size());
  read_floats(file, entry, floats);
  std::ranges::transform(floats, out.begin(), [](float x) {
    return std::abs(x) < kLimit ? static_cast<int64_t>(x) : 0;
  });
}

std::unique_ptr<const TensorFile> open_tensor_file(const std::string& path) {
  if (is_zip(path)) return std::make_unique<TorchFile>(path);
  return std::make_unique<SafeTensorsFile>(path);
}

}  // namespace dpt
