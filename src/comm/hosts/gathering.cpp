#include "comm/hosts/gathering.h"

#include <algorithm>
#include <list>
#include <map>
#include <set>

#include <poll.h>

#include "base/fail.h"
#include "base/stderr.h"
#include "comm/hosts/bytes.h"
#include "comm/hosts/compare_hosts.h"

namespace dpt {
namespace {

using Clock = std::chrono::steady_clock;
using Role = Handshake::Role;

// A connection to host 0 that has not been dropped.
struct Candidate {
  enum State { asked, proved, joined } state = asked;
  Connection connection;
  std::string from;  // address
  Nonce nonce;       // host 0's
  Deadline patience;
  HostHello hello;  // if joined
};

class Gathering {
 public:
  Gathering(TcpListener& listener, const HostHello& own, const Handshake& handshake,
            const GatheringSettings& settings)
      : listener_(listener), own_(own), handshake_(handshake), settings_(settings) {}

  GatheredHosts run(Deadline deadline);

 private:
  std::vector<const HostHello*> hellos() const;
  std::string missing() const { return missing_ranks(hellos(), own_.world); }
  void look(Deadline deadline);
  void accept_some();
  void drop_surplus();
  bool keep(Candidate& c);  // false: drop it
  bool read(Candidate& c);
  bool check_response(Candidate& c, const Frame& frame);
  void join(Candidate& c, const Frame& frame);
  void note_stranger(const Candidate& c, bool knows_protocol);
  void refuse_all();
  [[noreturn]] void fail_all(Deadline deadline);
  GatheredHosts welcome_all();
  std::string too_late() const;

