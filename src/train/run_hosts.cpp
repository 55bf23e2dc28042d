#include "train/run_hosts.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <net/if.h>

#include "base/fail.h"
#include "base/machine.h"
#include "comm/hosts/hosts.h"
#include "comm/hosts/tcp.h"
#include "comm/links/load.h"
#include "comm/rendezvous.h"
#include "comm/shared_memory.h"
#include "comm/watchdog.h"
#include "data/fingerprint.h"

namespace dpt {
namespace {

// What the leader tells the other ranks of its host, behind the header of their team.
struct LayoutHead {
  int32_t hosts = 0, host = 0, cores_per_rank = 1;
  char interface[IFNAMSIZ] = {};  // 0-terminated
  static constexpr size_t bytes(int most_hosts) {
    return sizeof(LayoutHead) + sizeof(int32_t) * static_cast<size_t>(most_hosts);
  }
};

TeamShape shape_of(const World& local) { return {.ranks = local.size, .workers_per_rank = 1}; }

void write(std::span<std::byte> to, const SessionQuery::Hosts& layout,
           const std::string& interface) {
  LayoutHead head{.hosts = static_cast<int32_t>(layout.first_ranks.size()),
                  .host = layout.host,
                  .cores_per_rank = layout.cores_per_rank};
  interface.copy(head.interface, sizeof head.interface - 1);
  std::memcpy(to.data(), &head, sizeof head);
  std::memcpy(to.data() + sizeof head, layout.first_ranks.data(),
              sizeof(int32_t) * layout.first_ranks.size());
}

SessionQuery::Hosts read(std::span<const std::byte> from, std::string& interface) {
  LayoutHead head;
  std::memcpy(&head, from.data(), sizeof head);
  SessionQuery::Hosts out{.first_ranks = std::vector<int>(static_cast<size_t>(head.hosts)),
                          .host = head.host,
                          .cores_per_rank = head.cores_per_rank};
  std::memcpy(out.first_ranks.data(), from.data() + sizeof head,
              sizeof(int32_t) * out.first_ranks.size());
  interface = head.interface;
  return out;
}

}  // namespace

RunHosts::RunHosts(const World& world, const HostIdentity& identity, double timeout_s)
    : local_(before_run(world)), timeout_s_(timeout_s) {
  find_own_ranks(world, identity);
  local_.job += ".layout";
  if (leads()) {
    try {
      join(world, identity);
    } catch (const Error& e) {
      tell_early_failure(local_, e.what(), {.timeout_s = timeout_s, .directory = {}});
      throw;
    }
  }
  const size_t header = Team::bytes(shape_of(local_));
  // The leader comes when all hosts have come.
  const RendezvousSettings patience{.timeout_s = 3 * timeout_s, .directory = {}};
  Rendezvous ranks = Rendezvous::join(
      local_,
      {.spec = identity.spec,
       .build = identity.version,
       .bytes = header + LayoutHead::bytes(world.size)},
      [&](SharedMemory& memory) {
        write(memory.span().subspan(header), layout_, interface_);
        Team::create(memory.span().first(header), shape_of(local_));
      },
      patience);
  layout_ = read(ranks.memory().span().subspan(header), interface_);
  ranks.goodbye();
  local_ = local_world(world);
}

RunHosts::~RunHosts() = default;

World RunHosts::before_run(const World& world) {
  World out = local_world(world);
  out.job += ".hosts";  // its socket is not that of the run
  return out;
}

// All ranks of a host must be there before it joins the others, or these would wait in vain.
void RunHosts::find_own_ranks(const World& world, const HostIdentity& identity) {
  if (local_.size == 1) return;
  constexpr double kShare = 0.75;  // of the time, so that host 0 still waits for this host
  try {
    Rendezvous::join(
        local_,
        {.spec = identity.spec, .build = identity.version, .bytes = Team::bytes(shape_of(local_))},
        [&](SharedMemory& memory) { Team::create(memory.span(), shape_of(local_)); },
        {.timeout_s = kShare * timeout_s_, .directory = {}})
        .goodbye();
  } catch (const TeamBroken&) {
    throw;
  } catch (const Error& e) {
    if (!leads()) throw;
    HostsSettings settings;
    settings.gathering.timeout_s = 10;
    if (tell_hosts_of_failure(world, e.what(), trust_from_environment(), settings))
      throw TeamBroken(e.what());
    throw;
  }
}

std::string RunHosts::name() const { return channel_ ? channel_->map().name_of(host()) : ""; }

void RunHosts::join(const World& world, const HostIdentity& identity) {
  HostsSettings settings;
  settings.gathering.timeout_s = settings.channel.stall_s = timeout_s_;
  channel_ = join_hosts(world, identity, trust_from_environment(), settings);
  lay_out();
}

void RunHosts::lay_out() {
  const HostMap& map = channel_->map();
  layout_.host = channel_->host();
  interface_ = interface_of(map.host(layout_.host).address);
  for (int h = 0; h < map.hosts(); ++h) layout_.first_ranks.push_back(map.host(h).first_rank);
  const int own = std::max(1, static_cast<int>(usable_cores().size()) / local_.size);
  layout_.cores_per_rank = own;
  for (const std::string& cores : channel_->all_gather(std::to_string(own)))
    layout_.cores_per_rank = std::min(layout_.cores_per_rank, std::atoi(cores.c_str()));
}

void RunHosts::compare(const SessionData& data) {
  compare(data.train, "training");
  if (data.test) compare(*data.test, data.evaluated_set());
  if (data.final_test) compare(*data.final_test, "test");
}

void RunHosts::compare(const Dataset& set, std::string_view name) {
  const std::vector<std::string> prints = channel_->all_gather(fingerprint(set));
  const std::vector<std::string> texts = channel_->all_gather(set.description);
  const auto other = std::ranges::find_if(prints, [&](const auto& p) { return p != prints[0]; });
  if (other == prints.end()) return;
  const auto number = static_cast<int>(other - prints.begin());
  const std::string there = channel_->map().name_of(number), here = channel_->map().name_of(0);
  const std::string why = fmt::format(
      "{} and {} have different {} data: {} has {}; {} has {}; copy the same files to all hosts",
      there, here, name, there, texts[static_cast<size_t>(number)], here, texts[0]);
  if (host() != 0) throw TeamBroken(why);
  fail(Fault::data, "{}", why);
}

void RunHosts::load(std::string_view backend) {
  module_ = &link_module(backend);
  module_->start();
}

Link& RunHosts::connect(std::optional<double> timeout_s) {
  // Nothing else ends a call of MPI that waits for a host that does not respond.
  constexpr double kEndS = 5;
  const Watchdog watchdog(*team_, 0, kEndS);
  team_->set_progress(0, {.phase = Phase::connecting});
  link_ = module_->connect(
      {.host = host(),
       .hosts = static_cast<int>(layout_.first_ranks.size()),
       .address = channel_->map().host(host()).address,
       .timeout_s = timeout_s.value_or(timeout_s_),
       .activity = &activity_,
       .all_gather = [this](const std::string& own) { return channel_->all_gather(own); },
       .explain =
           [this](const LinkFailed& failure) {
             channel_->data_failed(failure.peer(), failure.problem());
           }});
  team_->set_progress(0, {});
  return *link_;
}

std::string RunHosts::from_first(const std::string& text) {
  uint64_t size = text.size();
  channel_->broadcast(std::as_writable_bytes(std::span(&size, 1)));
  std::string out = host() == 0 ? text : std::string(size, ' ');
  channel_->broadcast(std::as_writable_bytes(std::span(out)));
  return out;
}

void RunHosts::broadcast(std::span<std::byte> bytes) { channel_->broadcast(bytes); }

void RunHosts::confirm_saved() {
  std::byte saved{1};
  channel_->broadcast(std::span(&saved, 1));
}

void RunHosts::watch(Team team) {
  team_ = team;
  channel_->watch(team, &activity_);
}

void RunHosts::give_up(const std::string& why) noexcept {
  if (channel_) channel_->give_up(why);
}

void RunHosts::end(bool ordered) noexcept {
  link_.reset();
  if (channel_) channel_->goodbye();        // with the reason, if the team was broken up
  if (module_ && ordered) module_->stop();  // MPI's would wait for hosts that are gone
  module_ = nullptr;
}

}  // namespace dpt
