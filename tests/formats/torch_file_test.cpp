// Reads tests/fixtures/state_dict.pt, which state_dict.py has written with PyTorch; damaged and
// hostile files are made here. tests/formats/torch_files.py reads written files with PyTorch.
#include "formats/torch_file.h"

#include <cstring>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "formats/pickle.h"
#include "formats/zip.h"
#include "paths.h"

namespace dpt {
namespace {

template <class T>
std::vector<T> values(const TensorFile& file, const std::string& name) {
  const TensorFile::Entry* e = file.find(name);
  REQUIRE_MESSAGE(e, name);
  std::vector<T> out(static_cast<size_t>(e->desc.shape.elements()));
  file.read(*e, std::as_writable_bytes(std::span(out)));
  return out;
}

// An archive of torch.save with this pickle and 24 bytes of one storage.
std::string archive(const std::string& pickle, const std::string& order = "little") {
  ZipWriter zip;
  const std::string storage(24, '\1');
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  zip.add("x/data.pkl", bytes(pickle));
  zip.add("x/byteorder", bytes(order));
  zip.add("x/data/0", bytes(storage));
  std::string out;
  for (const std::span<const std::byte> part : zip.finish())
    out.append(reinterpret_cast<const char*>(part.data()), part.size());
  return out;
}

struct Made {
  std::string storage = "FloatStorage", key = "0";
  int64_t elements = 6, offset = 0;
  std::vector<int64_t> sizes = {2, 3}, strides = {3, 1};
};

void add_tensor(PickleWriter& out, const Made& t) {
  out.name("torch._utils", "_rebuild_tensor_v2").mark();
  out.mark().text("storage").name("torch", t.storage).text(t.key).text("cpu");
  out.integer(t.elements).tuple().persistent().integer(t.offset);
  for (const auto* list : {&t.sizes, &t.strides}) {
    out.mark();
    for (const int64_t i : *list) out.integer(i);
    out.tuple();
  }
  out.boolean(false).name("collections", "OrderedDict").empty_tuple().call().tuple().call();
}

// The message for a state_dict with this tensor; empty if it is read.
std::string refusal(const Made& t) {
  PickleWriter out;
  out.name("collections", "OrderedDict").empty_tuple().call().mark().text("w");
  add_tensor(out, t);
  const Folder folder;
  const std::string path = folder.write("w.pt", archive(out.set_items().finish()));
  const std::string message = data_error([&] { TorchFile{path}; });
  return message.empty() ? "" : message.substr(path.size() + 2);
}

}  // namespace

TEST_CASE("a state_dict as PyTorch writes it") {
  const TorchFile file(test_file("fixtures/state_dict.pt"));
  using Floats = std::vector<float>;
  CHECK(file.entries().size() == 9);
  CHECK(file.find("plain")->desc == TensorDesc{DType::f32, {2, 3}});
  CHECK(values<float>(file, "plain") == Floats{0, 1, 2, 3, 4, 5});
  CHECK(values<float>(file, "parameter") == Floats{1.5, -2});
  CHECK(file.find("transposed")->desc.shape == Shape{3, 2});
  CHECK(values<float>(file, "transposed") == Floats{0, 3, 1, 4, 2, 5});
  CHECK(values<float>(file, "view") == Floats{4, 5});
  CHECK(values<float>(file, "half") == Floats{0.5, 65504});
  CHECK(values<float>(file, "bfloat16") == Floats{1, -3});
  CHECK(file.find("double")->desc.dtype == DType::f32);
  CHECK(values<float>(file, "double") == Floats{0.1F, 1e-30F});
  CHECK(file.find("count")->desc == TensorDesc{DType::i64, {}});
  CHECK(values<int64_t>(file, "count") == std::vector<int64_t>{7});
  CHECK(values<uint8_t>(file, "mask") == std::vector<uint8_t>{1, 0});
}

TEST_CASE("a state_dict in a checkpoint with other values") {
  const Folder folder;
  for (const std::string key : {"state_dict", "model_state_dict", "model"}) {
    PickleWriter out;
    out.name("collections", "OrderedDict").empty_tuple().call().mark();
    out.text("epoch").integer(3).text("best_acc1");
    add_tensor(out, {});
    out.text(key).name("collections", "OrderedDict").empty_tuple().call().mark().text("w");
    add_tensor(out, {});
    out.set_items().set_items();
    const TorchFile file(folder.write("w.pt", archive(out.finish())));
    REQUIRE(file.entries().size() == 1);
    CHECK(file.entries()[0].name == "w");
  }
}

TEST_CASE("tensors that do not fit their storage are refused") {
  CHECK(refusal({}).empty());
  CHECK(refusal({.elements = 7}) == "its tensor 'w' is cut short");
  CHECK(refusal({.storage = "LongStorage"}) == "its tensor 'w' is cut short");
  CHECK(refusal({.key = "1"}) == "its tensor 'w' has no bytes in the file");
  CHECK(refusal({.storage = "CharStorage"}) ==
        "its tensor 'w' is a CharStorage, which is not read");
  const std::string outside = "its tensor 'w' has elements outside of its storage";
  CHECK(refusal({.offset = 1}) == outside);
  CHECK(refusal({.sizes = {2, 3}, .strides = {4, 1}}) == outside);
  CHECK(refusal({.sizes = {7}, .strides = {0}}).empty());  // expanded
  CHECK(refusal({.sizes = {int64_t{1} << 62, 4}, .strides = {4, 1}}) == outside);
  CHECK(refusal({.sizes = {int64_t{1} << 62, 4}, .strides = {0, 1}}) ==
        "its tensor 'w' is expanded to more than 16777216 elements; save a copy");
  CHECK(refusal({.sizes = {2, 2}, .strides = {INT64_MAX, 1}}) == outside);
  CHECK(refusal({.offset = 7, .sizes = {0}, .strides = {1}}) == outside);
  CHECK(refusal({.offset = 6, .sizes = {0, 3}, .strides = {1, 1}}).empty());
  CHECK(refusal({.sizes = {2}, .strides = {}}) == "its tensor 'w' is damaged");
  CHECK(refusal({.sizes = {-1}, .strides = {1}}) == "its tensor 'w' is damaged");
  CHECK(refusal({.sizes = {1, 1, 1, 1, 1, 1, 1}, .strides = {1, 1, 1, 1, 1, 1, 1}}) ==
        "its tensor 'w' has 7 dimensions; at most 6 are read");
}

TEST_CASE("files that hold something else than a state_dict are refused by name") {
  const Folder folder;
  const auto refused = [&](const std::string& content) {
    const std::string path = folder.write("w.pt", content);
    return data_error([&] { open_tensor_file(path); }).substr(path.size());
  };
  // torch.save(model): a class of the user's program.
  CHECK(refused(archive("\x80\x02"
                        "c__main__\nNet\n)\x81.")) ==
        ": its pickle is not read, at byte 2: it refers to __main__.Net, and dptrain runs no code "
        "from files; save the model's state_dict() alone");
  CHECK(refused(archive("\x80\x02]K\x01"
                        "a.")) ==
        " holds no state_dict; in Python, write torch.save(model.state_dict(), ...)");
  CHECK(has(refused(archive("\x80\x02}.", "big")), "was written on a big-endian machine"));
  ZipWriter zip;
  zip.add("0.weight.npy", {});
  std::string npz;
  for (const std::span<const std::byte> part : zip.finish())
    npz.append(reinterpret_cast<const char*>(part.data()), part.size());
  CHECK(has(refused(npz), "nor a state_dict of torch.save but a .npz file of NumPy; save"));
  CHECK(has(refused("PK\x03\x04" + std::string(30, '\0')), "is a damaged ZIP archive"));
}

TEST_CASE("a state_dict that is written is read") {
  const Folder folder;
  const float weight[] = {1, -2.5F, 3, 4};
  const int64_t count = -9;
  const auto bytes = [](const auto* p) { return reinterpret_cast<const std::byte*>(p); };
  const NamedTensor tensors[] = {{"0.weight", {DType::f32, {2, 2}}, bytes(weight)},
                                 {"1.num_batches_tracked", {DType::i64, {}}, bytes(&count)},
                                 {"none", {DType::f32, {0, 4}}, nullptr}};
  const std::string path = folder.file("w.pt");
  write_torch(path, tensors);
  const std::unique_ptr<const TensorFile> file = open_tensor_file(path);
  REQUIRE(file->entries().size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(file->entries()[i].name == tensors[i].name);
    CHECK(file->entries()[i].desc == tensors[i].desc);
  }
  CHECK(values<float>(*file, "0.weight") == std::vector<float>{1, -2.5F, 3, 4});
  CHECK(values<int64_t>(*file, "1.num_batches_tracked") == std::vector<int64_t>{-9});
}

}  // namespace dpt
