#include "checkpoint/store.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/files.h"
#include "base/stderr.h"
#include "base/units.h"
#include "checkpoint/model_file.h"
#include "checkpoint/named_tensors.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStep = "step-";
constexpr std::string_view kFolder = "checkpoints", kPrevious = "checkpoints.previous";
constexpr const char *kMetrics = "metrics.jsonl", *kData = "data.json";
constexpr const char* kManifest = "manifest.txt";
constexpr const char* kFiles[] = {"model.safetensors", "optimizer.safetensors", "state.json",
                                  "spec.resolved.yaml"};

class Checksum {
 public:
  void add(std::span<const std::byte> bytes) {
    size_ += bytes.size();
    value_ = crc32_z(value_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  }
  std::string line(std::string_view name) const {
    return fmt::format("{} {} bytes, crc32 {:08x}\n", name, size_, value_);
  }

 private:
  uint64_t size_ = 0;
  uLong value_ = crc32_z(0, nullptr, 0);
};

constexpr size_t kMostManifest = 4 * kKiB;  // it has five short lines
constexpr std::string_view kFirstLine = "dptrain checkpoint 1\n";

// A file's line in the manifest; empty if the file cannot be read.
std::string line_of(const std::string& folder, const char* name) {
  std::ifstream in(folder + "/" + name, std::ios::binary);
  if (!in) return "";
  Checksum sum;
  std::vector<char> bytes(64 * kKiB);
  while (in.read(bytes.data(), static_cast<std::streamsize>(bytes.size())) || in.gcount() > 0)
    sum.add(std::as_bytes(std::span(bytes).first(static_cast<size_t>(in.gcount()))));
  return in.bad() ? "" : sum.line(name);
}

std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kStep)) return {};
  int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kStep.size(), end, step);
  if (error != std::errc() || at != end || step < 0) return {};
  return step;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    out.push_back(at->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    fail(Fault::data, "{} cannot be read: {}; fix that, or choose another folder with out=DIR",
         folder, error.message());
  return out;
}

}  // namespace

std::string checkpoint_folder(const std::string& run_folder) {
  return fmt::format("{}/{}", run_folder, kFolder);
}

std::vector<std::string> previous_folders(const std::string& run_folder) {
  std::vector<std::string> out;
  for (const std::string& name : names_in(run_folder))
    if (name.starts_with(kPrevious)) out.push_back(run_folder + "/" + name);
  std::ranges::sort(out);
  return out;
}

// By names only, without resolving links: the checkpoint folder may be a link to another disk.
std::string metrics_of(const std::string& checkpoint) {
  fs::path path = fs::absolute(checkpoint).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "step-000938/"
  const fs::path folder = path.parent_path();
  const std::string name = folder.filename().string();
  if (name == kFolder) return (folder.parent_path() / kMetrics).string();
  return name.starts_with(kPrevious) ? (folder / kMetrics).string() : "";
}

std::vector<CheckpointName> checkpoints_in(const std::string& folder) {
  std::vector<CheckpointName> out;
  for (const std::string& name : names_in(folder))
    if (const auto step = step_of(name)) out.push_back({*step, folder + "/" + name});
  std::ranges::sort(out, std::greater{}, &CheckpointName::step);
  return out;
}

// Compares the manifest with one rebuilt from the files, so that every byte of it is checked.
std::string damage(const std::string& checkpoint) {
  std::string found;
  try {
    found = read_file(fmt::format("{}/{}", checkpoint, kManifest), kMostManifest);
  } catch (const Error& e) {
    return e.what();
  }
  if (!found.starts_with(kFirstLine))
    return fmt::format("its {} is damaged, or was written by another version of dptrain",
                       kManifest);
  std::string expected(kFirstLine);
  for (const char* name : kFiles) {
    // Compare sizes first, which is cheap; pipes and devices have none.
    std::error_code error;
    const uintmax_t bytes = fs::file_size(fmt::format("{}/{}", checkpoint, name), error);
    if (!error && found.find(fmt::format("{} {} bytes, ", name, bytes)) == found.npos)
      return fmt::format("its {} is damaged: it has {} bytes, and {} lists another size", name,
                         bytes, kManifest);
    const std::string line = error ? "" : line_of(checkpoint, name);
    if (line.empty()) return fmt::format("its {} cannot be read", name);
    if (found.find(line) == found.npos)
      return fmt::format("its {} is damaged: its checksum is not the one in {}", name, kManifest);
    expected += line;
  }
  return found == expected ? "" : fmt::format("its {} is damaged", kManifest);
}

CheckpointStore::CheckpointStore(const Session& session, std::string run_folder,
                                 std::string resolved_spec, std::string resumed, Disk& disk)
    : session_(session),
      run_folder_(std::move(run_folder)),
      folder_(checkpoint_folder(run_folder_)),
      spec_(std::move(resolved_spec)),
      resumed_(std::move(resumed)),
      disk_(disk) {}

std::vector<CheckpointName> set_aside(Disk& disk, const std::string& run_folder,
                                      const std::string& resumed) {
  const std::string folder = checkpoint_folder(run_folder);
  remove_asides(disk, folder);
  std::vector<CheckpointName> others = checkpoints_in(folder);
  std::error_code error;
  const auto own = std::ranges::find_if(others, [&](const CheckpointName& c) {
    return !resumed.empty() && fs::equivalent(c.path, resumed, error);
  });
  others.erase(own, others.end());  // keep the resumed checkpoint and older ones in place
  if (others.empty()) return others;
  const std::string first = fmt::format("{}/{}", run_folder, kPrevious);
  std::string to = first;
  for (int n = 2; fs::exists(to, error); ++n) to = fmt::format("{}-{}", first, n);
  const auto check = [&](int result) {
    if (result != 0)
      fail(Fault::failed,
           "checkpoints of an earlier run cannot be moved from {} to {}: {}; choose another folder "
           "with out=DIR",
           folder, to, std::generic_category().message(errno));
  };
  check(disk.make_folder(to));
  for (const char* file : {kMetrics, kData})
    fs::copy_file(fmt::format("{}/{}", run_folder, file), fmt::format("{}/{}", to, file), error);
  for (CheckpointName& c : others) {
    const std::string path = to + c.path.substr(folder.size());
    check(disk.rename(std::exchange(c.path, path), path));
  }
  return others;
}

