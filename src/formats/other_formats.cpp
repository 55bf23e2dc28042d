#include "formats/other_formats.h"

#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "formats/python_call.h"

namespace dpt {
namespace {

using namespace std::string_view_literals;

// The name of the first file in a ZIP archive; empty if `head` ends before it does.
std::string_view first_name(std::string_view head) {
  constexpr size_t kLengthAt = 26, kNameAt = 30;  // offsets in a local file header
  if (head.size() < kNameAt) return "";
  const size_t length = static_cast<unsigned char>(head[kLengthAt]) |
                        size_t{static_cast<unsigned char>(head[kLengthAt + 1])} << 8;
  return kNameAt + length <= head.size() ? head.substr(kNameAt, length) : "";
}

std::string converted(const std::string& path) {
  return python(std::filesystem::path(path).replace_extension(".safetensors").string());
}

std::string of_torch(std::string_view what, const std::string& path) {
  return fmt::format(
      "{}; convert its state_dict in Python: "
      "safetensors.torch.save_file(torch.load({}, map_location=\"cpu\"), {})",
      what, python(path), converted(path));
}

std::string of_numpy(std::string_view kind, const std::string& path) {
  return fmt::format(
      "a {} file of NumPy; save its arrays by the names of the model's parameters in Python: "
      "safetensors.numpy.save_file({{'0.weight': array, ...}}, {})",
      kind, converted(path));
}

}  // namespace

std::string other_format(std::span<const std::byte> head, const std::string& path) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.starts_with("PK\x03\x04"sv)) {
    if (first_name(text).ends_with(".npy")) return of_numpy(".npz", path);
    // torch.save: the first file is NAME/data.pkl; older TorchScript: NAME/version or NAME/code.
    if (first_name(text).find('/') != std::string_view::npos)
      return of_torch("a file of torch.save", path);
    return "a ZIP archive; give the weights file itself";
  }
  // torch.save's legacy format: a pickle that begins with the number 0x1950a86a20f9469cfc6c.
  if (text.starts_with("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv))
    return of_torch("a file that PyTorch before 1.6 wrote", path);
  if (text.starts_with("\x93NUMPY"sv)) return of_numpy(".npy", path);
  if (text.starts_with("\x89HDF\r\n\x1a\n"sv))
    return "an HDF5 file (Keras, h5py); load its weights in Python and save them with "
           "safetensors.numpy.save_file, by the names of the model's parameters";
  if (text.starts_with("GGUF"sv))
    return "a GGUF file (llama.cpp); give the model's original safetensors file";
  return "";
}

}  // namespace dpt
