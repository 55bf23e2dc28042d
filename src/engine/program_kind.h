// Which of a session's programs a micro-batch uses, and in which memory: the same on CPUs and GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "session/session.h"

namespace dpt {

enum class ProgramKind : uint8_t {
  train,       // a step's first micro-batch
  train_more,  // a later one: its gradients are added to those of earlier ones
  test,        // a batch of an evaluation
  train_last  // a later one, the last, if it has programs of its own (CompiledModel::last_programs)
};
inline constexpr size_t kProgramKinds = 4;

// The kind of micro-batch number `micro` of a training step. last_apart: the last one has programs
// of its own.
constexpr ProgramKind program_kind(size_t micro, size_t micro_batches, bool last_apart) {
  if (micro == 0) return ProgramKind::train;
  return last_apart && micro + 1 == micro_batches ? ProgramKind::train_last
                                                  : ProgramKind::train_more;
}
inline ProgramKind program_kind(const Session& s, size_t micro) {
  return program_kind(micro, static_cast<size_t>(s.batches.train->accumulate()),
                      !s.model.last_programs.empty());
}

// Whether gradients are computed apart and then added to those of earlier micro-batches.
constexpr bool adds_gradients(ProgramKind kind) {
  return kind == ProgramKind::train_more || kind == ProgramKind::train_last;
}

// The number of bindings of one program, each with activations of its own. Chunk c uses the binding
// c % slots_of(). slot_count: CompiledModel::slot_count.
constexpr size_t slots_of(ProgramKind kind, size_t slot_count) {
  return kind == ProgramKind::train || kind == ProgramKind::train_last ? 1 : slot_count;
}

// The programs of a kind, by the rows of a shard group. Empty: the session never uses the kind.
inline const std::map<ShardGroupRows, Program>& programs_of(const Session& s, ProgramKind kind) {
  static const std::map<ShardGroupRows, Program> none;
  if (kind == ProgramKind::test) return s.model.test_programs;
  if (adds_gradients(kind) && s.batches.train->accumulate() == 1) return none;
  return kind == ProgramKind::train_last ? s.model.last_programs : s.model.programs;
}

}  // namespace dpt
