// dptrain plan SPEC: prints what a run would do in each step and the memory it would need.
#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/files.h"
#include "base/stdout.h"
#include "checkpoint/model_file.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/fit_batch.h"
#include "cli/plan_hosts.h"
#include "cli/plan_json.h"
#include "cli/spec_argument.h"
#include "cli/terminal_text.h"
#include "describe/device_usage.h"
#include "describe/gantt.h"
#include "describe/message_text.h"
#include "describe/plan_text.h"
#include "report/step_time.h"

namespace dpt::commands {
namespace {

struct HostWords {
  std::string hosts, link;
};

// Throws Error{spec} if they contradict each other, or what else is to be printed.
void check(const HostWords& words, const std::vector<int>& hosts, bool prints_else) {
  if (!words.link.empty() && words.hosts.empty())
    fail(Fault::spec,
         "--link says how several machines are connected, but --hosts is missing; add, for "
         "example, --hosts 1..64");
  if (!words.link.empty() && prints_else)
    fail(Fault::spec, "--link prints only a table of predicted times; leave out --fit and --svg");
  if (words.link.empty() && hosts.size() > 1)
    fail(Fault::spec,
         "--hosts: the plan of the range '{}' cannot be printed; write one number, or add, for "
         "example, --link 10GbE to print predicted times",
         words.hosts);
}

void print_messages(const LoadedSpec& loaded) {
  const std::unique_ptr<const Session> session =
      open_session(loaded, {.runs = false, .sizes_only = true});
  const Topology& topology = session->devices.topology;
  if (topology.ranks * topology.devices_per_rank < 2)
    fail(Fault::spec,
         "--bytes: the spec has one device, which sends nothing; add, for example, parallel=ddp "
         "devices=4");
  print_stdout("{}", message_text(*session, text_width()));
}

struct PlanArguments {
  SpecArgument spec;
  bool verbose = false, time = false, bytes = false, json = false;
  std::string svg, fit;
  HostWords several;
};

void declare_plan(Arguments& arguments, PlanArguments& given) {
  arguments.about(
      "Prints shapes, parameters, FLOPs, memory, and the steps of a run; runs nothing.");
  given.spec.add_to(arguments);
  arguments.flag("-v,--verbose", given.verbose,
                 "also print what each pass changed, and why preferred kernels were not chosen");
  arguments.text("--svg FILE", given.svg, {takes::file},
                 "a file for a picture of the pipeline's schedule");
  arguments.text("--fit SIZE", given.fit, {},
                 "print only the largest data.batch_size whose memory per device fits into SIZE: "
                 "8GiB, 512MiB, or bytes");
  arguments.flag(
      "--time", given.time,
      "also measure this machine's kernels on the spec's shapes, and predict the time of "
      "a step from them",
      "--fit");
  arguments.flag(
      "--bytes", given.bytes,
      "print only every message of a step, in bytes, that PyTorch's DataParallel, "
      "DistributedDataParallel, ZeRO 1 to 3 and pipelines would send for this net on the "
      "spec's devices, beside what dptrain moves",
      "--fit");
  arguments.text("--hosts N", given.several.hosts, {},
                 "the plan of the first of N machines, 1 to 1024, each with the devices of the "
                 "spec; with --link also a range, 1..1024");
  const std::vector<std::string_view> links = link_names();
  arguments.text("--link LINK", given.several.link, {.words = {links.begin(), links.end()}},
                 fmt::format("measure this machine, and print only a table of the predicted time "
                             "of a step on --hosts machines; the network between them: {}, or "
                             "bandwidth and latency, 1.15GB/s,25us",
                             fmt::join(links, ", ")));
  arguments.flag("--json", given.json, "print the numbers as JSON", "--verbose");
}

int run_plan(PlanArguments& given) {
  const std::vector<int> hosts =
      parse_hosts(given.several.hosts.empty() ? "1" : given.several.hosts);
  check(given.several, hosts, !given.fit.empty() || !given.svg.empty());
  if (given.json &&
      (given.bytes || given.time || !given.fit.empty() || !given.several.link.empty()))
    fail(Fault::spec, "--json prints the plan; leave out --bytes, --time, --fit and --link");
  if (given.bytes && (given.time || !given.svg.empty() || !given.several.hosts.empty()))
    fail(Fault::spec,
         "--bytes prints only a table of messages; leave out --time, --svg and --hosts");
  if (!given.several.link.empty()) {
    const LinkModel link = parse_link(given.several.link);
    print_host_table(load(given.spec), hosts, link);
    return 0;
  }
  const LoadedSpec loaded = load(given.spec);
  if (!given.fit.empty()) {
    print_fitting_batch(loaded, given.fit);
    return 0;
  }
  if (given.bytes) {
    print_messages(loaded);
    return 0;
  }
  const SessionQuery query{
      .one_of_several = hosts[0] > 1, .runs = given.time, .sizes_only = !given.time};
  std::unique_ptr<const Session> session = open_session(loaded, query);
  if (hosts[0] > 1)
    session = open_session(loaded, on_hosts(session->devices.topology, hosts[0], query));
  check_initial_weights(session->settings, session->model);
  if (given.json)
    print_stdout("{}", plan_json(*session));
  else
    print_stdout("{}{}", describe(*session, given.verbose),
                 partial_weights_text(session->settings, session->model));
  if (given.time) print_stdout("{}", step_time_text(*session));
  if (given.svg.empty()) return 0;
  if (session->plan.schedule.empty())
    fail(Fault::spec,
         "--svg: there is no pipeline to draw; write `parallel: pipeline`, or `device` of layers");
  write_text(given.svg,
             gantt_svg(session->plan.schedule, predicted_timing(session->model, session->plan)));
  return 0;
}

}  // namespace

Command plan() {
  return make_command("plan", "print what a run would do; run nothing", declare_plan, run_plan);
}

}  // namespace dpt::commands
