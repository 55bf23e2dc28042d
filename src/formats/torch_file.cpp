#include "formats/torch_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/half.h"
#include "base/units.h"
#include "formats/other_formats.h"
#include "formats/pickle.h"
#include "formats/zip.h"

namespace dpt {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are read as they lie");

struct Storage {
  std::string_view name;
  DType dtype;
  DType as;  // what its elements are read as
};
constexpr Storage kStorages[] = {
    {"FloatStorage", DType::f32, DType::f32}, {"DoubleStorage", DType::f64, DType::f32},
    {"HalfStorage", DType::f16, DType::f32},  {"BFloat16Storage", DType::bf16, DType::f32},
    {"LongStorage", DType::i64, DType::i64},  {"IntStorage", DType::i32, DType::i32},
    {"ByteStorage", DType::u8, DType::u8},    {"BoolStorage", DType::u8, DType::u8}};

constexpr std::string_view kUtils = "torch._utils";

// A tensor that is expanded, as by Tensor.expand(), has more elements than its storage.
constexpr uint64_t kMostExpanded = uint64_t{1} << 24;

bool allows(std::string_view module, std::string_view attribute) {
  if (module == "collections") return attribute == "OrderedDict";
  if (module == kUtils)
    return attribute == "_rebuild_tensor_v2" || attribute == "_rebuild_parameter";
  if (module != "torch") return false;
  // Types of elements that only other values in the file may have.
  if (attribute == "ShortStorage" || attribute == "CharStorage") return true;
  return attribute == "Size" ||
         std::ranges::find(kStorages, attribute, &Storage::name) != std::end(kStorages);
}

// The archive's members by their names behind the first folder: "data.pkl", "data/0".
class Archive {
 public:
  explicit Archive(const RandomAccessFile& file) : file_(file), members_(read_zip_directory(file)) {
    std::erase_if(members_, [](const ZipMember& m) { return m.name.find('/') == m.name.npos; });
    for (ZipMember& m : members_) m.name.erase(0, m.name.find('/') + 1);
    std::ranges::sort(members_, {}, &ZipMember::name);
  }

  const ZipMember* find(std::string_view name) const {
    const auto found = std::ranges::lower_bound(members_, name, {}, &ZipMember::name);
    return found != members_.end() && found->name == name ? &*found : nullptr;
  }

  // A member's content, of at most `most` bytes; empty if there is no such member.
  std::optional<std::string> content(std::string_view name, uint64_t most) const {
    const ZipMember* m = find(name);
    if (!m) return {};
    if (m->size > most)
      fail(Fault::data, "{}: its {} has {} bytes, more than {}", file_.path(), name, m->size, most);
    std::string out(m->size, '\0');
    file_.read(m->offset, std::as_writable_bytes(std::span(out)));
    return out;
  }

 private:
  const RandomAccessFile& file_;
  std::vector<ZipMember> members_;
};

std::string pickle_of(const Archive& archive, const RandomAccessFile& file) {
  const std::string& path = file.path();
  if (const auto order = archive.content("byteorder", 16); order && *order != "little")
    fail(Fault::data, "{} was written on a big-endian machine; load and save it on another", path);
  std::optional<std::string> out = archive.content("data.pkl", 16 * kMiB);
  if (!out) {
    std::vector<std::byte> head(std::min<uint64_t>(file.size(), kFormatBytes));
    file.read(0, head);
    fail(Fault::data, "{} is neither a safetensors file nor a state_dict of torch.save but {}",
         path, other_format(head, path));
  }
  return std::move(*out);
}

// Finds the tensors of a state_dict in a pickle.
class StateDict {
 public:
  StateDict(const Archive& archive, const Pickle& pickle, const std::string& path)
      : archive_(archive), pickle_(pickle), path_(path) {}

