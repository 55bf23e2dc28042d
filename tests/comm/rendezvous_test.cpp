#include "comm/rendezvous.h"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "comm/local_socket.h"

#if !defined(__SANITIZE_THREAD__)  // which does not follow processes

namespace dpt {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A private directory, and a scratch page for the ranks of a test.
struct Scene {
  Scene() {
    char name[] = "/tmp/dpt_test_XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    directory = name;
  }
  ~Scene() { fs::remove_all(directory); }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  bool empty() const { return fs::is_empty(directory); }

  fs::path directory;
  SharedMemory page = SharedMemory::create(4096);
  std::atomic<int>* flags = reinterpret_cast<std::atomic<int>*>(page.data());
};

struct Rank {
  int rank = 0, size = 2;
  std::string spec = "spec", build = "build";
  size_t more_bytes = 0;
  double timeout_s = 10;
  double notice_s = 5;
  double silence_s = 60;  // after which the other ranks take it for lost
  bool ends_with_parent = false;
  std::function<void()> leave = {};
};

// What one rank does: joins the others, and calls body(team, rank).
int be_rank(const Scene& scene, const Rank& r, const std::function<int(Team, int)>& body) {
  const TeamShape shape{.ranks = r.size, .workers_per_rank = 1};
  const World world{.rank = r.rank,
                    .size = r.size,
                    .local_rank = r.rank,
                    .local_size = r.size,
                    .job = "test",
                    .launcher = "hand",
                    .parent = r.ends_with_parent ? getppid() : 0};
  try {
    Rendezvous rendezvous = Rendezvous::join(
        world,
        {.spec = r.spec, .build = r.build, .bytes = Team::bytes(shape) + 4096 + r.more_bytes},
        [&](SharedMemory& m) { Team::create(m.span(), shape, {.timeout_s = r.silence_s}); },
        {.timeout_s = r.timeout_s, .directory = scene.directory, .notice_s = r.notice_s});
    const Team team = Team::attach(rendezvous.memory().span());
    return run_joined(
        rendezvous, team, r.rank, [&] { return body(team, r.rank); }, r.leave);
  } catch (const TeamBroken& e) {
    fmt::print(stderr, "[heard {}]\n", e.what());
    return 60;
  } catch (const Error& e) {
    fmt::print(stderr, "[{}]\n", e.what());
    return static_cast<int>(e.fault());
  }
}

// Processes that were started by somebody else, as far as they know; their stderr in one text.
class Ranks {
 public:
  Ranks(const Scene& scene, const std::vector<Rank>& ranks,
        const std::function<int(Team, int)>& body) {
    REQUIRE(pipe(ends_) == 0);
    std::fflush(nullptr);
    for (const Rank& r : ranks) {
      pids.push_back(fork());
      if (pids.back() != 0) continue;
      for (const int s : {SIGINT, SIGTERM, SIGABRT}) std::signal(s, SIG_DFL);
      alarm(20);
      dup2(ends_[1], STDERR_FILENO);
      close(ends_[0]);
      close(ends_[1]);
      const int code = be_rank(scene, r, body);
      std::fflush(nullptr);
      _exit(code);
    }
    close(ends_[1]);
  }
  ~Ranks() { close(ends_[0]); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  // Exit codes, 1000 + signal for the killed.
  std::vector<int> wait() {
    char buffer[4096];
    for (ssize_t n; (n = read(ends_[0], buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(n));
    std::vector<int> codes;
    for (const pid_t pid : pids) {
      int status = 0;
      waitpid(pid, &status, 0);
      codes.push_back(WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status));
    }
    return codes;
  }
  bool said(std::string_view words) const { return text.find(words) != std::string::npos; }

  std::vector<pid_t> pids;
  std::string text;

 private:
  int ends_[2] = {-1, -1};
};

std::vector<Rank> all_of(int size) {
  std::vector<Rank> ranks;
  for (int r = size - 1; r >= 0; --r) ranks.push_back({.rank = r, .size = size});
  return ranks;
}

TEST_CASE(
    "ranks that were started apart share memory, wait at barriers, and leave nothing behind") {
  for (const int size : {1, 2, 4}) {
    Scene scene;
    Ranks ranks(scene, all_of(size), [&](Team team, int rank) {
      for (int i = 0; i < 100; ++i) team.barrier(rank);
      return team.shape().ranks == size ? 0 : 9;
    });
    CHECK(ranks.wait() == std::vector<int>(static_cast<size_t>(size), 0));
    CHECK(ranks.text.empty());
    CHECK(scene.empty());
  }
}

TEST_CASE("ranks that end at different times, after saying goodbye, break nothing") {
  for (int round = 0; round < 10; ++round) {
    Scene scene;
    Ranks ranks(scene, all_of(3), [&](Team team, int rank) {
      team.barrier(rank);
      if (rank == round % 3) {
        std::this_thread::sleep_for(20ms);
        if (team.broken()) return 9;
      }
      return 0;
    });
    CHECK(ranks.wait() == std::vector<int>(3, 0));
    CHECK(ranks.text.empty());
  }
}

TEST_CASE("a rank that waits says for whom, and only one of those that wait for rank 0 does") {
  const auto end = [](Team, int) { return 0; };
  Scene first;
  Ranks zero(first,
             {{.rank = 0, .size = 4, .timeout_s = 2, .notice_s = 0.1},
              {.rank = 2, .size = 4, .timeout_s = 2, .notice_s = 0.1}},
             end);
  zero.wait();
  CHECK_MESSAGE(zero.said("rank 0 is waiting for ranks 1, "), zero.text);
  CHECK_MESSAGE(zero.said(" 3 of 4 to start, for at most 2 s\n"), zero.text);
  Scene second;
  Ranks others(second,
               {{.rank = 1, .size = 4, .timeout_s = 2, .notice_s = 0.1},
                {.rank = 3, .size = 4, .timeout_s = 2, .notice_s = 0.1}},
               end);
  others.wait();
  const size_t at = others.text.find(" is waiting for rank 0 of 4 to start, for at most 2 s\n");
  REQUIRE_MESSAGE(at != others.text.npos, others.text);
  CHECK(others.text.find(" is waiting for ", at + 1) == others.text.npos);
}

TEST_CASE("ranks that differ are told in what, by name") {
  struct Different {
    Rank rank;
    const char* words;
  };
  const std::vector<Different> cases = {
      {{.rank = 1, .spec = "other"}, "have different specs"},
      {{.rank = 1, .build = "other"}, "have different builds of dptrain"},
      {{.rank = 1, .more_bytes = 1}, " bytes of shared memory, rank 1 (pid "},
      {{.rank = 1, .size = 3}, "have different numbers of ranks"},
  };
  for (const Different& d : cases) {
    Scene scene;
    Ranks ranks(scene, {{.rank = 0}, d.rank}, [](Team, int) { return 0; });
    CHECK(ranks.wait() == std::vector<int>{6, 60});
    CAPTURE(ranks.text);
    CHECK(ranks.said(d.words));
    CHECK(ranks.said("[rank 0 (pid "));
    CHECK(ranks.said("[heard rank 0 (pid "));
    CHECK(scene.empty());
  }
}

TEST_CASE("a rank that is started twice is named with both processes") {
  Scene scene;
  Ranks ranks(scene, {{.rank = 0, .size = 3}, {.rank = 1, .size = 3}, {.rank = 1, .size = 3}},
              [](Team, int) { return 0; });
  CHECK(ranks.wait() == std::vector<int>{6, 60, 60});
  CHECK(ranks.said("rank 1 was started twice, as pid "));
}

TEST_CASE("ranks that do not come are named") {
  Scene scene;
  std::vector<Rank> some = {{.rank = 0, .size = 4, .timeout_s = 0.3},
                            {.rank = 2, .size = 4, .timeout_s = 0.3}};
  Ranks ranks(scene, some, [](Team, int) { return 0; });
  CHECK(ranks.wait() == std::vector<int>{6, 60});
  CHECK(ranks.said("[ranks 1, 3 of 4 did not connect within 0.3 s"));
  CHECK(scene.empty());

  Ranks alone(scene, {{.rank = 1, .timeout_s = 0.2}}, [](Team, int) { return 0; });
  CHECK(alone.wait() == std::vector<int>{6});
  CHECK(alone.said("[rank 0 of 2 did not start within 0.2 s"));
  CHECK(scene.empty());
}

TEST_CASE("of many ranks that do not come sixteen are named") {
  Scene scene;
  Ranks ranks(scene, {{.rank = 0, .size = 18, .timeout_s = 0.1}}, [](Team, int) { return 0; });
  CHECK(ranks.wait() == std::vector<int>{6});
  CHECK_MESSAGE(ranks.said("[ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, ... of "
                           "18 did not connect"),
                ranks.text);
  Ranks two(scene, {{.rank = 0, .timeout_s = 0.1}}, [](Team, int) { return 0; });
  CHECK(two.wait() == std::vector<int>{6});
  CHECK_MESSAGE(two.said("[rank 1 of 2 did not connect"), two.text);
}

TEST_CASE("a rank does not take what answers it for rank 0 unless it is") {
  Scene scene;
  Listener listener(socket_path(scene.directory, "test"));
  const auto answered = [&](const std::string& answer) {
    Ranks ranks(scene, {{.rank = 1}}, [](Team, int) { return 0; });
    Descriptor peer;
    for (int tries = 0; tries < 5000 && !peer; ++tries, std::this_thread::sleep_for(1ms))
      peer = listener.accept();
    REQUIRE(peer);
    if (!answer.empty())
      send_message(peer.get(), std::as_bytes(std::span(answer.data(), answer.size())));
    peer = Descriptor();
    CHECK(ranks.wait() == std::vector<int>{6});
    return ranks.text;
  };
  const std::string topology = fmt::format("[rank 0 (pid {}) ", getpid());
  CHECK(answered("") == topology + "ended before all ranks had connected]\n");
  // An answer has 512 bytes and begins with a magic number.
  CHECK(answered(std::string(512, 'x')) == topology + "is not a rank of this dptrain]\n");
  CHECK(answered("DpHello2") == topology + "is not a rank of this dptrain]\n");
}

TEST_CASE("a rank that dies while the others gather is named") {
  Scene scene;
  Ranks ranks(scene, {{.rank = 0, .size = 3}, {.rank = 1, .size = 3}}, [](Team, int) { return 0; });
  std::this_thread::sleep_for(200ms);
  kill(ranks.pids[1], SIGKILL);
  CHECK(ranks.wait() == std::vector<int>{6, 1009});
  CHECK(ranks.said(fmt::format("[rank 1 (pid {}) ended before all", ranks.pids[1])));
}

TEST_CASE("a rank that is killed ends the others, which name it, with one message") {
  for (const int victim : {0, 1, 2}) {
    Scene scene;
    Ranks ranks(scene, {{.rank = 0, .size = 3}, {.rank = 1, .size = 3}, {.rank = 2, .size = 3}},
                [&](Team team, int rank) {
                  for (int step = 1;; ++step) {
                    team.set_progress(rank, {.epoch = 1, .step = step, .phase = Phase::training});
                    team.barrier(rank);
                    if (rank == 0) ++scene.flags[0];
                  }
                  return 0;
                });
    for (int i = 0; i < 5000 && scene.flags[0] < 10; ++i) std::this_thread::sleep_for(1ms);
    const Clock::time_point start = Clock::now();
    kill(ranks.pids[static_cast<size_t>(victim)], SIGKILL);
    std::vector<int> codes = ranks.wait();
    CHECK(Clock::now() - start < 500ms);  // 100 ms is the promise; the machine may be busy
    std::vector<int> expected(3, 6);
    expected[static_cast<size_t>(victim)] = 1009;
    CHECK(codes == expected);
    const std::string head = fmt::format(
        "dptrain: rank {} (pid {}, signal unknown) ended unexpectedly at epoch 1, step ", victim,
        ranks.pids[static_cast<size_t>(victim)]);
    CHECK(ranks.text.substr(0, head.size()) == head);
    CHECK(std::count(ranks.text.begin(), ranks.text.end(), '\n') == 1);
  }
}

TEST_CASE("a rank's own error is printed once") {
  Scene scene;
  Ranks ranks(scene, all_of(2), [&](Team team, int rank) {
    team.barrier(rank);
    if (rank == 1) fail(Fault::data, "no such file");
    team.barrier(rank);
    return 0;
  });
  CHECK(ranks.wait() == std::vector<int>{4, 6});  // rank 1 was started first
  CHECK(ranks.text == "dptrain: rank 1: no such file\n");
}

TEST_CASE("signals stop joined ranks after the same step") {
  Scene scene;
  Ranks ranks(scene, all_of(2), [&](Team team, int rank) {
    while (team.agreed_stop(rank) == 0) {
      team.publish_stop(rank);
      team.barrier(rank);
      if (rank == 0) ++scene.flags[0];
    }
    return 128 + team.agreed_stop();
  });
  for (int i = 0; i < 5000 && scene.flags[0] < 10; ++i) std::this_thread::sleep_for(1ms);
  for (const pid_t pid : ranks.pids) kill(pid, SIGINT);
  CHECK(ranks.wait() == std::vector<int>{130, 130});
  CHECK(ranks.text.empty());
}

// As a batch system does that signals all ranks of a run that one of them has already stopped.
TEST_CASE("a stop signal that comes late does not end a rank before it has left") {
  Scene scene;
  std::vector<Rank> both = all_of(2);
  for (Rank& r : both)
    r.leave = [&] {
      raise(SIGTERM);
      ++scene.flags[0];
    };
  Ranks ranks(scene, both, [](Team, int) { return 0; });
  CHECK(ranks.wait() == std::vector<int>{0, 0});
  CHECK(scene.flags[0] == 2);
}

TEST_CASE("what dead runs left behind is removed; a live one with the same name is not") {
  Scene scene;
  const fs::path path = socket_path(scene.directory, "test");
  const pid_t dead = fork();
  if (dead == 0) {
    const Listener listener(path), other(socket_path(scene.directory, "another job"));
    kill(getpid(), SIGKILL);
  }
  waitpid(dead, nullptr, 0);
  CHECK(std::distance(fs::directory_iterator(scene.directory), fs::directory_iterator()) == 2);
  Ranks ranks(scene, all_of(2), [](Team, int) { return 0; });
  CHECK(ranks.wait() == std::vector<int>{0, 0});
  CHECK(scene.empty());

  const Listener live(path);
  CHECK_THROWS_AS(Listener{path}, Error);
  CHECK(fs::exists(path));
}

TEST_CASE("strangers' words on the socket are not listened to") {
  Scene scene;
  const fs::path path = socket_path(scene.directory, "test");
  Ranks ranks(scene, {{.rank = 0}}, [](Team, int) { return 0; });
  std::vector<Descriptor> held;
  srand(7);
  for (int i = 0; i < 300; ++i) {
    Descriptor s;
    for (int tries = 0; tries < 2000 && !s; ++tries) {
      s = connect_to(path);
      if (!s) std::this_thread::sleep_for(1ms);
    }
    REQUIRE(s);
    // A hello has 448 bytes and begins with a magic number.
    std::vector<std::byte> junk(i % 3 == 0 ? 448 : static_cast<size_t>(1 + rand() % 5000));
    for (std::byte& b : junk) b = static_cast<std::byte>(rand());
    for (const std::string_view magic : {"DpHello1", "DpHello2"})
      if (i % 3 == 0 && i % 2 == magic[7] % 2) std::memcpy(junk.data(), magic.data(), 8);
    if (i % 5 != 4) send_message(s.get(), junk, i % 7 == 0 ? STDERR_FILENO : -1);
    if (i % 2 == 0) held.push_back(std::move(s));  // stays, silent
  }
  const pid_t late = fork();
  if (late == 0) _exit(be_rank(scene, {.rank = 1}, [](Team, int) { return 0; }));
  CHECK(ranks.wait() == std::vector<int>{0});
  int status = -1;
  waitpid(late, &status, 0);
  CHECK(status == 0);
  CHECK(
      ranks.said("dptrain: rank 0 is waiting for the other ranks and ignored a message from pid "));
  CHECK(std::count(ranks.text.begin(), ranks.text.end(), '\n') == 1);
}

TEST_CASE("whoever connects has some seconds to say who it is") {
  Scene scene;
  Ranks ranks(scene, {{.rank = 0}}, [](Team, int) { return 0; });
  Descriptor silent;
  while (!silent) silent = connect_to(socket_path(scene.directory, "test"));
  std::this_thread::sleep_for(500ms);  // rank 0 looks five times a second
  std::array<std::byte, 8> buffer{};
  CHECK(receive_message(silent.get(), buffer).kind == Received::nothing_yet);
  const pid_t late = fork();
  if (late == 0) _exit(be_rank(scene, {.rank = 1}, [](Team, int) { return 0; }));
  CHECK(ranks.wait() == std::vector<int>{0});
  waitpid(late, nullptr, 0);
}

TEST_CASE("a rank that fails early knows whether rank 0 says the same, and rank 0 says it itself") {
  Scene scene;
  const auto told = [&](int rank, std::string_view why) {
    const World world{.rank = rank,
                      .size = 2,
                      .local_rank = rank,
                      .local_size = 2,
                      .job = "test",
                      .launcher = "hand",
                      .parent = 0};
    return tell_early_failure(world, why, {.timeout_s = 10, .directory = scene.directory});
  };
  for (const std::string_view why : {"no such file", "another reason"}) {
    const pid_t zero = fork();
    if (zero == 0) _exit(told(0, "no such file") ? 1 : 0);
    CHECK(told(1, why) == (why == "no such file"));
    int status = -1;
    waitpid(zero, &status, 0);
    CHECK(status == 0);
  }
}

TEST_CASE("a directory that is locked is waited for as long as the ranks are") {
  Scene scene;
  const Descriptor held(open(scene.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(flock(held.get(), LOCK_EX) == 0);
  Ranks ranks(scene, {{.rank = 0, .timeout_s = 0.1}}, [](Team, int) { return 0; });
  CHECK(ranks.wait() == std::vector<int>{6});
  CHECK(ranks.said("another of your processes has locked '" + scene.directory.string() +
                   "' for 0.1 s"));
}

// Two ranks whose launcher is killed at their tenth step: their exit codes and what they printed.
struct Orphans {
  std::vector<int> codes;
  std::string text;
};
Orphans orphans_of(const Scene& scene, bool ends_with_parent) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const auto train = [&](Team team, int rank) {
    scene.flags[1 + rank] = getpid();
    while (team.agreed_stop(rank) == 0) {
      team.set_progress(rank, {.epoch = 1, .step = 1, .phase = Phase::training});
      team.publish_stop(rank);
      team.barrier(rank);
      if (rank == 0) ++scene.flags[0];
    }
    return 128 + team.agreed_stop();
  };
  std::fflush(nullptr);
  const pid_t launcher = fork();
  if (launcher == 0) {
    for (const int s : {SIGINT, SIGTERM, SIGABRT}) std::signal(s, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    for (const int rank : {0, 1})
      if (fork() == 0) {
        alarm(20);
        const Rank r{.rank = rank, .silence_s = 0.3, .ends_with_parent = ends_with_parent};
        scene.flags[3 + rank] = be_rank(scene, r, train);
        _exit(0);
      }
    for (;;) pause();
  }
  close(ends[1]);
  const auto step = [&](int wanted) {
    for (int i = 0; i < 5000 && scene.flags[0] < wanted; ++i) std::this_thread::sleep_for(1ms);
    REQUIRE(scene.flags[0] >= wanted);
  };
  step(10);
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  if (!ends_with_parent) {
    std::this_thread::sleep_for(300ms);
    step(scene.flags[0] + 10);
    for (const int rank : {0, 1}) kill(scene.flags[1 + rank], SIGTERM);
  }
  Orphans out;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)  // until both have ended
    out.text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  out.codes = {scene.flags[3], scene.flags[4]};
  return out;
}

TEST_CASE("ranks end when the process that started them does, unless they are asked not to") {
  {
    const Scene scene;
    const Orphans o = orphans_of(scene, true);
    CHECK(o.codes == std::vector<int>{6, 6});
    CAPTURE(o.text);
    CHECK(o.text.starts_with("dptrain: hand (pid "));
    CHECK(o.text.find(", which started rank ") != std::string::npos);
    CHECK(o.text.find(" has ended at epoch 1, step 1; to keep ranks running without it, set ") !=
          std::string::npos);
    CHECK(std::count(o.text.begin(), o.text.end(), '\n') == 1);
  }
  const Scene scene;
  const Orphans o = orphans_of(scene, false);
  CHECK(o.codes == std::vector<int>{143, 143});
  CHECK(o.text.empty());
}

TEST_CASE("a rank of a launcher that is stopped is named by the others") {
  Scene scene;
  const Rank zero{.rank = 0, .silence_s = 0.3};
  Ranks ranks(scene, {zero, {.rank = 1}}, [&](Team team, int rank) {
    team.set_progress(rank, {.epoch = 1, .step = 2, .phase = Phase::saving});
    team.barrier(rank);
    if (rank == 1) raise(SIGSTOP);
    team.barrier_without_limit(rank);
    return 0;
  });
  int status = 0;
  waitpid(ranks.pids[0], &status, 0);
  CHECK(WEXITSTATUS(status) == 6);
  kill(ranks.pids[1], SIGCONT);  // it finds the run ended
  ranks.pids.erase(ranks.pids.begin());
  CHECK(ranks.wait() == std::vector<int>{6});
  const std::string place = ") has not responded for 0.3 s, at epoch 1, step 2 while saving: ";
  CHECK_MESSAGE(ranks.said(place), ranks.text);
  CHECK(std::count(ranks.text.begin(), ranks.text.end(), '\n') == 1);
}

TEST_CASE("sockets lie where no other user can put or replace them") {
  const Scene scene;
  const std::string own = scene.directory.string();  // of mode 0700
  const fs::path in_tmp = fmt::format("/tmp/dptrain-{}", geteuid());
  using Paths = std::vector<fs::path>;
  CHECK(socket_directories(own.c_str(), "/home/me") ==
        Paths{own + "/dptrain", in_tmp, "/home/me/.cache/dptrain"});
  CHECK(socket_directories(nullptr, "") == Paths{in_tmp});
  CHECK(socket_directories((own + "/missing").c_str(), nullptr) == Paths{in_tmp});
  for (const mode_t mode : {0777U, 01777U, 0770U, 0705U}) {
    chmod(own.c_str(), mode);
    CHECK(socket_directories(own.c_str(), nullptr) == Paths{in_tmp});
  }
  chmod(own.c_str(), 0700);
  // A name that somebody else has taken is passed over; when all are, the message names them.
  fs::create_directory(own + "/taken");
  chmod((own + "/taken").c_str(), 0755);
  if (geteuid() == 0) REQUIRE(chown((own + "/taken").c_str(), 1, 1) == 0);
  CHECK(private_directory(Paths{own + "/taken", own + "/a/b"}) == own + "/a/b");
  try {
    private_directory(Paths{own + "/taken"});
    FAIL_CHECK("no error");
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::rank);
    const std::string text = e.what();
    CHECK_MESSAGE(text.find("'" + own + "/taken': ") != std::string::npos, text);
    CHECK(text.find(
              "set XDG_RUNTIME_DIR for all ranks to a directory that you own, with mode 0700") !=
          std::string::npos);
  }
}

TEST_CASE("a directory that others can enter, or a link to one, is refused") {
  Scene scene;
  const auto only = [](const fs::path& path) { return private_directory({&path, 1}); };
  const fs::path open = scene.directory / "open", link = scene.directory / "link";
  fs::create_directory(open);
  chmod(open.c_str(), 0755);
  CHECK_THROWS_AS(only(open), Error);
  chmod(open.c_str(), 0700);
  CHECK(only(open) == open);
  fs::create_directory_symlink(open, link);
  CHECK_THROWS_AS(only(link), Error);
  std::ofstream(scene.directory / "file") << "x";
  CHECK_THROWS_AS(only(scene.directory / "file"), Error);
  struct stat info {};
  REQUIRE(stat(only(scene.directory / "new").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
}

TEST_CASE("nothing listens on TCP while ranks gather") {
  Scene scene;
  const pid_t rank_0 = fork();
  if (rank_0 == 0)
    _exit(be_rank(scene, {.rank = 0, .timeout_s = 0.5}, [](Team, int) { return 0; }));
  for (int i = 0; i < 1000 && scene.empty(); ++i) std::this_thread::sleep_for(1ms);
  // Its sockets, by the kernel's list of Unix ones: all of them are there.
  std::ifstream file("/proc/net/unix");
  const std::string unix_sockets((std::istreambuf_iterator<char>(file)), {});
  int sockets = 0;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", rank_0))) {
    std::error_code error;
    const std::string target = fs::read_symlink(entry.path(), error).string();
    if (target.rfind("socket:[", 0) != 0) continue;
    ++sockets;
    CHECK(unix_sockets.find(" " + target.substr(8, target.size() - 9) + " ") != std::string::npos);
  }
  CHECK(sockets >= 1);
  kill(rank_0, SIGKILL);
  waitpid(rank_0, nullptr, 0);
}

}  // namespace
}  // namespace dpt

#endif
