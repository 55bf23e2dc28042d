#include "train/run_start.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/stderr.h"
#include "checkpoint/store.h"
#include "train/reporter.h"
#include "train/run_data.h"
#include "train/run_directories.h"
#include "train/run_folder.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

constexpr double kPatience = 0.5;  // seconds; ranks of a killed run end a moment later
constexpr std::string_view kAuto = "auto";
constexpr std::chrono::milliseconds kPoll{2};

std::atomic_ref<uint32_t> written(std::span<std::byte> decision) {
  return std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(decision.data()));
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// RUN of RUN/checkpoints/step-000938, without resolving links: the checkpoint folder may be a link.
std::string run_of_checkpoint(const std::string& checkpoint) {
  fs::path path = fs::absolute(checkpoint).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "step-000938/"
  return path.parent_path().parent_path().string();
}

}  // namespace

RunStart::RunStart(const Session& session, const RunLocation& location, Disk& disk)
    : session_(session), location_(location), disk_(disk) {
  location_.numbered ? start_numbered() : start_in_folder();
}

// Layout of the decision: a word that becomes 1 when the rest is written, the size of the text, and
// the text.
RunStart::RunStart(const Session& session, const RunLocation& location,
                   std::span<std::byte> decision, const Team& team, Disk& disk)
    : session_(session), location_(location), disk_(disk) {
  while (written(decision).load(std::memory_order_acquire) == 0) {
    if (team.broken()) throw TeamBroken(team.reason());
    std::this_thread::sleep_for(kPoll);
  }
  uint32_t size = 0;
  std::memcpy(&size, decision.data() + sizeof(uint32_t), sizeof size);
  const char* const text = reinterpret_cast<const char*>(decision.data()) + 2 * sizeof(uint32_t);
  read({text, size});
}

RunStart::RunStart(const Session& session, const RunLocation& location, const std::string& text,
                   Disk& disk)
    : session_(session), location_(location), disk_(disk) {
  read(text);
  folder_.clear();
}

// The directory, the checkpoint and its state, each ending with a zero byte. With several hosts the
// checkpoint's files are on host 0 only; otherwise each rank checks them.
std::string RunStart::text() const {
  const std::string checkpoint = resume_ ? fs::absolute(resume_->path).string() : "";
  const bool several = session_.devices.topology.hosts() > 1;
  const std::string state = resume_ && several ? to_json(resume_->state) : "";
  return folder_ + '\0' + checkpoint + '\0' + state + '\0';
}

void RunStart::read(const std::string& text) {
  folder_ = text.c_str();
  const std::string checkpoint = text.c_str() + folder_.size() + 1;
  if (checkpoint.empty()) return;
  if (session_.devices.topology.hosts() > 1) {
    const std::string state = text.c_str() + folder_.size() + 1 + checkpoint.size() + 1;
    resume_.emplace(Resume{.path = checkpoint, .state = train_state_of(state, checkpoint)});
    return;
  }
  std::string why;
  resume_ = find_resume(checkpoint, folder_, session_, location_.resolved_spec, why);
}

RunStart::~RunStart() {
  if (!made_ || begun_) return;
  ::unlink((folder_ + "/.lock").c_str());
  ::rmdir(folder_.c_str());  // fails unless the directory is empty, as intended
}

void RunStart::write(std::span<std::byte> decision) const {
  const std::string all = text();
  const auto size = static_cast<uint32_t>(all.size());
  if (all.size() + 2 * sizeof(uint32_t) > decision.size())
    fail(Fault::failed, "the path {} is too long; choose a shorter one", folder_);
  std::memcpy(decision.data() + sizeof(uint32_t), &size, sizeof size);
  std::memcpy(decision.data() + 2 * sizeof(uint32_t), all.data(), all.size());
  written(decision).store(1, std::memory_order_release);
}

void RunStart::begin() {
  if (lock_->exclusive()) remove_asides(disk_, folder_);  // left behind by a killed run
  check_disk_space(session_, folder_, resume_ ? &*resume_ : nullptr, disk_);
  space_.emplace(disk_, model_file(folder_),
                 static_cast<int64_t>(session_.model.layout.total * sizeof(float)));
  begin_run_folder(folder_, location_.resolved_spec, resume_ ? &*resume_ : nullptr, disk_);
  std::error_code error;
  // If nothing is left to do, it describes the data of the weights that are there.
  if (!resume_ || !resume_->complete || !fs::exists(folder_ + "/data.json", error))
    write_form(folder_, session_.data, resumed_form_, disk_);
  begun_ = true;
  if (made_) link_latest(location_.folder);
}

