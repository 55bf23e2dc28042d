#include "train/host_runs.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include "backend/cuda/interface/nccl_environment.h"
#include "checkpoint/resume.h"
#include "comm/links/memory_link.h"
#include "comm/workers.h"
#include "data/folder.h"
#include "engine/gpu/executor.h"
#include "engine/host_messages.h"
#include "session/host_traffic.h"
#include "train/redirect.h"
#include "train/run_folder.h"
#include "train/run_memory.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

// Counts the messages of another link.
class CountingLink final : public Link {
 public:
  explicit CountingLink(std::unique_ptr<Link> link) : link_(std::move(link)) {}
  int host() const override { return link_->host(); }
  int hosts() const override { return link_->hosts(); }
  Request send(int peer, uint32_t tag, std::span<const std::byte> bytes) override {
    ++sends_;
    return link_->send(peer, tag, bytes);
  }
  Request receive(int peer, uint32_t tag, std::span<std::byte> bytes) override {
    ++receives_;
    return link_->receive(peer, tag, bytes);
  }
  void wait(Request request) override { link_->wait(request); }
  bool done(Request request) override { return link_->done(request); }
  void abort() noexcept override { link_->abort(); }
  uint64_t bytes_sent() const override { return link_->bytes_sent(); }
  uint64_t bytes_received() const override { return link_->bytes_received(); }
  uint64_t messages() const { return std::max(sends_, receives_); }

 private:
  std::unique_ptr<Link> link_;
  uint64_t sends_ = 0, receives_ = 0;
};

struct Host {
  std::unique_ptr<const Session> session;
  std::string resolved_spec;
  std::optional<RunMemory> memory, test_memory;  // to train; to evaluate the trained weights
  std::vector<std::unique_ptr<RankState>> ranks;
  std::vector<GpuAccess> test_gpus;  // [ranks] for evaluations of the trained weights
  std::unique_ptr<CountingLink> link;
};

// Null: the spec is refused for the reasons in `refused`.
std::unique_ptr<Host> make_host(const std::string& yaml, const std::vector<std::string>& overrides,
                                const SessionQuery& query, std::string& refused) {
  auto out = std::make_unique<Host>();
  const Folder folder;
  folder.write("t.yaml", yaml);
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  Node tree;
  Spec spec = load_spec(folder.file("t.yaml"), overrides, registries(), files, d, &tree);
  if (d.ok()) out->session = make_session(std::move(spec), query, d);
  refused = d.render();
  if (!out->session) return nullptr;
  out->resolved_spec = to_yaml(tree);
  const Session& s = *out->session;
  // Spinning workers would take each other's cores.
  out->memory.emplace(s, TeamSettings{.spin_us = 0});
  // A team of its own: executors count the posts of a team that no other executor has used.
  out->test_memory.emplace(s, TeamSettings{.spin_us = 0});
  return out;
}

// For the evaluation of the trained weights.
std::unique_ptr<StepExecutor> make_executor(Host& host, int rank, int worker) {
  const Session& s = *host.session;
  if (s.devices.on_gpu())
    return make_gpu_executor(s, host.memory->buffers(), host.test_memory->team(), worker,
                             host.test_gpus[static_cast<size_t>(rank)], {});
  const Topology& topology = s.devices.topology;
  const int first = static_cast<int>(topology.workers_of_host(topology.host).begin);
  return std::make_unique<Executor>(s, host.memory->buffers(), host.test_memory->team(),
                                    first + worker, nullptr, StepExecutor::Samples{}, nullptr,
                                    nullptr, worker == 0 ? host.link.get() : nullptr);
}

void train_rank(Host& host, int rank, HostRun& out, size_t number, Reporter* reporter) {
  run_workers(host.memory->team(), rank, [&](int worker) {
    const Outcome mine = train_worker(*host.ranks[static_cast<size_t>(rank)], worker,
                                      {.reporter = worker == 0 ? reporter : nullptr});
    if (worker == 0) out.outcomes[number] = mine;
  });
}

