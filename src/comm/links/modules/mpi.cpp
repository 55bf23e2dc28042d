// libdptrain_openmpi.so and libdptrain_mpich.so: Link over MPI's messages between two processes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <thread>

#include <mpi.h>

#include "comm/links/basic_link.h"
#include "comm/links/module.h"

namespace dpt::mpi_module {
namespace {

using Clock = std::chrono::steady_clock;

// Messages go in pieces of so many bytes and a last, shorter one, which may be empty: MPI counts
// bytes by int, and messages of unequal lengths differ in some piece.
constexpr size_t kPiece = size_t{64} << 20;

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, length);
  return all.substr(0, all.find_first_of(",\n"));
}

std::string text_of(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(error, text, &length);
  return {text, static_cast<size_t>(length)};
}

// What the processes of all hosts tell each other: where MPI has them.
struct Place {
  int rank = 0, size = 0;
  std::string version;

  std::string text() const { return fmt::format("{} {} {}", rank, size, version); }
  static Place parse(const LinkWorld& world, int host, const std::string& text) {
    Place out;
    int used = 0;
    if (std::sscanf(text.c_str(), "%d %d %n", &out.rank, &out.size, &used) != 2 || used == 0)
      fail_peer(world, host, "it does not use MPI");
    out.version = text.substr(used);
    return out;
  }
};

// The ranks of all hosts in MPI_COMM_WORLD.
std::vector<int> ranks_of(const LinkWorld& world) {
  Place own{.version = library_version()};
  MPI_Comm_rank(MPI_COMM_WORLD, &own.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &own.size);
  const std::vector<std::string> all = world.all_gather(own.text());
  std::vector<int> ranks;
  for (int host = 0; host < world.hosts; ++host) {
    const Place p = Place::parse(world, host, all.at(host));
    if (p.size == 1 && world.hosts > 1)
      fail_peer(world, host,
                "MPI's launcher did not start it; start all ranks with mpirun or srun --mpi=pmix, "
                "or use the backend gloo");
    if (p.version != own.version)
      fail_peer(world, host,
                fmt::format("it has {}, and this host {}; all hosts need the same version",
                            p.version, own.version));
    if (p.size != own.size || p.rank < 0 || p.rank >= p.size ||
        std::find(ranks.begin(), ranks.end(), p.rank) != ranks.end())
      fail_peer(world, host, "another mpirun started it; start all ranks with one");
    ranks.push_back(p.rank);
  }
  return ranks;
}

struct Transfer {
  int peer = 0;
  uint32_t tag = 0;
  bool sending = false;
  size_t bytes = 0;
  std::vector<MPI_Request> pieces;
  size_t complete_pieces = 0;
};