void RunStart::start_in_folder() {
  folder_ = location_.folder;
  if (!location_.resume.empty()) {
    if (is_folder(folder_)) lock_.emplace(folder_, kPatience);
    const bool run = location_.resume != kAuto && !is_checkpoint(location_.resume);
    find(run ? newest_run(location_.resume) : location_.resume, folder_, Match::fits);
  }
  make_run_folder(folder_, disk_);
  if (!lock_) lock_.emplace(folder_, kPatience);
}

void RunStart::start_numbered() {
  const std::string& base = location_.folder;
  if (!location_.resume.empty()) {
    const bool automatic = location_.resume == kAuto;
    const bool one = !automatic && is_folder(location_.resume) && is_checkpoint(location_.resume);
    const std::string run = automatic ? newest_run(base)
                            : one     ? run_of_checkpoint(location_.resume)
                                      : newest_run(location_.resume);
    if (automatic && run == base && holds_run(base))
      print_stderr(
          "{} is a run of dptrain 0.1.0, which did not number its runs; it is left unchanged\n",
          base);
    lock_resumed(run, one);
    const std::string folder = folder_.empty() ? run : folder_;
    find(automatic || one ? location_.resume : folder, folder,
         automatic ? Match::same_spec : Match::fits);
    // A run that continued from an older checkpoint would set the newer ones aside.
    if (!resume_ || (one && !continues_newest())) {
      lock_.reset();
      folder_.clear();
    }
  }
  if (folder_.empty()) {
    folder_ = make_next_run(base, disk_);
    made_ = true;
    lock_.emplace(folder_, kPatience);
  }
  print_note("run directory: {}\n", folder_);
}

void RunStart::lock_resumed(const std::string& run, bool is_checkpoint) {
  const std::string& base = location_.folder;
  const auto number = run_number(base, run);
  // A run of version 0.1.0 lies in BASE itself. It is read but not changed.
  const bool unnumbered = !number && run == base && holds_run(base);
  if (!number && !unnumbered) return;
  const std::string folder = number ? fmt::format("{}/{}", base, *number) : run;
  try {
    lock_.emplace(folder, kPatience);
  } catch (const FolderLocked& e) {
    if (is_checkpoint) return;  // a new run can still begin from this checkpoint
    fail(Fault::failed,
         "--resume {}: the run in {} is still running ({}); wait for it to end, or omit --resume "
         "to start a separate run",
         location_.resume, folder, e.holder());
  }
  if (number) folder_ = folder;
}

void RunStart::find(const std::string& where, const std::string& folder, Match match) {
  std::string why;
  resume_ = find_resume(where, folder, session_, location_.resolved_spec, why, match);
  if (!resume_) {
    print_stderr("--resume auto: {}; {}\n", why,
                 location_.numbered ? "starting a new run" : "starting from scratch");
    return;
  }
  const TrainState& at = resume_->state;
  print_stderr("resuming from {}: epoch {}, {} of {} steps done, {} in total\n", resume_->path,
               at.epoch + 1, at.of_epoch, at.steps_of_epoch, at.step);
  for (const std::string& note : resume_->notes) print_stderr("{}\n", note);
  compare_data();
}

void RunStart::compare_data() {
  resumed_form_ = form_of_run(resume_->path);
  if (!resumed_form_) return;
  // Sessions that are opened to resume read data by this form (SessionQuery::fitted).
  if (!same_fit(*resumed_form_, form_of(session_.data.train)))
    fail(Fault::data,
         "{} cannot be resumed: its run read samples with other input columns, categories, means, "
         "standard deviations or class names than this data set; to start a new run from its "
         "weights, set initial_weights={}/model.safetensors",
         resume_->path, resume_->path);
  if (resume_->complete) return;
  for (const std::string& text : resumed_data_changes(*resumed_form_, session_.data))
    print_stderr("warning: {}\n", text);
}

bool RunStart::continues_newest() const {
  if (folder_.empty()) return false;
  std::error_code error;
  const auto there = checkpoints_in(checkpoint_folder(folder_));
  return !there.empty() && fs::equivalent(there[0].path, resume_->path, error);
}

}  // namespace dpt