  void run(std::vector<TensorFile::Entry>& entries, std::vector<TorchFile::Stored>& stored) {
    const Value& dict = state_dict();
    std::set<std::string_view> names;
    for (size_t i = 0; i + 1 < dict.members.size(); i += 2) {
      const Value& key = pickle_[dict.members[i]];
      const Value* const call = tensor(dict.members[i + 1]);
      if (!call || key.kind != Kind::text) continue;
      name_ = key.text;
      if (name_.size() > 512) refuse("has a name of more than 512 bytes");
      if (!names.insert(name_).second) refuse("is there twice");
      if (entries.size() == 65536) fail(Fault::data, "{} holds more than 65536 tensors", path_);
      TorchFile::Stored where;
      const TensorDesc desc = read(*call, where);
      entries.push_back({.name = std::string(name_), .desc = desc, .offset = stored.size()});
      stored.push_back(where);
    }
  }

 private:
  using Kind = Pickle::Kind;
  using Value = Pickle::Value;
  using Ref = Pickle::Ref;

  [[noreturn]] void refuse(std::string_view why) const {
    fail(Fault::data, "{}: its tensor '{:.80}' {}", path_, name_, why);
  }

  // A dict, or an OrderedDict.
  bool is_dict(const Value& v) const {
    return v.kind == Kind::dict ||
           (v.kind == Kind::call && pickle_.is_name(v.items[0], "collections", "OrderedDict"));
  }

  // The call of _rebuild_tensor_v2 that makes a tensor or a parameter; null: it is something else.
  const Value* tensor(Ref ref) const {
    const Value* v = &pickle_[ref];
    if (v->kind != Kind::call) return nullptr;
    if (pickle_.is_name(v->items[0], kUtils, "_rebuild_parameter")) {
      const Value& arguments = pickle_[v->items[1]];
      if (arguments.items.empty()) return nullptr;
      v = &pickle_[arguments.items[0]];
      if (v->kind != Kind::call) return nullptr;
    }
    return pickle_.is_name(v->items[0], kUtils, "_rebuild_tensor_v2") ? v : nullptr;
  }

  bool holds_tensors(const Value& v) const {
    if (!is_dict(v)) return false;
    for (size_t i = 1; i < v.members.size(); i += 2)
      if (tensor(v.members[i])) return true;
    return false;
  }

  const Value& state_dict() const {
    const Value& root = pickle_.root();
    if (is_dict(root))
      for (const std::string_view wanted : kStateDictEntries)
        for (size_t i = 0; i + 1 < root.members.size(); i += 2)
          if (const Value& key = pickle_[root.members[i]];
              key.kind == Kind::text && key.text == wanted &&
              holds_tensors(pickle_[root.members[i + 1]]))
            return pickle_[root.members[i + 1]];
    if (holds_tensors(root)) return root;
    fail(Fault::data,
         "{} holds no state_dict; in Python, write torch.save(model.state_dict(), ...)", path_);
  }

  std::vector<int64_t> integers(Ref ref) const {
    const Value* v = &pickle_[ref];
    if (v->kind == Kind::call && pickle_.is_name(v->items[0], "torch", "Size")) {
      const Value& arguments = pickle_[v->items[1]];
      if (arguments.items.size() != 1) refuse("is damaged");
      v = &pickle_[arguments.items[0]];
    }
    if (v->kind != Kind::tuple && v->kind != Kind::list) refuse("is damaged");
    if (v->items.size() > Shape::kMaxRank)
      refuse(
          fmt::format("has {} dimensions; at most {} are read", v->items.size(), Shape::kMaxRank));
    std::vector<int64_t> out;
    for (const Ref item : v->items) out.push_back(integer(item));
    return out;
  }
  int64_t integer(Ref ref) const {
    const Value& v = pickle_[ref];
    if (v.kind != Kind::integer || v.number < 0) refuse("is damaged");
    return v.number;
  }

