// dptrain plan SPEC: prints what a run would do in each step and the memory it would need.
#include "base/fail.h"
#include "base/files.h"
#include "base/stdout.h"
#include "checkpoint/model_file.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/fit_batch.h"
#include "cli/spec_argument.h"
#include "describe/device_usage.h"
#include "describe/gantt.h"
#include "describe/plan_text.h"
#include "report/step_time.h"

namespace dpt::commands {
namespace {

// So many machines like the one of this topology.
SessionQuery on_hosts(const Topology& one, int hosts, SessionQuery out) {
  out.world = one.ranks * hosts;
  out.hosts = SessionQuery::Hosts();
  out.hosts->cores_per_rank = one.workers_per_rank();
  for (int h = 0; h < hosts; ++h) out.hosts->first_ranks.push_back(h * one.ranks);
  return out;
}

int run_plan(const std::vector<std::string>& words) {
  Arguments arguments(
      "plan", "Prints shapes, parameters, FLOPs, memory, and the steps of a run; runs nothing.");
  SpecArgument argument;
  bool verbose = false, time = false;
  std::string svg, fit;
  int hosts = 1;
  argument.add_to(arguments);
  arguments.flag("-v,--verbose", verbose,
                 "also print what each pass changed, and why preferred kernels were not chosen");
  arguments.text("--svg FILE", svg, "a file for a picture of the pipeline's schedule");
  arguments.text("--fit SIZE", fit,
                 "print only the largest data.batch_size whose memory per device fits into SIZE: "
                 "8GiB, 512MiB, or bytes");
  arguments.flag(
      "--time", time,
      "also measure this machine's kernels on the spec's shapes, and predict the time of "
      "a step from them",
      "--fit");
  arguments.number("--hosts N", hosts, 1, 1024,
                   "the plan of the first of N machines, each with the devices of the spec");
  arguments.parse(words);
  const LoadedSpec loaded = load(argument);
  if (!fit.empty()) {
    print_fitting_batch(loaded, fit);
    return 0;
  }
  const SessionQuery query{.runs = time, .sizes_only = !time};
  std::unique_ptr<const Session> session = open_session(loaded, query);
  if (hosts > 1) session = open_session(loaded, on_hosts(session->devices.topology, hosts, query));
  check_initial_weights(session->settings, session->model);
  print_stdout("{}{}", describe(*session, verbose),
               partial_weights_text(session->settings, session->model));
  if (time) print_stdout("{}", step_time_text(*session));
  if (svg.empty()) return 0;
  if (session->plan.schedule.empty())
    fail(Fault::spec,
         "--svg: there is no pipeline to draw; write `parallel: pipeline`, or `device` of layers");
  write_text(svg,
             gantt_svg(session->plan.schedule, predicted_timing(session->model, session->plan)));
  return 0;
}

}  // namespace

Command plan() {
  return {.name = "plan", .summary = "print what a run would do; run nothing", .run = run_plan};
}

}  // namespace dpt::commands
