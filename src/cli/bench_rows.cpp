#include "cli/bench_rows.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "backend/cuda/interface/load.h"
#include "base/fail.h"
#include "base/machine.h"
#include "layers/model.h"
#include "parallel/mode.h"

namespace dpt::commands {
namespace {

// Splits "128,512"; returns `fallback` for an empty text.
std::vector<std::string> split(std::string_view option, const std::string& text,
                               std::vector<std::string> fallback) {
  if (text.empty()) return fallback;
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    if (out.back().empty() || !seen.insert(out.back()).second)
      throw BadSpec{fmt::format(
          "dptrain: {} '{}' {}; write values separated by commas, each once\n", option, text,
          out.back().empty() ? "has an empty entry" : "names '" + out.back() + "' twice")};
    begin = end + 1;
  }
  return out;
}

// The topology of a spec. If the spec gives no number of devices, or gives it for another mode, the
// mode chooses.
Topology topology_of(const Spec& spec) {
  const auto& mode = *static_cast<const ModeType*>(spec.parallel.what);
  ModeQuery query{.machine_cores = static_cast<int>(usable_cores().size()),
                  .devices_per_replica = devices_of(spec.model)};
  if (const auto devices = devices_asked(spec.parallel, spec.devices.count))
    query.devices = static_cast<int>(*devices);
  return mode.topology(spec.parallel.settings, query);
}
int64_t devices_of(const Spec& spec) {
  const Topology topology = topology_of(spec);
  return int64_t{topology.ranks} * topology.devices_per_rank;
}

}  // namespace

std::vector<std::string> without_evaluations(const Spec& spec) {
  std::vector<std::string> out = {"evaluate=false"};
  if (!spec.save.best.empty()) out.emplace_back("save.best=none");
  if (spec.early_stop.patience > 0) out.emplace_back("early_stop=none");
  return out;
}

LoadedSpec load_with(const SpecArgument& argument, const std::vector<std::string>& more) {
  SpecArgument a = argument;
  a.overrides.insert(a.overrides.end(), more.begin(), more.end());
  return load(a);
}

RowMaker::RowMaker(const SpecArgument& argument, const BenchLists& lists)
    : argument_(argument), lists_(lists), base_(load(argument).spec) {}

std::vector<BenchRow> RowMaker::rows() {
  const auto batches =
      split("--batch-sizes", lists_.batch_sizes, {lists_.batch_sizes.empty() ? own_batch() : ""});
  const auto precisions =
      split("--precision", lists_.precisions, {std::string(base_.precision.what->name)});
  const std::vector<std::string> all_modes = modes(), all_devices = devices();
  std::vector<BenchRow> out;
  for (const std::string& batch : batches)
    for (const std::string& precision : precisions)
      for (const std::string& mode : all_modes)
        for (const std::string& count : counts(mode, all_devices))
          out.push_back(row(mode, count, batch, precision));
  return out;
}

std::vector<std::string> RowMaker::modes() const {
  if (!compares()) return split("--modes", lists_.modes, {"single", "dp", "ddp"});
  if (!lists_.modes.empty())
    throw BadSpec{
        "dptrain: --compare and --modes both name the modes to measure; use only one of them "
        "(--compare adds single and measures several device counts)\n"};
  std::vector<std::string> out = split("--compare", lists_.compare, {});
  std::erase(out, "single");
  if (out.empty())
    throw BadSpec{
        "dptrain: --compare measures single anyway; name a mode to compare with it: --compare "
        "dp,ddp\n"};
  out.insert(out.begin(), "single");
  return out;
}

// With --compare: 1, 2, 4, ... replicas, up to as many as the machine has cores or GPUs for.
std::vector<std::string> RowMaker::devices() const {
  if (!compares() || !lists_.devices.empty())
    return split("--devices", lists_.devices, {own_devices()});
  const int64_t machine = base_.devices.device == "cuda"
                              ? cuda::survey_gpus().count
                              : static_cast<int64_t>(usable_cores().size()) / cores_per_device();
  const int64_t span = devices_of(base_.model), most = std::max<int64_t>(1, machine / span);
  std::vector<std::string> out;
  for (int64_t n = 1; n < most; n *= 2) out.push_back(std::to_string(n * span));
  out.push_back(std::to_string(most * span));
  return out;
}

// Of devices: --devices does not say how many `single` has; "" is the mode's own number.
std::vector<std::string> RowMaker::counts(const std::string& mode,
                                          const std::vector<std::string>& devices) const {
  if (mode == "single") return {std::to_string(devices_of(base_.model))};
  if (mode != "pipeline") return devices;
  if (compares()) return stage_counts(devices);
  return lists_.devices.empty() ? std::vector<std::string>{""} : devices;
}

