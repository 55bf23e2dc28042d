#include "train/run_memory.h"

#include "base/checked.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "base/version.h"
#include "checkpoint/model_file.h"
#include "comm/launcher.h"
#include "engine/gpu/team.h"
#include "engine/gpu/transport.h"
#include "train/run_start.h"

namespace dpt {
namespace {

TeamShape team_shape(const Topology& topology) {
  return {.ranks = static_cast<int>(topology.ranks_of_host(topology.host).count()),
          .workers_per_rank = topology.workers_per_rank()};
}

Team create_team(const Session& s, const SharedMemory& memory, const TeamSettings& settings) {
  const TeamShape shape = team_shape(s.devices.topology);
  return Team::create(memory.span().first(Team::bytes(shape)), shape, settings);
}

Generator draw(const Session& s, const Buffers& buffers, bool weights_of_file) {
  Generator out(static_cast<uint64_t>(s.settings.spec.seed));
  initialise(s.settings, s.devices, s.precision, s.model, buffers, out, weights_of_file);
  return out;
}

}  // namespace

RunMemory::Offsets::Offsets(const Session& s, size_t decision_bytes)
    : decision(Team::bytes(team_shape(s.devices.topology))),
      gpus(decision + decision_bytes),
      buffers(gpus + (s.devices.on_gpu() ? GpuTeam::bytes(s.devices.topology.total_workers()) : 0) +
              gpu_transport_bytes(s.devices)),
      bytes((Checked(buffers) + Buffers::bytes(s.layout.buffers)).size()) {}

size_t RunMemory::bytes(const Session& s) { return Offsets(s, 0).bytes; }

RunMemory::RunMemory(const Session& s, const TeamSettings& settings)
    : session_(s),
      at_(s, 0),
      own_(s.devices.topology.ranks > 1 ? SharedMemory::create(at_.bytes)
                                        : SharedMemory::create_private(at_.bytes)),
      team_(create_team(s, *own_, settings)),
      buffers_(own_->data() + at_.buffers, s.layout.buffers) {}

RunMemory::RunMemory(const Session& s, const TeamSettings& settings, const World& ranks,
                     const std::string& spec)
    : session_(s),
      at_(s, RunStart::kDecisionBytes),
      ranks_(Rendezvous::join(ranks, {.spec = spec, .build = version(), .bytes = at_.bytes},
                              [&](SharedMemory& memory) { create_team(s, memory, settings); },
                              {.timeout_s = settings.timeout_s, .directory = {}})),
      rank_(ranks.rank),
      team_(Team::attach(ranks_->memory().span().first(at_.decision))),
      buffers_(ranks_->memory().data() + at_.buffers, s.layout.buffers) {}

Generator RunMemory::fill(const std::optional<Resume>& resume) const {
  const bool first_host = session_.devices.topology.host == 0;
  if (rank_ == 0) {
    const Generator out = draw(session_, buffers_, !resume && first_host);
    if (resume && first_host) restore(session_, *resume, buffers_);
    return out;
  }
  if (resume) return Generator(static_cast<uint64_t>(session_.settings.spec.seed));
  const Buffers::Sizes& sizes = session_.layout.buffers;
  const SharedMemory unused = SharedMemory::create_private(Buffers::bytes(sizes));
  return draw(session_, Buffers(unused.data(), sizes), true);
}

std::span<Trace> RunMemory::make_traces() {
  const auto workers = static_cast<size_t>(session_.devices.topology.total_workers());
  traces_.emplace(SharedMemory::create(workers * sizeof(Trace)));
  return {reinterpret_cast<Trace*>(traces_->data()), workers};
}

int RunMemory::run_ranks(const std::function<int(int rank)>& body,
                         const std::function<void()>& leave) {
  if (ranks_)
    return run_joined(
        *ranks_, team_, rank_, [&] { return body(rank_); }, leave);
  const bool forks = team_.shape().ranks > 1;
  if (forks && has_status_line()) expect_status();  // of rank 0
  const auto in_rank = [&](int rank) {
    const int code = body(rank);
    if (forks && code == 0) flush_output();  // this rank's process ends here
    return code;
  };
  LaunchSettings how;
  if (session_.devices.on_gpu()) how.grace_ms = 5000;  // to abort communicators and free GPU memory
  return launch(team_, in_rank, how);
}

}  // namespace dpt
