#include "formats/tensor_file.h"

#include <algorithm>
#include <array>

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

std::unique_ptr<const TensorFile> open_tensor_file(const std::string& path) {
  if (is_zip(path)) return std::make_unique<TorchFile>(path);
  return std::make_unique<SafeTensorsFile>(path);
}

}  // namespace dpt
