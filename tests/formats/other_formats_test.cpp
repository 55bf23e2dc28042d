#include "formats/other_formats.h"

#include <string_view>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "formats/safetensors.h"

namespace dpt {
namespace {

using namespace std::string_view_literals;

// The message for a file "w.END" that begins with these bytes.
std::string refusal(const std::string& ending, std::string_view head) {
  const Folder folder;
  const std::string path = folder.write("w." + ending, std::string(head) + std::string(100, '\1'));
  std::string out = data_error([&] { SafeTensorsFile{path}; });
  for (size_t at; (at = out.find(folder.path() + "/")) != std::string::npos;)
    out.erase(at, folder.path().size() + 1);
  return out;
}

// A ZIP archive whose first file has this name.
std::string zip_of(std::string_view name) {
  std::string out("PK\x03\x04", 4);
  out.resize(26);
  return out + static_cast<char>(name.size()) + std::string(3, '\0') + std::string(name);
}

TEST_CASE("weights in another format are named by it, with the way to convert them") {
  const std::string convert =
      "; convert its state_dict in Python: safetensors.torch.save_file(torch.load(\"w.pt\", "
      "map_location=\"cpu\"), \"w.safetensors\")";
  CHECK(refusal("pt", zip_of("w/data.pkl")) ==
        "w.pt is not a safetensors file but a file of torch.save" + convert);
  CHECK(refusal("pt", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv) ==
        "w.pt is not a safetensors file but a file that PyTorch before 1.6 wrote" + convert);
  CHECK(has(refusal("npz", zip_of("0.weight.npy")), "but a .npz file of NumPy; save its arrays"));
  CHECK(has(refusal("npy", "\x93NUMPY\x01\x00"sv), "but a .npy file of NumPy; save its arrays"));
  CHECK(has(refusal("h5", "\x89HDF\r\n\x1a\n"sv), "but an HDF5 file (Keras, h5py); load"));
  CHECK(has(refusal("gguf", "GGUF\x03\0\0\0\xff"sv), "but a GGUF file (llama.cpp); give"));
  CHECK(has(refusal("zip", zip_of("a.txt")), "but a ZIP archive; give"));
  CHECK(has(refusal("bin", "\xff\xff\xff\xff\xff\xff\xff\xff"sv),
            "a header of 18446744073709551615"));
  CHECK(other_format({}, "w").empty());
  // Cut short within the name of a ZIP archive's first file.
  const std::string cut = zip_of("w/data.pkl").substr(0, 33);
  CHECK(has(other_format(std::as_bytes(std::span(cut)), "w"), "a ZIP archive"));
}

}  // namespace
}  // namespace dpt
