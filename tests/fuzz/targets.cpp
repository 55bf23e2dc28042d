#include "fuzz/targets.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "checkpoint/train_state.h"
#include "comm/endpoint.h"
#include "comm/hosts/messages.h"
#include "comm/hosts/tcp_store.h"
#include "comm/slurm_nodes.h"
#include "data/cifar_files.h"
#include "data/readers/csv.h"
#include "data/readers/idx.h"
#include "data/readers/image.h"
#include "data/readers/npy.h"
#include "data/readers/tar.h"
#include "formats/json.h"
#include "formats/safetensors.h"
#include "formats/safetensors_header.h"
#include "formats/torch_file.h"
#include "layers/model.h"
#include "session/session.h"
#include "spec/node.h"

namespace dpt::fuzz {
namespace {

void expect(bool ok, const std::string& what) {
  if (!ok) throw std::logic_error(what);
}

// A file in memory that readers open by its path.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes) : fd_(::memfd_create("fuzz", 0)) {
    const auto size = static_cast<ssize_t>(bytes.size());
    expect(::write(fd_, bytes.data(), bytes.size()) == size, "memfd cannot be written");
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

 private:
  int fd_;
};

// What a reader gives, or nothing where it refuses the data with a message.
template <class F>
auto unless_refused(F read, Fault fault = Fault::data) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& e) {
    expect(e.fault() == fault, fmt::format("an error of another kind: {}", e.what()));
    expect(!std::string_view(e.what()).empty(), "a refusal without a word");
    return std::nullopt;
  }
}

void check_table(const Table& t) {
  expect(t.desc.shape.rank() > 0 && t.desc.shape.elements() > 0, "an empty table");
  unsigned sum = 0;  // every byte is there to be read
  for (size_t i = 0; i < t.desc.bytes(); ++i) sum += std::to_integer<unsigned>(t.data[i]);
  expect(sum <= 255 * t.desc.bytes(), "");
}

bool same(const Table& a, const Table& b) {
  return a.desc == b.desc && std::memcmp(a.data.get(), b.data.get(), a.desc.bytes()) == 0;
}

