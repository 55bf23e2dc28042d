#include "comm/hosts/hosts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

#include <unistd.h>

#include "base/fail.h"
#include "base/stderr.h"
#include "comm/endpoint.h"
#include "comm/hosts/compare_hosts.h"
#include "comm/hosts/tcp_store.h"

namespace dpt {
namespace {

using Clock = std::chrono::steady_clock;

std::string name_of_machine(const World& world) {
  std::array<char, 65> name{};
  gethostname(name.data(), name.size() - 1);
  return world.pretended_host < 0 ? std::string(name.data())
                                  : fmt::format("{}-{}", name.data(), world.pretended_host);
}

HostHello hello_of(const World& world, const HostIdentity& identity, const std::string& name) {
  return {.first_rank = world.rank,
          .ranks = world.local_size,
          .world = world.size,
          .host = world.host,
          .name = name.empty() ? name_of_machine(world) : name,
          .address = {},
          .identity = identity};
}

// torchrun's store is shared with whatever else torchrun starts.
std::string store_key(const World& world) { return fmt::format("dptrain/{}/host 0", world.run_id); }

// torchrun's store at one of the master's addresses.
TcpStore open_store(const Master& master, Deadline deadline) {
  std::string why;
  for (const TcpAddress& at : resolve(master.host, master.port)) try {
      return {at, std::min(deadline, deadline_in(3))};
    } catch (const Error& e) {
      why = e.what();
    }
  fail(Fault::rank, "{}", why);
}

TcpListener listen_for_hosts(const TcpAddress& at, const NetworkTrust& trust,
                             const std::string& source) {
  check_trust(trust, at);
  try {
    return TcpListener(at);
  } catch (const Error& e) {
    fail(Fault::rank,
         "{}; end what listens there, or set DPTRAIN_MASTER=HOST:PORT with another port on all "
         "hosts (the address is from {})",
         e.what(), source);
  }
}

// Host 0's listener, at the address that the other hosts know or in torchrun's store.
TcpListener listen_as_host_0(const World& world, const std::string& name, const NetworkTrust& trust,
                             Deadline deadline) {
  const Master& master = world.master;
  std::string addresses;
  for (const TcpAddress& at : resolve(master.host, master.port)) {
    if (master.is_store) {
      TcpListener listener = listen_for_hosts(own_address_towards(at), trust, "torchrun");
      open_store(master, deadline).set(store_key(world), listener.address().text(), deadline);
      return listener;
    }
    if (is_own_address(at)) return listen_for_hosts(at, trust, master.source);
    addresses += (addresses.empty() ? "" : ", ") + at.host();
  }
  fail(Fault::rank,
       "rank 0 runs on {}, which does not have the address {} of {}: set {} to the host of rank 0",
       name, addresses, master.host, master.source);
}

// The other hosts' search for host 0.
class Search {
 public:
  Search(const World& world, HostHello hello, const NetworkTrust& trust,
         const GatheringSettings& settings)
      : world_(world),
        hello_(std::move(hello)),
        trust_(trust),
        settings_(settings),
        handshake_(trust.secret, world.run_id) {}

  GatheredHosts run(Deadline deadline);

 private:
  std::vector<TcpAddress> addresses(Deadline deadline);
  std::optional<GatheredHosts> attempt(Deadline deadline);
  // When the time is up, an attempt that was cut short says less than the one before.
  void note(std::string why, Deadline deadline) {
    if (why_.empty() || Clock::now() < deadline) why_ = std::move(why);
  }
  std::string target() const {
    return fmt::format("{} ({}{})", endpoint_text(world_.master.host, world_.master.port),
                       world_.master.is_store ? "torchrun's store, " : "", world_.master.source);
  }