  // A storage: ("storage", its class, its key, the device, its number of elements).
  struct Found {
    const Storage* type = nullptr;
    uint64_t offset = 0, elements = 0;
  };
  Found storage(Ref ref) const {
    const Value& v = pickle_[ref];
    const Value* id = v.kind == Kind::persistent ? &pickle_[v.items[0]] : nullptr;
    if (!id || id->kind != Kind::tuple || id->items.size() != 5) refuse("is damaged");
    const Value &type = pickle_[id->items[1]], &key = pickle_[id->items[2]];
    if (type.kind != Kind::name || key.kind != Kind::text) refuse("is damaged");
    const auto known = std::ranges::find(kStorages, type.attribute, &Storage::name);
    if (known == std::end(kStorages))
      refuse(fmt::format("is a {}, which is not read", type.attribute));
    const ZipMember* const member = archive_.find(fmt::format("data/{:.40}", key.text));
    if (!member) refuse("has no bytes in the file");
    const auto elements = static_cast<uint64_t>(integer(id->items[4]));
    if (elements > member->size / size_of(known->dtype)) refuse("is cut short");
    return {.type = known, .offset = member->offset, .elements = elements};
  }

  // (storage, offset, size, stride, ...)
  TensorDesc read(const Value& call, TorchFile::Stored& out) const {
    const Value& arguments = pickle_[call.items[1]];
    if (arguments.items.size() < 4) refuse("is damaged");
    const Found found = storage(arguments.items[0]);
    const auto first = static_cast<uint64_t>(integer(arguments.items[1]));
    const std::vector<int64_t> extents = integers(arguments.items[2]),
                               strides = integers(arguments.items[3]);
    if (extents.size() != strides.size()) refuse("is damaged");
    check_inside(found, first, extents, strides);
    out = {.dtype = found.type->dtype, .offset = found.offset + first * size_of(found.type->dtype)};
    std::ranges::copy(strides, out.strides.begin());
    return {found.type->as, Shape(extents)};
  }

  // Every element lies in the storage. Elements of an expanded tensor are there once.
  void check_inside(const Found& found, uint64_t first, const std::vector<int64_t>& extents,
                    const std::vector<int64_t>& strides) const {
    constexpr std::string_view kOutside = "has elements outside of its storage";
    if (first > found.elements) refuse(kOutside);
    if (std::ranges::find(extents, 0) != extents.end()) return;
    const uint64_t most = std::max(found.elements, kMostExpanded);
    uint64_t count = 1, last = first;  // at most `most` and found.elements: nothing overflows
    for (size_t i = 0; i < extents.size(); ++i) {
      const auto extent = static_cast<uint64_t>(extents[i]),
                 stride = static_cast<uint64_t>(strides[i]);
      if (extent == 1) continue;
      if (stride > (found.elements - last) / (extent - 1)) refuse(kOutside);
      last += (extent - 1) * stride;
      if (extent > most / count)
        refuse(fmt::format("is expanded to more than {} elements; save a copy", kMostExpanded));
      count *= extent;
    }
    if (last >= found.elements) refuse(kOutside);
  }

  const Archive& archive_;
  const Pickle& pickle_;
  const std::string& path_;
  std::string_view name_;
};

// One element of the file as it is in `out`.
void convert(DType from, const std::byte* x, DType to, std::byte* y) {
  if (from == to) {
    std::memcpy(y, x, size_of(to));
    return;
  }
  float value = 0;
  if (from == DType::f64) {
    double wide = 0;
    std::memcpy(&wide, x, sizeof wide);
    value = static_cast<float>(wide);
  } else {
    uint16_t half = 0;
    std::memcpy(&half, x, sizeof half);
    value = from == DType::bf16 ? from_bf16(half) : from_f16(half);
  }
  std::memcpy(y, &value, sizeof value);
}

}  // namespace

TorchFile::TorchFile(const std::string& path) : file_(path) {
  const Archive archive(file_);
  const Pickle pickle(pickle_of(archive, file_), path, allows);
  StateDict(archive, pickle, path).run(entries_, stored_);
}