void evaluate_rank(Host& host, int rank, HostRun& out, size_t number) {
  run_workers(host.test_memory->team(), rank, [&](int worker) {
    const Evaluation found = make_executor(host, rank, worker)->evaluate({});
    if (worker == 0) out.evaluations[number] = found;
  });
}

// What a rank on GPUs is given. open: as HostRunSettings has it.
GpuAccess gpus_of(Host& host, int rank, const OpenGpu& open) {
  const Topology& topology = host.session->devices.topology;
  const int first = static_cast<int>(topology.workers_of_host(topology.host).begin);
  GpuAccess out{.open = [open, first](int gpu) { return open(first + gpu); },
                .shared = host.memory->gpus()};
  if (rank > 0 || !host.link) return out;
  out.link = host.link.get();
  out.broadcast = [&host](std::span<std::byte> id) {
    constexpr uint32_t kTag = 200;
    broadcast(*host.link, kTag, id);
  };
  return out;
}

// Fills the buffers, on the first host from the checkpoint, and makes the ranks.
void start_ranks(Host& host, int ranks, const std::optional<Resume>& resume,
                 const HostRunSettings& settings) {
  const Session& s = *host.session;
  const Generator generator = host.memory->fill(resume);
  for (int r = 0; r < ranks; ++r) {
    host.ranks.push_back(
        std::make_unique<RankState>(s, host.memory->buffers(), host.memory->team(), r, generator));
    host.ranks.back()->link = r == 0 ? host.link.get() : nullptr;
    if (resume) host.ranks.back()->resumed = &resume->state;
    if (!settings.gpus) continue;
    host.ranks.back()->gpus = gpus_of(host, r, settings.gpus);
    host.test_gpus.push_back(gpus_of(host, r, settings.test_gpus));
  }
}

// Calls run(host, rank) for all ranks of all hosts, each on a thread of its own. memory: the one
// whose team run() uses.
template <class Run>
void run_all(const std::vector<std::unique_ptr<Host>>& hosts, const std::vector<int>& ranks,
             std::optional<RunMemory> Host::*memory, HostRun& out, Run run) {
  std::vector<std::thread> threads;
  for (size_t h = 0; h < hosts.size(); ++h)
    for (int r = 0; r < ranks[h]; ++r)
      threads.emplace_back([&, h, r] {
        try {
          run(h, r);
        } catch (const TeamBroken&) {
        } catch (const Error& e) {
          out.errors[h] = e.what();
          if (hosts[h]->link) hosts[h]->link->abort();
          // As the control channel does, since GPUs wait for each other by NCCL.
          for (const auto& host : hosts)
            if (host->session->devices.on_gpu())
              ((*host).*memory)->team().break_up(Team::kOtherHost, e.what());
        }
      });
  for (std::thread& t : threads) t.join();
}

// Trains, and evaluates what was trained.
void run_all(const std::vector<std::unique_ptr<Host>>& hosts, const std::vector<int>& ranks,
             Reporter* reporter, HostRun& out) {
  run_all(hosts, ranks, &Host::memory, out, [&](size_t h, int r) {
    train_rank(*hosts[h], r, out, h, h == 0 && r == 0 ? reporter : nullptr);
  });
  const bool trained = std::ranges::all_of(out.errors, &std::string::empty);
  if (!trained || !hosts[0]->session->data.test) return;
  run_all(hosts, ranks, &Host::test_memory, out,
          [&](size_t h, int r) { evaluate_rank(*hosts[h], r, out, h); });
}

// What each host ended with, and sent.
void collect(const std::vector<std::unique_ptr<Host>>& hosts, HostRun& out) {
  for (size_t h = 0; h < hosts.size(); ++h) {
    const FlatLayout& flat = hosts[h]->session->model.layout;
    const float* const weights = hosts[h]->memory->buffers().weights();
    out.weights.emplace_back(weights, weights + (h == 0 ? flat.total : flat.trainable));
    const CountingLink* const link = hosts[h]->link.get();
    out.sent.push_back(link ? link->bytes_sent() : 0);
    out.received.push_back(link ? link->bytes_received() : 0);
    out.messages.push_back(link ? link->messages() : 0);
  }
}

