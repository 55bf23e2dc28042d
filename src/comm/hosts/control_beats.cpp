// ControlLoop's beats: signs of life, and what other hosts show by theirs.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "comm/hosts/control_loop.h"
#include "comm/link_activity.h"

namespace dpt {
namespace {

using Clock = std::chrono::steady_clock;

// Whichever is further: hosts are at most a step apart, and a beat may be a second old. What the
// other host does besides training, only its beat says.
Progress further(const Progress& of_beat, const Progress& own) {
  const bool busy = of_beat.phase == Phase::saving || of_beat.phase == Phase::evaluating;
  const bool recent = own.step <= of_beat.step + 1;
  return own.step <= of_beat.step || (busy && recent) ? of_beat : own;
}

}  // namespace

std::string ControlLoop::position_of(const PeerHost& p) const {
  return position_text(team_ ? further(p.beat.progress, team_->progress(0)) : p.beat.progress);
}

void ControlLoop::look_at_time() {
  if (team_ && team_->progress(0).phase != told_) send_beats();  // a save may take long
  const Clock::time_point now = Clock::now();
  if (now < next_beat_) return;
  send_beats();
  look_for_silence();
  if (failure_.empty()) look_for_stall();
  const auto period =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings_.beat_s));
  next_beat_ += period;
  if (next_beat_ <= now) next_beat_ = now + period;  // late beats are one beat
}

Beat ControlLoop::own_beat() const {
  Beat out{.progress = team_ ? team_->progress(0) : Progress(), .moved = moved_};
  if (link_) {
    out.waits_for = link_->waits_for;
    out.moved += link_->moved;
  }
  const bool gathers = gather_ && !gather_done_, broadcasts = broadcast_ && !broadcast_done_;
  if (!gathers && !broadcasts) return out;
  out.waits_for = 0;
  if (host != 0) return out;
  const auto missing = std::ranges::find_if(
      peers_, [&](const PeerHost& p) { return gathers ? !p.gathered : !p.served; });
  out.waits_for = missing == peers_.end() ? -1 : missing->host;
  return out;
}

void ControlLoop::send_beats() {
  const Beat own = own_beat();
  told_ = own.progress.phase;
  const std::vector<std::byte> payload = encode(own);
  for (PeerHost& p : peers_) {
    if (!p.connection || p.gone) continue;
    // Queued bytes already show that this host lives.
    if (p.connection.queued() == 0) p.connection.send(FrameType::beat, payload);
  }
}

void ControlLoop::look_for_silence() {
  for (PeerHost& p : peers_) {
    if (!p.connection || p.gone) continue;
    if (std::exchange(p.bytes_seen, p.connection.bytes_received()) !=
        p.connection.bytes_received()) {
      p.silent_beats = 0;
      continue;
    }
    // The last bytes came up to a beat before the beat that noticed them.
    if ((++p.silent_beats + 1) * settings_.beat_s >= settings_.silence_s) {
      fail_run(fmt::format("{} has been silent for {} s {}: its process is suspended, or its "
                           "machine or the network has failed",
                           map.name_of_rank(p.host), settings_.silence_s, position_of(p)),
               nullptr);
      return;
    }
  }
}

// Only host 0 hears of all hosts. A single host that waits means nothing: another one may compute
// or save for as long as it likes.
void ControlLoop::look_for_stall() {
  if (host != 0) return;
  constexpr double kFewestBeats = 3;  // since beats of several hosts are not of the same moment
  const Beat own = own_beat();
  own_stall_.look(own);
  bool stalled = own_stall_.beats > 0;
  int first = 0, awaited = own.waits_for;  // of the host that has waited for longest
  double longest = own_stall_.beats;
  for (PeerHost& p : peers_) {
    p.stall.look(p.beat);
    stalled &= !p.gone && p.stall.beats > 0 && p.silent_beats < kFewestBeats;
    if (p.stall.beats <= longest) continue;
    longest = p.stall.beats;
    first = p.host;
    awaited = p.beat.waits_for;
  }
  stalled_beats_ = stalled ? stalled_beats_ + 1 : 0;
  // Data may have stood still for two beats, this host's and another's, before it was seen to.
  if (stalled_beats_ < kFewestBeats || (stalled_beats_ + 2) * settings_.beat_s < settings_.stall_s)
    return;
  fail_run(fmt::format("no data has moved between {} and {} for {} s {}, although both respond: "
                       "the network loses it, or is too slow; if so, raise `timeout` of the "
                       "parallel mode",
                       map.name_of_rank(std::min(first, awaited)),
                       map.name_of_rank(std::max(first, awaited)), settings_.stall_s,
                       position_text(own.progress)),
           nullptr);
}

}  // namespace dpt