class MpiLink final : public BasicLink {
 public:
  explicit MpiLink(const LinkWorld& world) : BasicLink(world) {
    const std::vector<int> ranks = ranks_of(world);
    MPI_Group all, leaders;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, hosts(), ranks.data(), &leaders);
    const int code = MPI_Comm_create_group(MPI_COMM_WORLD, leaders, 0, &communicator_);
    MPI_Group_free(&leaders);
    MPI_Group_free(&all);
    if (code != MPI_SUCCESS) fail(Fault::rank, "MPI cannot connect the hosts: {}", text_of(code));
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    int* limit = nullptr;
    int found = 0;
    MPI_Comm_get_attr(communicator_, MPI_TAG_UB, &limit, &found);
    max_tag_ = found ? static_cast<uint32_t>(*limit) : 32767;
  }

  ~MpiLink() override {
    for (auto& [request, t] : transfers_)
      for (size_t i = t.complete_pieces; i < t.pieces.size(); ++i) {
        if (t.pieces[i] == MPI_REQUEST_NULL) continue;  // it failed
        if (!t.sending) MPI_Cancel(&t.pieces[i]);
        MPI_Request_free(&t.pieces[i]);
      }
    // Freeing waits for the other hosts with some libraries, and one of them may have failed.
    if (transfers_.empty() && !ended() && !broken_) MPI_Comm_free(&communicator_);
  }

  Request send(int peer, uint32_t tag, std::span<const std::byte> bytes) override {
    return begin(peer, tag, true, const_cast<std::byte*>(bytes.data()), bytes.size());
  }
  Request receive(int peer, uint32_t tag, std::span<std::byte> bytes) override {
    return begin(peer, tag, false, bytes.data(), bytes.size());
  }

  void wait(Request request) override {
    Transfer& t = transfers_.find(request);
    const auto limit = std::chrono::duration<double>(timeout_s());
    const Waiting waiting(*this, t.peer);
    uint64_t seen = progress_;
    Clock::time_point active = Clock::now();
    // MPI has no wait with a limit. It spins shortly, then it leaves the core to others.
    constexpr int kSpins = 200, kMaxSleepUs = 200;
    for (int round = 0; !is_complete(t); ++round) {
      if (round < kSpins) continue;
      for (auto& [other_request, other] : transfers_)
        if (other.peer == t.peer) advance(other);
      const Clock::time_point now = Clock::now();
      if (std::exchange(seen, progress_) != progress_) active = now;
      if (limits_messages() && now - active > limit) break_with(t.peer, silent_text(timeout_s()));
      std::this_thread::sleep_for(
          std::chrono::microseconds(std::min(kMaxSleepUs, 10 + (round - kSpins) / 10)));
    }
    count(t.sending, t.bytes);
    transfers_.erase(request);
  }

  bool done(Request request) override { return is_complete(transfers_.find(request)); }

  void abort() noexcept override { set_aborted(); }

 private:
  Request begin(int peer, uint32_t tag, bool sending, std::byte* data, size_t bytes) {
    check_peer(peer);
    check_not_ended();
    require(tag <= max_tag_, "a message's tag is one that MPI allows");
    Transfer t{.peer = peer, .tag = tag, .sending = sending, .bytes = bytes};
    t.pieces.assign(bytes / kPiece + 1, MPI_REQUEST_NULL);
    for (size_t i = 0; i < t.pieces.size(); ++i) {
      const size_t offset = i * kPiece;
      const int length = static_cast<int>(std::min(kPiece, bytes - offset));
      const int mpi_tag = static_cast<int>(tag);
      const int code = sending ? MPI_Isend(data + offset, length, MPI_BYTE, peer, mpi_tag,
                                           communicator_, &t.pieces[i])
                               : MPI_Irecv(data + offset, length, MPI_BYTE, peer, mpi_tag,
                                           communicator_, &t.pieces[i]);
      if (code != MPI_SUCCESS) break_with(peer, text_of(code));
    }
    return transfers_.add(std::move(t));
  }

  bool is_complete(Transfer& t) {
    check_not_ended();
    advance(t);
    return t.complete_pieces == t.pieces.size();
  }

  void advance(Transfer& t) {
    while (t.complete_pieces < t.pieces.size()) {
      int complete = 0;
      MPI_Status status;
      const int code = MPI_Test(&t.pieces[t.complete_pieces], &complete, &status);
      if (code != MPI_SUCCESS) {
        int kind = 0;
        MPI_Error_class(code, &kind);
        break_with(t.peer, kind == MPI_ERR_TRUNCATE
                               ? fmt::format("sends more than the {} bytes that this host expects "
                                             "(tag {})",
                                             t.bytes, t.tag)
                               : text_of(code));
      }
      if (!complete) return;
      if (!t.sending) check_length(t, status);
      ++t.complete_pieces;
      ++progress_;
      note_progress();
    }
  }

  void check_length(const Transfer& t, const MPI_Status& status) {
    int length = 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    const size_t before = t.complete_pieces * kPiece;
    if (static_cast<size_t>(length) != std::min(kPiece, t.bytes - before))
      break_with(t.peer, length_text(before + length, t.bytes, false, t.tag));
  }

  [[noreturn]] void break_with(int peer, const std::string& what) {
    broken_ = true;
    fail_peer(peer, what);
  }

  MPI_Comm communicator_ = MPI_COMM_NULL;
  uint32_t max_tag_ = 0;
  bool broken_ = false;
  Transfers<Transfer> transfers_;
  uint64_t progress_ = 0;  // pieces that have become complete
};

class MpiModule final : public LinkModule {
 public:
  std::string build() const override { return library_version(); }

  void start() override {
    int started = 0, level = 0;
    MPI_Initialized(&started);
    if (!started && MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
      fail(Fault::device, "{} cannot start: MPI_Init_thread failed", build());
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED)
      fail(
          Fault::device,
          "{} was built without threads (MPI_THREAD_SERIALIZED); install another build, or use the "
          "backend gloo",
          build());
  }

  void stop() noexcept override {
    int started = 0, stopped = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&stopped);
    if (started && !stopped) MPI_Finalize();
  }

  std::unique_ptr<Link> connect(const LinkWorld& world) override {
    int started = 0;
    MPI_Initialized(&started);
    require(started, "MPI is started before a link connects");
    return std::make_unique<MpiLink>(world);
  }
};

}  // namespace
}  // namespace dpt::mpi_module

extern "C" __attribute__((visibility("default"))) const dpt::LinkModuleEntry*
dptrain_link_module() {
  return dpt::link_module_entry<dpt::mpi_module::MpiModule>();
}