// The numbers of devices that form complete replicas of at least two stages. A pipeline whose spec
// says where stages begin is measured with its own number only.
std::vector<std::string> RowMaker::stage_counts(const std::vector<std::string>& devices) const {
  if (own_pipeline().cut) return {""};
  const int64_t replicas = own_pipeline().replicas;
  std::vector<std::string> out;
  for (const std::string& text : devices) {
    const int64_t n = device_count(text);
    if (n % replicas == 0 && n / replicas > 1) out.push_back(text);
  }
  return out.empty() ? std::vector<std::string>{""} : out;
}

// load() reports what is no number.
int64_t RowMaker::device_count(const std::string& text) const {
  int64_t out = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  if (error == std::errc() && at == end && out > 0) return out;
  return *load_with(argument_, {"devices=" + text}).spec.devices.count;
}

const RowMaker::Pipeline& RowMaker::own_pipeline() const {
  if (!own_pipeline_) {
    const Spec spec = load_with(argument_, pipeline_overrides("")).spec;
    const auto& mode = *static_cast<const ModeType*>(spec.parallel.what);
    own_pipeline_.emplace(Pipeline{.replicas = topology_of(spec).replicas(),
                                   .cut = !mode.pipeline(spec.parallel.settings).cut.empty()});
  }
  return *own_pipeline_;
}

// `devices`: how many, all replicas together; empty: as many as the spec says. Numbers that make no
// whole replicas are refused when the row is measured.
std::vector<std::string> RowMaker::pipeline_overrides(const std::string& devices) const {
  std::vector<std::string> out = {"devices=null"};
  if (base_.parallel.what->name != "pipeline") out.emplace_back("parallel=pipeline");
  if (devices.empty()) return out;
  const Pipeline& own = own_pipeline();
  const int64_t n = device_count(devices);
  if (!own.cut && n % own.replicas == 0)
    out.push_back(fmt::format("parallel.stages={}", n / own.replicas));
  out.push_back("devices=" + devices);
  return out;
}

// The number of devices that `parallel: {ddp: 2}` in the spec gives for all modes; empty if none.
std::string RowMaker::own_devices() const {
  const auto& mode = *static_cast<const ModeType*>(base_.parallel.what);
  const auto own = mode.devices ? mode.devices(base_.parallel.settings) : std::optional<int64_t>{};
  return own ? std::to_string(*own) : "";
}

std::string RowMaker::own_batch() const {
  const DataSpec& data = base_.data;
  if (data.auto_batch)
    fail(Fault::spec,
         "data.batch_size is auto, and a measurement needs numbers: write --batch-sizes 64,256");
  return std::to_string(data.batch_size ? *data.batch_size
                                        : *data.batch_size_per_replica *
                                              topology_of(base_).replicas() * base_.accumulate);
}

// load() reports a wrong value at the override that set it.
BenchRow RowMaker::row(const std::string& mode, const std::string& devices,
                       const std::string& batch, const std::string& precision) const {
  std::vector<std::string> overrides = without_evaluations(base_);
  overrides.push_back("data.batch_size=" + batch);
  // Without batch_size_per_replica its reference may be missing; rates do not change times.
  if (base_.lr_scale.rule != "none") overrides.emplace_back("lr_scale=none");
  if (precision != base_.precision.what->name) overrides.push_back("precision=" + precision);
  // If other keys of the pipeline exclude a number of stages, the row is refused when it is
  // measured.
  const bool stages_given = mode == "pipeline" && !devices.empty();
  if (!stages_given && mode != base_.parallel.what->name)
    overrides.push_back("parallel=" + mode);
  else if (!stages_given && !own_devices().empty())  // redundant with --devices
    overrides.push_back(fmt::format("parallel.{}=null", kDevicesKey));
  if (!devices.empty()) overrides.push_back("devices=" + devices);
  Spec spec = load_with(argument_, overrides).spec;
  if (stages_given)
    for (std::string& o : pipeline_overrides(devices)) overrides.push_back(std::move(o));
  if (devices.empty() && (spec.devices.count == 1 || mode == "pipeline"))
    spec.devices.count.reset();  // the count of `single`, or of another mode
  const int64_t count = devices.empty() ? devices_of(spec) : *spec.devices.count;
  if (devices.empty()) overrides.push_back(fmt::format("devices={}", count));
  overrides.push_back(fmt::format("cores={}", cores_per_device()));
  return {.mode = mode,
          .devices = count,
          .batch_size = *spec.data.batch_size,
          .precision = std::string(spec.precision.what->name),
          .overrides = overrides};
}

}  // namespace dpt::commands
