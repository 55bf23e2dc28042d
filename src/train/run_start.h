// What rank 0 decides before a run begins: its directory and the checkpoint that it continues. The
// other ranks get both from the memory that all share.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/disk.h"
#include "base/folder_lock.h"
#include "checkpoint/resume.h"
#include "comm/team.h"
#include "session/session.h"

namespace dpt {

// What the user asked for.
struct RunPlace {
  std::string folder;         // `out`, or BASE of run_directories.h
  bool numbered = false;      // the second: the run lies in BASE/N
  std::string resume;         // as --resume has it; empty: the run is a new one
  std::string resolved_spec;  // text of spec.resolved.yaml
};

class RunStart {
 public:
  // Rank 0. Makes the directory where it is new, and locks it before it looks for checkpoints
  // there, since a run that still goes on removes old ones. Prints which run is continued, or why
  // none is. Throws Error{failed} where the directory can't be made or another run has it, and as
  // find_resume() does. `disk` and `session` live as long as this object.
  RunStart(const Session& session, const RunPlace& place, Disk& disk);
  // The others, from what rank 0 writes, for which they wait. Throws TeamBroken where the team ends
  // meanwhile, and as find_resume() does.
  RunStart(const Session& session, const RunPlace& place, std::span<std::byte> decision,
           const Team& team, Disk& disk);
  // A new numbered directory goes again where the run has not begun.
  ~RunStart();
  RunStart(const RunStart&) = delete;
  RunStart& operator=(const RunStart&) = delete;

  static constexpr size_t kDecisionBytes = 8192;
  // Rank 0, for the others. REQUIRES: kDecisionBytes, zeroed.
  void write(std::span<std::byte> decision) const;

  // Rank 0, once nothing about the run can be refused any more: the directory becomes this run's
  // (run_folder.h), room for the final weights is reserved, and `latest` is linked. Throws
  // Error{failed}.
  void begin();
  ReservedRoom* room_for_weights() { return room_ ? &*room_ : nullptr; }  // null: not reserved

  const std::string& folder() const { return folder_; }
  const std::optional<Resume>& resume() const { return resume_; }

 private:
  void start_in_folder();
  void start_numbered();
  void find(const std::string& where, const std::string& folder, Match match);
  // Locks the run that --resume names, if it is one of BASE; else folder_ stays empty.
  void lock_resumed(const std::string& run, bool is_checkpoint);
  bool continues_newest() const;

  const Session& session_;
  RunPlace place_;
  Disk& disk_;
  std::string folder_;
  std::optional<Resume> resume_;
  std::optional<FolderLock> lock_;
  std::optional<ReservedRoom> room_;
  bool made_ = false, begun_ = false;
};

}  // namespace dpt