void TorchFile::read(const Entry& entry, std::span<std::byte> out) const {
  require(out.size() == entry.desc.bytes(), "a tensor is read into as many bytes as it has");
  if (out.empty()) return;
  const Stored& stored = stored_.at(entry.offset);
  const Shape& shape = entry.desc.shape;
  const auto plain = strides_of(shape, Layout::plain);
  bool contiguous = stored.dtype == entry.desc.dtype;
  size_t last = 0;  // the farthest element from the first
  for (int i = 0; i < shape.rank(); ++i) {
    const auto d = static_cast<size_t>(i);
    contiguous = contiguous && (shape[i] == 1 || stored.strides[d] == plain[d]);
    last += static_cast<size_t>((shape[i] - 1) * stored.strides[d]);
  }
  if (contiguous) return file_.read(stored.offset, out);
  const size_t from = size_of(stored.dtype), to = size_of(entry.desc.dtype);
  std::vector<std::byte> bytes((last + 1) * from);
  file_.read(stored.offset, bytes);
  std::array<int64_t, Shape::kMaxRank> at{};
  size_t source = 0;
  for (size_t e = 0; e < out.size() / to; ++e) {
    convert(stored.dtype, bytes.data() + source * from, entry.desc.dtype, out.data() + e * to);
    for (int i = shape.rank() - 1; i >= 0; --i) {  // the next element in row-major order
      const auto d = static_cast<size_t>(i);
      source += static_cast<size_t>(stored.strides[d]);
      if (++at[d] < shape[i]) break;
      source -= static_cast<size_t>(shape[i] * stored.strides[d]);
      at[d] = 0;
    }
  }
}

namespace {

std::string_view storage_of(DType dtype) {
  const auto found = std::ranges::find(kStorages, dtype, &Storage::dtype);
  require(found != std::end(kStorages), "an element type that PyTorch has");
  return found->name;
}

void add_integers(PickleWriter& out, std::span<const int64_t> values) {
  if (values.empty()) {
    out.empty_tuple();
    return;
  }
  out.mark();
  for (const int64_t v : values) out.integer(v);
  out.tuple();
}

void add_tensor(PickleWriter& out, const TensorDesc& desc, size_t key) {
  const Shape& shape = desc.shape;
  const auto strides = strides_of(shape, Layout::plain);
  out.name(kUtils, "_rebuild_tensor_v2").mark();
  out.mark().text("storage").name("torch", storage_of(desc.dtype));
  out.text(std::to_string(key)).text("cpu").integer(shape.elements()).tuple().persistent();
  out.integer(0);
  add_integers(out, shape.extents());
  add_integers(out, std::span(strides).first(static_cast<size_t>(shape.rank())));
  out.boolean(false);
  out.name("collections", "OrderedDict").empty_tuple().call();  // no hooks
  out.tuple().call();
}

std::string state_dict_pickle(std::span<const NamedTensor> tensors) {
  PickleWriter out;
  out.name("collections", "OrderedDict").empty_tuple().call().mark();
  for (size_t i = 0; i < tensors.size(); ++i) {
    out.text(tensors[i].name);
    add_tensor(out, tensors[i].desc, i);
  }
  return out.set_items().finish();
}

}  // namespace

void write_torch(const std::string& path, std::span<const NamedTensor> tensors, Disk* disk) {
  const std::string pickle = state_dict_pickle(tensors);
  constexpr std::string_view kVersion = "3\n", kOrder = "little";
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  ZipWriter zip;
  zip.add("archive/data.pkl", bytes(pickle));
  zip.add("archive/byteorder", bytes(kOrder));
  for (size_t i = 0; i < tensors.size(); ++i)
    zip.add(fmt::format("archive/data/{}", i), {tensors[i].data, tensors[i].desc.bytes()});
  zip.add("archive/version", bytes(kVersion));
  const auto parts = zip.finish();
  Disk machines_own;
  write_file(disk ? *disk : machines_own, path,
             std::vector<BytesToWrite>(parts.begin(), parts.end()));
}

}  // namespace dpt
