// ControlLoop: the thread of a ControlChannel, and what it knows. A part of control_channel.cpp.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "comm/hosts/control_channel.h"

namespace dpt {

// For how long a host has been waiting for data, in own beats.
struct HostStall {
  uint64_t moved = 0;
  double beats = 0;  // since `moved` changed, or the host did something else

  void look(const Beat& beat) {
    const bool moves = beat.waits_for < 0 || moved != beat.moved;
    moved = beat.moved;
    beats = moves ? 0 : beats + 1;
  }
};

// The other end of a connection.
struct PeerHost {
  int host = 0;
  Connection connection;
  bool gone = false;  // said goodbye
  Beat beat;          // its last one
  uint64_t bytes_seen = 0;
  double silent_beats = 0;  // own beats since bytes_seen changed
  HostStall stall;          // host 0 knows it of all
  // Host 0: the peer's part of a collective operation, which it may begin first.
  std::optional<std::string> gathered;
  std::optional<uint64_t> ready;  // bytes that it wants of the next broadcast
  size_t sent = 0;                // of these
  bool served = false;            // has all of the broadcast in progress
};

struct GatherInProgress {
  std::string own;
  std::vector<std::string> all;
};

struct BroadcastInProgress {
  std::span<std::byte> bytes;
  size_t received = 0;
  std::vector<Digest> digests;  // of the chunks that host 0 has sent to anybody
};

// Everything but poll() happens under the mutex.
class ControlLoop {
 public:
  ControlLoop(GatheredHosts hosts, const ChannelSettings& settings);
  ~ControlLoop() { end(false); }
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  std::vector<std::string> all_gather(const std::string& own);
  void broadcast(std::span<std::byte> bytes);
  void watch(Team team, LinkActivity* link);
  [[noreturn]] void data_failed(int peer, const std::string& why);
  void give_up(const std::string& why) noexcept;
  void end(bool with_goodbye) noexcept;

  const int host;
  const HostMap map;

 private:
  void run() noexcept;
  void wake() const noexcept;
  void wait_for_news(std::unique_lock<std::mutex>& lock);
  void serve(PeerHost& p) noexcept;
  void handle(PeerHost& p, const Frame& frame);
  void handle_collective(PeerHost& p, const Frame& frame);
  void lost(PeerHost& p, const ConnectionLost& e);
  void look_at_time();
  Beat own_beat() const;
  void send_beats();
  void look_for_silence();
  void look_for_stall();
  std::string position_of(const PeerHost& p) const;
  std::string reason_of_team() const;
  void look_at_team();
  void pass_on_stop();
  bool lacks_host(bool (*did_its_part)(const PeerHost&));
  void advance_gather();
  void advance_broadcast();
  void begin_gather();
  void begin_broadcast();
  void send_chunks(PeerHost& p);
  void send_to_all(FrameType type, std::span<const std::byte> payload,
                   const PeerHost* but = nullptr);
  // from: the host that knows the reason already.
  void fail_run(const std::string& reason, const PeerHost* from);
  void say_goodbye(std::unique_lock<std::mutex>& lock) noexcept;
  void wait_until_done(std::unique_lock<std::mutex>& lock, const bool& done);
  [[noreturn]] void throw_failure() const;

  const ChannelSettings settings_;
  Descriptor wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<PeerHost> peers_;
  std::optional<Team> team_;
  LinkActivity* link_ = nullptr;  // null: there is none
  std::chrono::steady_clock::time_point next_beat_{};
  Phase told_ = Phase::starting;  // by the last beat
  HostStall own_stall_;
  double stalled_beats_ = 0;  // own beats in which all hosts were waiting and no data moved
  uint64_t moved_ = 0;        // changes whenever a collective operation gets on
  std::string failure_;       // why the run ends; empty: it does not
  int stop_asked_ = 0;        // host 0: by another host; the others: passed on to host 0
  bool leaving_ = false, with_goodbye_ = false;
  std::optional<GatherInProgress> gather_;
  std::optional<BroadcastInProgress> broadcast_;
  bool gather_begun_ = false, broadcast_begun_ = false;
  bool gather_done_ = false, broadcast_done_ = false;
  std::thread thread_;
};

}  // namespace dpt