  const World& world_;
  HostHello hello_;
  const NetworkTrust& trust_;
  const GatheringSettings& settings_;
  Handshake handshake_;
  std::optional<TcpStore> store_;
  std::string why_;  // the last attempt failed
  Host0 host_0_;
  bool reached_ = false;  // by the last attempt: something listens where host 0 may be
};

// Where host 0 may be; empty: it is not known yet.
std::vector<TcpAddress> Search::addresses(Deadline deadline) {
  const Master& master = world_.master;
  if (!master.is_store) return resolve(master.host, master.port);
  if (!store_) store_.emplace(open_store(master, deadline));
  const auto value = store_->get(store_key(world_), std::min(deadline, deadline_in(3)));
  if (!value) {
    note("host 0 has not published its address", deadline);
    return {};
  }
  // Anyone may write to the store: only numbers are looked up, and the host must prove itself.
  const auto endpoint = parse_endpoint(*value);
  const auto at =
      endpoint ? numeric_address(endpoint->host, endpoint->port) : std::optional<TcpAddress>();
  if (!at) fail(Fault::rank, "torchrun's store has an address of host 0 that is none: {}", *value);
  return {*at};
}

std::optional<GatheredHosts> Search::attempt(Deadline deadline) {
  std::vector<TcpAddress> candidates;
  try {
    candidates = addresses(deadline);
  } catch (const Error& e) {
    note(e.what(), deadline);
    store_.reset();
    return std::nullopt;
  }
  for (const TcpAddress& at : candidates) {
    check_trust(trust_, at);
    const bool pretends =
        world_.pretended_host >= 0 && at.is_loopback() && at.storage.ss_family == AF_INET;
    Descriptor socket =
        connect_tcp(at, pretends ? fmt::format("127.0.0.{}", world_.pretended_host + 1) : "",
                    std::min(deadline, deadline_in(3)), host_0_.why);
    if (socket) {
      reached_ = true;
      hello_.address = own_end(socket.get()).host();
      if (auto out = join_host_0(Connection(std::move(socket)), hello_, handshake_, deadline,
                                 settings_, host_0_))
        return out;
    }
    note(fmt::format("{}: {}", at.text(), host_0_.why), deadline);
  }
  return std::nullopt;
}

GatheredHosts Search::run(Deadline deadline) {
  const Deadline notice = deadline_in(settings_.notice_s);
  bool noticed = false;
  std::optional<Clock::time_point> silent_since;
  std::chrono::milliseconds pause(20);  // grows, since many hosts may ask one store
  for (;;) {
    reached_ = false;
    if (auto out = attempt(deadline)) return std::move(*out);
    const Deadline now = Clock::now();
    if (reached_ || !silent_since) silent_since = now;
    if (host_0_.launch && now - *silent_since >= std::chrono::duration<double>(settings_.gone_s))
      fail(Fault::rank,
           "host 0 at {} no longer answers, and not all hosts had connected: {}; read its own "
           "message, then start all hosts again",
           host_0_.at, host_0_.why);
    if (now >= deadline)
      fail(Fault::rank,
           "host 0 did not answer at {} within {} s: {}; start all hosts together, and let other "
           "hosts reach that port (this is {}, with {} of {})",
           target(), settings_.timeout_s, why_, name_of(hello_),
           rank_range(hello_.first_rank, hello_.ranks), hello_.world);
    if (!std::exchange(noticed, noticed || now >= notice) && now >= notice)
      print_stderr("{} is waiting for host 0 at {}, for at most {} s: {}\n", name_of(hello_),
                   target(), settings_.timeout_s, why_);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 3 / 2, std::chrono::milliseconds(500));
  }
}

}  // namespace

std::unique_ptr<ControlChannel> join_hosts(const World& world, const HostIdentity& identity,
                                           const NetworkTrust& trust,
                                           const HostsSettings& settings) {
  require(world.has_several_hosts() && world.local_rank == 0, "leaders of several hosts connect");
  const Deadline deadline = deadline_in(settings.gathering.timeout_s);
  HostHello hello = hello_of(world, identity, settings.name);
  if (world.rank != 0)
    return std::make_unique<ControlChannel>(
        Search(world, std::move(hello), trust, settings.gathering).run(deadline), settings.channel);
  TcpListener listener = listen_as_host_0(world, hello.name, trust, deadline);
  hello.address = listener.address().host();
  return std::make_unique<ControlChannel>(
      gather_hosts(listener, hello, Handshake(trust.secret, world.run_id), deadline,
                   settings.gathering),
      settings.channel);
}

bool tell_hosts_of_failure(const World& world, std::string_view why, const NetworkTrust& trust,
                           const HostsSettings& settings) noexcept {
  try {
    HostIdentity failed;
    failed.failure = why;
    join_hosts(world, failed, trust, settings);
  } catch (const TeamBroken&) {
    return true;
  } catch (const std::exception&) {  // nobody is left to be told, or there is no way to reach them
  }
  return false;
}

}  // namespace dpt