std::vector<std::string> forget_previous(Disk& disk, const std::string& run_folder,
                                         const std::vector<CheckpointName>& moved,
                                         const std::string& resumed) {
  constexpr size_t kStay = 3;
  constexpr int64_t kAnyway = std::numeric_limits<int64_t>::max();
  const auto lies_in = [](const std::string& checkpoint, const std::string& folder) {
    std::error_code error;
    return !checkpoint.empty() && fs::equivalent(fs::path(checkpoint) / "..", folder, error);
  };
  std::vector<CheckpointName> all;
  for (const std::string& folder : previous_folders(run_folder)) {
    const std::vector<CheckpointName> left = checkpoints_in(folder);
    const bool stays =
        (!moved.empty() && lies_in(moved[0].path, folder)) || lies_in(resumed, folder);
    all.push_back({stays ? kAnyway : left.empty() ? -1 : left[0].step, folder});
  }
  std::ranges::stable_sort(all, std::ranges::greater{}, &CheckpointName::step);
  std::vector<std::string> out;
  for (size_t i = kStay; i < all.size(); ++i)
    if (disk.remove(all[i].path) == 0) out.push_back(all[i].path);
  return out;
}

void CheckpointStore::write(const TrainState& state, const Buffers& buffers,
                            std::span<float> own_states) {
  const std::string path = fmt::format("{}/{}{:06}", folder_, kStep, state.step);
  std::error_code error;
  if (!resumed_.empty() && fs::exists(path, error))
    return;  // the checkpoint that the run resumed from; no step was done since
  wait_for_removal();
  try {
    full_ =
        retry_with_space(full_ ? "" : path, [&] { write_files(path, state, buffers, own_states); });
  } catch (const std::exception& e) {
    if (!std::exchange(warned_, true))
      print_stderr(
          "the checkpoint of step {} could not be written: {}; the run continues and keeps earlier "
          "checkpoints\n",
          state.step, e.what());
    return;
  }
  warned_ = false;
  newest_ = path;
  remove_old();
}

bool CheckpointStore::retry_with_space(const std::string& what,
                                       const std::function<void()>& write) {
  for (bool removed = false;; removed = true) {
    try {
      write();
      return removed;
    } catch (const DiskFull&) {
      wait_for_removal();
      const std::vector<CheckpointName> all = checkpoints_in(folder_);
      if (all.size() < 2 || !remove_folder(disk_, all.back().path)) throw;
      if (what.empty()) continue;
      print_stderr("the disk is full: {} is removed to make room for {}\n", all.back().path, what);
    }
  }
}

void CheckpointStore::write_files(const std::string& path, const TrainState& state,
                                  const Buffers& buffers, std::span<float> own_states) {
  const std::vector<NamedTensor> model = model_tensors(session_.model, buffers);
  const auto states = state_tensors(session_.settings, session_.model, [&](int i) {
    const size_t stride = session_.model.layout.trainable;
    return own_states.empty() ? buffers.state(i)
                              : own_states.data() + static_cast<size_t>(i) * stride;
  });
  auto facts = model_facts(session_.precision, state.scaler);
  facts["step"] = fmt::format("{}", state.step);
  const std::string texts[] = {safetensors_head(model, facts),
                               safetensors_head(states, {{"format", "pt"}}), to_json(state), spec_};
  std::vector<FileContent> files;
  for (size_t i = 0; i < std::size(kFiles); ++i)
    files.push_back({kFiles[i], {std::as_bytes(std::span(texts[i]))}});
  for (const NamedTensor& t : model) files[0].parts.push_back(t.bytes());
  for (const NamedTensor& t : states) files[1].parts.push_back(t.bytes());
  std::string manifest(kFirstLine);
  for (const FileContent& file : files) {
    Checksum sum;
    for (const BytesToWrite& part : file.parts) part.pass([&](auto bytes) { sum.add(bytes); });
    manifest += sum.line(file.name);
  }
  files.push_back({kManifest, {std::as_bytes(std::span(manifest))}});

  if (make_folders(disk_, folder_) != 0) fail_writing(folder_);
  write_folder(disk_, path, files);
}

// In the background: removing large files takes the disk as long as writing them.
void CheckpointStore::remove_old() {
  removing_ = start_beside([this] {
    const std::vector<CheckpointName> all = checkpoints_in(folder_);
    const auto keep = static_cast<size_t>(session_.settings.spec.save.keep);
    for (size_t i = keep; i < all.size(); ++i)
      if (!remove_folder(disk_, all[i].path))
        fail(Fault::failed, "{}: {}", all[i].path, std::generic_category().message(errno));
  });
}

void CheckpointStore::wait_for_removal() noexcept {
  if (!removing_.valid()) return;
  try {
    removing_.get();
    warned_of_removal_ = false;
  } catch (const std::exception& e) {
    if (!std::exchange(warned_of_removal_, true))
      print_stderr(
          "old checkpoints could not be removed: {}; the run continues, and more than "
          "`save.keep` checkpoints may stay\n",
          e.what());
  }
}

void CheckpointStore::finish() {
  if (newest_.empty()) return;
  for (const std::string& folder : previous_folders(run_folder_)) disk_.remove(folder);
}

}  // namespace dpt