std::vector<HostTraffic> counted_traffic(const Session& s) {
  const HostTrafficCounter counter(s);
  std::vector<HostTraffic> out(static_cast<size_t>(s.devices.topology.hosts()));
  for (const Plan::Steps* steps : {&s.plan.prologue, &s.plan.micro, &s.plan.update})
    for (const PlanStep& step : *steps)
      for (size_t h = 0; h < out.size(); ++h) {
        const HostTraffic one = counter.of(step, static_cast<int>(h));
        out[h].sent += one.sent;
        out[h].received += one.received;
        out[h].messages += one.messages;
      }
  return out;
}

}  // namespace

HostRun run_on_hosts(const std::string& yaml, const HostRunSettings& settings,
                     const std::vector<std::string>& overrides) {
  SessionQuery query;
  query.world = 0;
  if (settings.gpus) query.gpus = cuda::GpuSurvey{.count = kFakeGpus};
  if (settings.gpus) cuda::set_nccl_environment_of_hosts("");
  std::vector<int> first_ranks;
  for (const int n : settings.ranks) {
    first_ranks.push_back(*query.world);
    *query.world += n;
  }
  const size_t count = settings.ranks.size();
  std::optional<MemoryNetwork> network;
  if (count > 1) network.emplace(static_cast<int>(count));
  if (network && settings.reorder > 0) network->reorder(settings.reorder);
  HostRun out;
  out.outcomes.resize(count);
  out.evaluations.resize(count);
  out.errors.resize(count);
  std::vector<std::unique_ptr<Host>> hosts;
  std::optional<Resume> resume;
  for (size_t h = 0; h < count; ++h) {
    if (count > 1)
      query.hosts = {.first_ranks = first_ranks, .host = static_cast<int>(h), .cores_per_rank = 1};
    hosts.push_back(make_host(yaml, overrides, query, out.refused));
    if (!hosts.back()) {
      REQUIRE_MESSAGE(settings.may_refuse, out.refused);
      return out;
    }
    Host& host = *hosts.back();
    const Session& s = *host.session;
    if (count > 1)
      host.link = std::make_unique<CountingLink>(network->connect(static_cast<int>(h)));
    std::string why;
    if (h == 0 && !settings.resume.empty())
      resume =
          find_resume(settings.resume, settings.resume, s, host.resolved_spec, why, Match::fits);
    start_ranks(host, settings.ranks[h], resume, settings);
  }
  const Session& first = *hosts[0]->session;
  Disk disk;
  // What the reporter prints.
  const Redirect no_output(STDOUT_FILENO, "/dev/null"), no_errors(STDERR_FILENO, "/dev/null");
  std::unique_ptr<Reporter> reporter;
  std::optional<CheckpointStore> store;
  if (!settings.folder.empty()) {
    make_run_folder(settings.folder, disk);
    reporter = std::make_unique<Reporter>(first, settings.folder, Reporter::Settings{});
    store.emplace(first, settings.folder, hosts[0]->resolved_spec,
                  resume ? resume->path : std::string(), disk);
    for (auto& host : hosts)
      for (auto& rank : host->ranks) rank->checkpoints = &*store;
  }
  run_all(hosts, settings.ranks, reporter.get(), out);
  if (reporter) reporter->settle();
  collect(hosts, out);
  out.steps = first.batches.train->steps();
  if (first.devices.cpus_span_hosts()) {
    const HostLayout& layout = *first.shares.hosts;
    for (size_t h = 0; h < count; ++h)
      out.of_step.push_back(exchange_bytes(layout.parts(), layout.owners(), static_cast<int>(h)));
    out.sent_in_backward = layout.made_after().size();
    out.counted = counted_traffic(first);
  }
  return out;
}

}  // namespace dpt