std::vector<std::byte> gzip(std::span<const std::byte> bytes) {
  z_stream s{};
  constexpr int kGzip = 16;
  expect(deflateInit2(&s, 1, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
  std::vector<std::byte> out(deflateBound(&s, bytes.size()));
  s.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  s.avail_in = static_cast<uInt>(bytes.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data());
  s.avail_out = static_cast<uInt>(out.size());
  expect(deflate(&s, Z_FINISH) == Z_STREAM_END, "zlib");
  out.resize(s.total_out);
  deflateEnd(&s);
  return out;
}

// Plain bytes; what is compressed must come out the same.
void idx(std::span<const std::byte> bytes) {
  const MemoryFile plain(bytes), compressed(gzip(bytes));
  const auto table = unless_refused([&] { return read_idx(plain.path()); });
  const auto header = unless_refused([&] { return read_idx_header(plain.path()); });
  if (!table) return;
  check_table(*table);
  expect(header && *header == table->desc, "the header alone says something else");
  const bool gzip_itself = bytes.size() > 1 && bytes[0] == std::byte{0x1f};
  const auto again = unless_refused([&] { return read_idx(compressed.path()); });
  expect(gzip_itself || (again && same(*again, *table)),
         "compressed, it is read as something else");
}

void idx_gzip(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  if (const auto table = unless_refused([&] { return read_idx(file.path()); })) check_table(*table);
}

void npy(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  if (const auto table = unless_refused([&] { return read_npy(file.path()); })) check_table(*table);
}

void csv(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  using enum CsvFormat::HeaderLine;
  for (const CsvFormat& format :
       {CsvFormat{}, CsvFormat{.delimiter = '\t', .header = no},
        CsvFormat{.delimiter = ' ', .header = yes}, CsvFormat{.delimiter = ';', .decimal = ','}}) {
    const auto table = unless_refused([&] { return read_csv(file.path(), format); });
    if (!table) continue;
    expect(table->rows > 0 && table->columns() > 0, "an empty table");
    expect(format.header == automatic || table->header == (format.header == yes), "a lost line");
    expect(table->values.size() == table->rows * table->columns(), "rows of several lengths");
    for (double x : table->values) expect(std::isfinite(x), "not a finite number");
  }
  using enum CsvFormat::Missing;
  for (const auto missing : {keep, drop}) {
    const CsvFormat format{
        .text_columns = {{.column = 0}}, .missing = missing, .advise_keys = true};
    const auto table = unless_refused([&] { return read_csv(file.path(), format); });
    if (!table) continue;
    expect(table->values.size() == table->rows * table->columns(), "rows of several lengths");
    for (size_t i = 0; i < table->values.size(); ++i) {
      const double x = table->values[i];
      const auto& texts = table->texts[i % table->columns()];
      expect(std::isfinite(x) || missing == keep, "a missing value");
      if (!texts.empty() && std::isfinite(x))
        expect(static_cast<size_t>(x) < texts.size(), "an unknown text");
    }
  }
}

// An archive, each of whose members is records, and records alone.
void cifar(std::span<const std::byte> bytes) {
  const CifarFormat format{.name = "cifar", .labels = 2, .label = 1, .classes = 100};
  CifarRecords records;
  const auto append = [&](std::span<const std::byte> file) {
    unless_refused([&] { return records.append(format, file, "records"), 0; });
  };
  append(bytes);
  const MemoryFile file(bytes);
  unless_refused([&] {
    read_tar(
        file.path(), uint64_t{1} << 20, [](std::string_view name) { return !name.ends_with("/"); },
        [&](const TarMember& m) { append(m.bytes()); });
    return 0;
  });
  expect(records.pixels.size() == records.labels.size() * 3072, "a label without its pixels");
  for (const int32_t l : records.labels) expect(l >= 0 && l < 100, "a label that is no class");
}

// What is read is resized, too.
void image(std::span<const std::byte> bytes) {
  const auto read = unless_refused([&] { return decode_image(bytes, "image"); });
  if (!read || read->height * read->width > 1 << 16) return;
  expect(read->pixels.size() == static_cast<size_t>(read->height * read->width * 3), "a lost row");
  expect(resized(*read, 5, 7).pixels.size() == 5 * 7 * 3, "resized to another size");
}

// What is read and written must be read the same.
void safetensors(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  const auto read = unless_refused([&] { return SafeTensors::read(file.path()); });
  if (!read) return;
  SafeTensorsHeader header;
  header.metadata = read->metadata();
  uint64_t end = 0;
  for (const SafeTensors::Entry& e : read->entries()) {
    header.rows.push_back({e.name, e.desc, end, end + e.desc.bytes()});
    end += e.desc.bytes();
    expect(read->find(e.name) == &e, "a tensor is not found by its name");
  }
  const SafeTensorsFile one_by_one(file.path());
  expect(one_by_one.entries().size() == read->entries().size(), "opened, it has other tensors");
  for (const SafeTensors::Entry& e : read->entries()) {
    const SafeTensorsFile::Entry* found = one_by_one.find(e.name);
    expect(found && found->desc == e.desc, "opened, a tensor is another");
    std::vector<std::byte> alone(e.desc.bytes());
    one_by_one.read(*found, alone);
    expect(alone.empty() || std::memcmp(alone.data(), e.data, alone.size()) == 0,
           "read alone, a tensor is another");
  }
  const SafeTensorsHeader again =
      parse_safetensors_header(safetensors_header_json(header), "written");
  expect(again.metadata == header.metadata && again.rows.size() == header.rows.size(),
         "written, the header is another");
  for (size_t i = 0; i < again.rows.size(); ++i)
    expect(again.rows[i].name == header.rows[i].name && again.rows[i].desc == header.rows[i].desc,
           "written, a tensor is another");
}

// A state_dict of torch.save: every tensor can be read.
void torch_file(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  unless_refused([&] {
    const TorchFile read(file.path());
    for (const TensorFile::Entry& e : read.entries()) {
      constexpr uint64_t kMostExpanded = uint64_t{1} << 24;  // elements, of 8 bytes at most
      expect(e.desc.bytes() <= std::max<uint64_t>(4 * bytes.size(), 8 * kMostExpanded),
             "a tensor has more elements than the file, and is not expanded");
      std::vector<std::byte> out(e.desc.bytes());
      read.read(e, out);
    }
    return true;
  });
}

// What is read and written must be read the same, and of a text that is cut off the start is kept.
void json(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  JsonError error;
  const auto read = Json::parse(text, {}, &error);
  expect(read || (!error.what.empty() && error.offset <= text.size()), "a refusal without a place");
  const auto start = Json::parse(text, {.python = true, .keep_start = true});
  expect(!read || (start && *start == *read), "with more rules, the value is another");
  if (!read) return;
  for (const std::string& again : {read->dump(), read->dense(), read->lines(10)})
    expect(Json::parse(again)->dump() == read->dump(), "written, the value is another");
}

// What a checkpoint says of its run; what is accepted must read back the same.
void state(std::span<const std::byte> bytes) {
  const std::string json(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto read = unless_refused([&] { return train_state_of(json, "state.json"); });
  if (!read) return;
  const std::string again = to_json(*read);
  expect(to_json(train_state_of(again, "again.json")) == again, "written, the state is another");
}

// The text of a spec; a first line "#= key=value" is an argument. What is accepted must read back
// the same, and its model is lowered for images and for numbers.
void spec(std::span<const std::byte> bytes) {
  const SourceFile file{"fuzz.yaml", {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
  const Registries words = registries();
  Diagnostics d;
  Node root = read_yaml(file, d);
  const std::string first(file.line(1));
  const SourceFile argument{first.substr(std::min<size_t>(3, first.size())),
                            first.substr(std::min<size_t>(3, first.size()))};
  if (first.starts_with("#= ")) apply_override(root, argument, words, d);
  const Spec spec = read_spec(root, words, d);
  expect(d.ok() == d.render().empty(), "refused without a word, or accepted with one");
  if (!d.ok()) return;
  const SourceFile again{"again.yaml", to_yaml(root)};
  Diagnostics fresh;
  const Node second = read_yaml(again, fresh);
  read_spec(second, words, fresh);
  expect(fresh.ok(), "what was accepted is refused when written again:\n" + fresh.render());
  expect(to_yaml(second) == again.text, "what is written again is another text");
  for (const TensorDesc& input :
       {TensorDesc{DType::f32, {4, 1, 28, 28}}, TensorDesc{DType::i32, {4, 7}}}) {
    Diagnostics about_shapes;
    const TensorDesc target{DType::i32, {4}};
    build_graph(spec, {.input = input, .target = target}, about_shapes);
    expect(about_shapes.ok() == about_shapes.render().empty(), "refused without a word");
  }
}

// Frames as they come from a connection, in pieces. No more memory is used than was allowed.
void read_frames(std::span<const std::byte> bytes, size_t piece) {
  constexpr size_t kMost = 300;
  FrameReader reader;
  reader.accept(FrameType::gather, kMost);
  reader.accept(FrameType::goodbye, 0);
  reader.accept(FrameType::beat, kBeatBytes);
  while (!bytes.empty()) {
    const std::span<std::byte> space = reader.space();
    expect(space.size() <= kFrameHeader + kMost + sizeof(Digest), "too much memory");
    const size_t n = std::min({space.size(), bytes.size(), piece});
    expect(n > 0, "no space");
    std::copy_n(bytes.begin(), n, space.begin());
    bytes = bytes.subspan(n);
    const std::optional<Frame> frame = reader.take(n);
    if (!frame) continue;
    expect(frame->payload.size() <= kMost, "a long frame");
    if (frame->type == FrameType::beat) decode_beat(frame->payload);
  }
}

// The answers of what may be torchrun's store.
void read_store(std::span<const std::byte> bytes) {
  int ends[2] = {-1, -1};
  expect(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "no socket pair");
  const Descriptor there(ends[0]);
  const auto size = static_cast<ssize_t>(bytes.size());
  expect(::send(there.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == size, "not sent");
  ::shutdown(there.get(), SHUT_WR);
  const TcpAddress at = numeric_address("127.0.0.1", 1).value();
  TcpStore store(Descriptor(ends[1]), at, deadline_in(1));
  store.set("key", "value", deadline_in(1));
  for (int i = 0; i < 3; ++i) store.get("key", deadline_in(1));
}

// What other hosts, and strangers, send to a host. The first byte says which of it this is.
void hosts(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto kind = std::to_integer<unsigned>(bytes[0]);
  bytes = bytes.subspan(1);
  const auto same = [&](const std::vector<std::byte>& again) {
    expect(std::ranges::equal(again, bytes), "written, the message is another");
    return true;
  };
  const std::string text = decode_text(bytes);
  unless_refused(
      [&] {
        switch (kind % 8) {
          case 0:
            read_frames(bytes, 1 + kind / 8);
            return true;
          case 1:
            return same(encode(decode_hello(bytes)));
          case 2:
            decode_welcome(bytes, 16);
            return true;
          case 3:
            return same(encode(decode_beat(bytes)));
          case 4:
            return same(encode(decode_gathered(bytes, 3)));
          case 5:
            read_store(bytes);
            return true;
          case 6:
            if (const auto e = parse_endpoint(text))
              parse_endpoint(endpoint_text(e->host, e->port));
            return true;
          default:
            first_slurm_node(text);
            return slurm_tasks_per_node(text).has_value();
        }
      },
      Fault::rank);
}

constexpr Target kTargets[] = {{"spec", spec},
                               {"idx", idx},
                               {"idx_gzip", idx_gzip},
                               {"npy", npy},
                               {"csv", csv},
                               {"cifar", cifar},
                               {"image", image},
                               {"safetensors", safetensors},
                               {"torch_file", torch_file},
                               {"json", json},
                               {"state", state},
                               {"hosts", hosts}};

}  // namespace

std::span<const Target> targets() { return kTargets; }

}  // namespace dpt::fuzz
