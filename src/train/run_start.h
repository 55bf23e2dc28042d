// What rank 0 decides before a run begins: its directory, and the checkpoint that it continues. The
// other ranks receive both through shared memory; other hosts get the checkpoint's state from host
// 0, and need not see its files.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/disk.h"
#include "base/folder_lock.h"
#include "checkpoint/resume.h"
#include "comm/team.h"
#include "data/sample_form.h"
#include "session/session.h"

namespace dpt {

// What the user asked for.
struct RunLocation {
  std::string folder;         // `out`, or BASE of run_directories.h
  bool numbered = false;      // `folder` is BASE; the run is written to BASE/N
  std::string resume;         // the argument of --resume; empty: a new run
  std::string resolved_spec;  // the text of spec.resolved.yaml
};

class RunStart {
 public:
  // For rank 0. Creates the directory if it is new, and locks it before looking for checkpoints
  // there, because a run that is still active removes old ones. Prints which run is continued, or
  // why none is. Throws Error{failed} if the directory cannot be created or another run holds it,
  // and the errors of find_resume(). `disk` and `session` must outlive this object.
  RunStart(const Session& session, const RunLocation& location, Disk& disk);
  // For other ranks: waits for rank 0's decision. Throws TeamBroken if the team ends meanwhile, and
  // the errors of find_resume().
  RunStart(const Session& session, const RunLocation& location, std::span<std::byte> decision,
           const Team& team, Disk& disk);
  // For the leaders of other hosts, from the text() of host 0: they have no run directory.
  RunStart(const Session& session, const RunLocation& location, const std::string& text,
           Disk& disk);
  // Removes a new numbered directory if the run has not begun.
  ~RunStart();
  RunStart(const RunStart&) = delete;
  RunStart& operator=(const RunStart&) = delete;

  static constexpr size_t kDecisionBytes = 131072;
  // Rank 0 publishes its decision to the others. REQUIRES: `decision` is kDecisionBytes of zeroed
  // memory.
  void write(std::span<std::byte> decision) const;
  // The decision as other hosts get it.
  std::string text() const;

  // Call on rank 0 when every check of the run has passed. Takes over the directory (run_folder.h),
  // writes data.json, reserves disk space for the final weights, and links `latest`. Throws
  // Error{failed}.
  void begin();
  ReservedSpace* space_for_weights() { return space_ ? &*space_ : nullptr; }  // null: none reserved

  const std::string& folder() const { return folder_; }  // empty: on another host
  const std::optional<Resume>& resume() const { return resume_; }

 private:
  void read(const std::string& text);
  void start_in_folder();
  void start_numbered();
  void find(const std::string& where, const std::string& folder, Match match);
  // Locks the run that --resume names and sets folder_, if the run is in BASE; otherwise leaves it
  // empty.
  void lock_resumed(const std::string& run, bool is_checkpoint);
  // Prints what is different. Throws Error{data} if the data set reads samples in another way than
  // the run that is resumed.
  void compare_data();
  bool continues_newest() const;

  const Session& session_;
  RunLocation location_;
  Disk& disk_;
  std::string folder_;
  std::optional<Resume> resume_;
  std::optional<SampleForm> resumed_form_;  // data.json of the run that is resumed, if it has one
  std::optional<FolderLock> lock_;
  std::optional<ReservedSpace> space_;
  bool made_ = false, begun_ = false;
};

}  // namespace dpt