  TcpListener& listener_;
  const HostHello& own_;
  const Handshake& handshake_;
  const GatheringSettings& settings_;
  const LaunchId launch_ = random_launch_id();
  std::list<Candidate> candidates_;
  std::string reason_;                  // why there is no run
  std::set<std::string> noted_;         // addresses of strangers
  std::set<std::string> wrong_secret_;  // addresses
};

std::vector<const HostHello*> Gathering::hellos() const {
  std::vector<const HostHello*> out = {&own_};
  for (const Candidate& c : candidates_)
    if (c.state == Candidate::joined) out.push_back(&c.hello);
  return out;
}

std::string Gathering::too_late() const {
  std::string out = fmt::format(
      "{} of {} did not connect to {} at {} within {} s: start all hosts together, and let other "
      "hosts reach that port",
      missing(), own_.world, name_of(own_), listener_.address().text(), settings_.timeout_s);
  if (!wrong_secret_.empty())
    out += fmt::format(
        "; a process at {} has another secret (DPTRAIN_SECRET_FILE) or belongs to another run",
        *wrong_secret_.begin());
  return out;
}

GatheredHosts Gathering::run(Deadline deadline) {
  if (!own_.identity.failure.empty())
    reason_ = fmt::format("{} failed before all hosts had connected: {}", name_of(own_),
                          own_.identity.failure);
  const Deadline notice = deadline_in(settings_.notice_s);
  bool noticed = false;
  while (reason_.empty() && !missing().empty()) {
    const bool late = Clock::now() >= deadline;
    look(deadline);
    if (!reason_.empty() || missing().empty()) break;
    if (late) {
      reason_ = too_late();
    } else if (!noticed && Clock::now() >= notice) {
      noticed = true;
      print_stderr("{} is waiting for {} of {} at {}, for at most {} s\n", name_of(own_), missing(),
                   own_.world, listener_.address().text(), settings_.timeout_s);
    }
  }
  if (!reason_.empty()) fail_all(deadline);
  return welcome_all();
}

void Gathering::look(Deadline deadline) {
  std::vector<pollfd> news = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
  for (const Candidate& c : candidates_)
    news.push_back({.fd = c.connection.get(), .events = POLLIN, .revents = 0});
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  poll(news.data(), news.size(), static_cast<int>(std::clamp<long long>(left, 1, 100)));
  for (auto c = candidates_.begin(); c != candidates_.end();)
    c = keep(*c) ? std::next(c) : candidates_.erase(c);
  if (news[0].revents != 0) accept_some();
}

// Accepts only some of the pending connections, so that those that are accepted are served between.
void Gathering::accept_some() {
  constexpr int kMostAtOnce = 32;
  for (int i = 0; i < kMostAtOnce; ++i) {
    TcpAddress from;
    Descriptor socket = listener_.accept(from);
    if (!socket) return;
    Candidate c;
    c.connection = Connection(std::move(socket));
    c.from = from.host();
    c.connection.reader().accept(FrameType::response, 2 * sizeof(Digest));
    c.nonce = random_nonce();
    c.patience = deadline_in(settings_.hello_s);
    c.connection.send(FrameType::challenge, c.nonce);
    candidates_.push_back(std::move(c));
    drop_surplus();
  }
}

// Limits how many connections have not authenticated. Drops the oldest one of an address with the
// most: a host that loses its connection connects again.
void Gathering::drop_surplus() {
  constexpr size_t kMostOfAddress = 8, kMostBesideHosts = 64;
  std::map<std::string_view, size_t> asked;  // by address
  size_t all = 0;
  for (const Candidate& c : candidates_) {
    if (c.state != Candidate::asked) continue;
    ++asked[c.from];
    ++all;
  }
  const auto most = std::max_element(
      asked.begin(), asked.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const size_t hosts = static_cast<size_t>(own_.world);
  if (most->second <= kMostOfAddress && all <= hosts + kMostBesideHosts) return;
  candidates_.erase(std::find_if(candidates_.begin(), candidates_.end(), [&](const Candidate& c) {
    return c.state == Candidate::asked && asked[c.from] == most->second;
  }));
}

bool Gathering::keep(Candidate& c) {
  try {
    c.connection.flush();
    while (reason_.empty() || c.state != Candidate::joined) {
      const Candidate::State before = c.state;
      if (!read(c)) return false;
      if (c.state == before) break;
    }
    return c.state == Candidate::joined || Clock::now() < c.patience;
  } catch (const ConnectionLost& e) {
    if (c.state == Candidate::joined && reason_.empty())
      reason_ = name_of(c.hello) + " ended before all hosts had connected";
    else if (!e.ended())
      note_stranger(c, c.state == Candidate::proved);
    return false;
  }
}

// Handles at most one frame; afterwards the state differs if there was one.
bool Gathering::read(Candidate& c) {
  const std::optional<Frame> frame = c.connection.receive();
  if (!frame) return true;
  if (c.state == Candidate::asked) return check_response(c, *frame);
  join(c, *frame);
  return true;
}

bool Gathering::check_response(Candidate& c, const Frame& frame) {
  if (frame.payload.size() != 2 * sizeof(Digest)) return false;
  ByteReader in(frame.payload);
  Nonce other;
  Digest proof;
  std::ranges::copy(in.raw(sizeof other), other.begin());
  std::ranges::copy(in.raw(sizeof proof), proof.begin());
  if (!equal_in_constant_time(proof, handshake_.digest(Role::response, c.nonce, other))) {
    wrong_secret_.insert(c.from);
    note_stranger(c, true);
    c.connection.send(FrameType::denied);
    c.connection.flush();
    return false;
  }
  ByteWriter answer;
  answer.raw(launch_);
  answer.raw(handshake_.digest(Role::proof, c.nonce, other, launch_));
  c.connection.send(FrameType::proof, answer.bytes());
  c.connection.flush();
  c.connection.use_keys(handshake_.digest(Role::from_host_0, c.nonce, other, launch_),
                        handshake_.digest(Role::to_host_0, c.nonce, other, launch_));
  c.connection.reader().refuse(FrameType::response);
  c.connection.reader().accept(FrameType::hello, kLongestHello);
  c.state = Candidate::proved;
  return true;
}

void Gathering::join(Candidate& c, const Frame& frame) {
  HostHello hello;
  try {
    hello = decode_start_of_hello(frame.payload);  // of another version, the rest may be different
    hello = decode_hello(frame.payload);
  } catch (const Error& e) {
    const std::string& version = hello.identity.version;
    if (version.empty() || version == own_.identity.version) throw ConnectionLost(e.what(), false);
  }
  c.connection.reader().refuse(FrameType::hello);
  std::string why = difference(own_, hello);
  for (const HostHello* other : hellos())
    if (why.empty()) why = overlap(*other, hello);
  if (reason_.empty()) reason_ = why;
  c.hello = std::move(hello);
  c.state = Candidate::joined;
}

void Gathering::note_stranger(const Candidate& c, bool knows_protocol) {
  constexpr size_t kMostNotes = 3;
  if (noted_.size() >= kMostNotes || !noted_.insert(c.from).second) return;
  print_stderr("dptrain: {} is waiting for other hosts and ignored a connection from {}, {}\n",
               name_of(own_), c.from,
               knows_protocol ? "which has another secret (DPTRAIN_SECRET_FILE) or belongs to "
                                "another run"
                              : "which is not a host of this run");
}

void Gathering::refuse_all() {
  for (auto c = candidates_.begin(); c != candidates_.end();) {
    if (c->state != Candidate::joined) {
      ++c;
      continue;
    }
    try {
      c->connection.send(FrameType::refused, encode_text(reason_, kLongestRefusal));
      c->connection.flush();
    } catch (const ConnectionLost&) {  // it has ended already
    }
    c = candidates_.erase(c);
  }
}

// Hosts that come a little later must not wait in vain.
void Gathering::fail_all(Deadline deadline) {
  size_t ranks = static_cast<size_t>(own_.ranks);
  const auto told = [&] {
    for (const HostHello* h : hellos())
      if (h != &own_) ranks += static_cast<size_t>(std::max(1, h->ranks));
    refuse_all();
    return ranks >= static_cast<size_t>(own_.world);
  };
  const Deadline linger = std::min(deadline, deadline_in(settings_.linger_s));
  while (!told() && Clock::now() < linger) look(linger);
  throw Error(Fault::rank, reason_);
}

GatheredHosts Gathering::welcome_all() {
  candidates_.remove_if([](const Candidate& c) { return c.state != Candidate::joined; });
  candidates_.sort([](const Candidate& a, const Candidate& b) {
    return a.hello.first_rank < b.hello.first_rank;
  });
  std::vector<HostMap::Host> hosts;
  for (const HostHello* h : hellos())
    hosts.push_back(
        {.first_rank = h->first_rank, .ranks = h->ranks, .name = h->name, .address = h->address});
  GatheredHosts out{.host = 0, .map = HostMap(std::move(hosts)), .peers = {}};
  for (Candidate& c : candidates_) {
    c.connection.send(FrameType::welcome, encode(out.map));
    try {
      c.connection.flush();
    } catch (const ConnectionLost&) {
      fail(Fault::rank, "{} ended before all hosts had connected", name_of(c.hello));
    }
    out.peers.push_back(std::move(c.connection));
  }
  return out;
}

// The next frame; nullopt: none came until the deadline.
std::optional<Frame> wait_for_frame(Connection& connection, Deadline deadline) {
  for (;;) {
    connection.flush();
    if (std::optional<Frame> frame = connection.receive()) return frame;
    if (Clock::now() >= deadline) return std::nullopt;
    wait_for_socket(connection.get(),
                    static_cast<short>(POLLIN | (connection.queued() > 0 ? POLLOUT : 0)), deadline);
  }
}

constexpr std::string_view kOtherSecret =
    "has another secret, or belongs to another run: give all hosts the same DPTRAIN_SECRET_FILE, "
    "and each run its own port";

// This host and host 0 authenticate to each other. False: it is not host 0, and `host_0.why`
// says so. Throws ConnectionLost.
bool shake_hands(Connection& connection, const std::string& at, const Handshake& handshake,
                 Deadline deadline, Host0& host_0) {
  Nonce of_host_0, own = random_nonce();
  connection.reader().accept(FrameType::challenge, sizeof(Nonce));
  const std::optional<Frame> challenge = wait_for_frame(connection, deadline);
  if (!challenge || challenge->payload.size() != sizeof(Nonce)) {
    host_0.why = "what listens there does not answer as dptrain does";
    return false;
  }
  std::ranges::copy(challenge->payload, of_host_0.begin());
  connection.reader().refuse(FrameType::challenge);
  connection.reader().accept(FrameType::proof, sizeof(LaunchId) + sizeof(Digest));
  connection.reader().accept(FrameType::denied, 0);
  ByteWriter response;
  response.raw(own);
  response.raw(handshake.digest(Role::response, of_host_0, own));
  connection.send(FrameType::response, response.bytes());
  const std::optional<Frame> proof = wait_for_frame(connection, deadline);
  if (!proof) {
    host_0.why = "host 0 did not answer";
    return false;
  }
  LaunchId launch{};
  Digest digest{};
  if (proof->payload.size() == sizeof launch + sizeof digest) {
    ByteReader in(proof->payload);
    std::ranges::copy(in.raw(sizeof launch), launch.begin());
    std::ranges::copy(in.raw(sizeof digest), digest.begin());
  }
  if (proof->type != FrameType::proof ||
      !equal_in_constant_time(digest, handshake.digest(Role::proof, of_host_0, own, launch)))
    fail(Fault::rank, "the dptrain at {} {}", at, kOtherSecret);
  if (host_0.launch && *host_0.launch != launch)
    fail(Fault::rank,
         "host 0 at {} was started again after this host had found it, or another run listens "
         "there: start all hosts again, and give each run its own port",
         at);
  host_0.launch = launch;
  host_0.at = at;
  connection.reader().refuse(FrameType::proof);
  connection.reader().refuse(FrameType::denied);
  connection.use_keys(handshake.digest(Role::to_host_0, of_host_0, own, launch),
                      handshake.digest(Role::from_host_0, of_host_0, own, launch));
  return true;
}

}  // namespace

GatheredHosts gather_hosts(TcpListener& listener, const HostHello& own, const Handshake& handshake,
                           Deadline deadline, const GatheringSettings& settings) {
  return Gathering(listener, own, handshake, settings).run(deadline);
}

std::optional<GatheredHosts> join_host_0(Connection connection, const HostHello& own,
                                         const Handshake& handshake, Deadline deadline,
                                         const GatheringSettings& settings, Host0& host_0) {
  const std::string at = other_end(connection.get()).text();
  try {
    const Deadline soon = std::min(deadline, deadline_in(settings.hello_s));
    if (!shake_hands(connection, at, handshake, soon, host_0)) return std::nullopt;
    connection.reader().accept(FrameType::welcome, longest_welcome(own.world));
    connection.reader().accept(FrameType::refused, kLongestRefusal);
    connection.send(FrameType::hello, encode(own));
    const std::optional<Frame> answer =
        wait_for_frame(connection, deadline + std::chrono::duration_cast<Clock::duration>(
                                                  std::chrono::duration<double>(settings.grace_s)));
    if (!answer)
      fail(Fault::rank, "host 0 at {} did not answer within {} s", at,
           settings.timeout_s + settings.grace_s);
    if (answer->type == FrameType::refused) throw TeamBroken(decode_text(answer->payload));
    GatheredHosts out{.host = 0, .map = decode_welcome(answer->payload, own.world), .peers = {}};
    if (out.map.ranks() != own.world)
      fail(Fault::rank, "host 0 at {} knows {} of {} ranks", at, out.map.ranks(), own.world);
    out.host = out.map.host_of(own.first_rank);
    connection.reader().refuse(FrameType::welcome);
    connection.reader().refuse(FrameType::refused);
    out.peers.push_back(std::move(connection));
    return out;
  } catch (const ConnectionLost& e) {
    host_0.why = e.what();
    return std::nullopt;
  }
}

}  // namespace dpt
