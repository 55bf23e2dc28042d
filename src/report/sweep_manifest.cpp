#include "report/sweep_manifest.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/units.h"
#include "formats/json.h"
#include "session/session.h"
#include "spec/changes.h"
#include "train/run_data.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytesOfFile = 64 * kMiB;
constexpr const char* kRemedy = "; choose another folder with --out DIR";

std::string manifest_file(const std::string& folder) { return folder + "/sweep.json"; }
std::string spec_file(const std::string& folder) { return folder + "/base.yaml"; }

// Readers of the file never see a part of it.
void replace_file(const std::string& path, const std::string& text) {
  const std::string aside = path + ".new";
  write_text(aside, text, kRemedy);
  std::error_code error;
  fs::rename(aside, path, error);
  if (error) fail(Fault::failed, "{} cannot be written: {}{}", path, error.message(), kRemedy);
}

Json run_json(const Sweep& sweep, const SweepRun& r) {
  Json values = Json::object(), numbers = Json::object();
  for (const auto& [key, value] : r.point.values) values.add(key, value);
  const auto number = [&](const std::string& name, std::optional<double> x) {
    if (x) numbers.add(name, exact_json(*x));
  };
  std::set<std::string> metrics;
  for (const NumbersRecord& record : r.numbers.records())
    for (const auto& [name, value] : record.values) metrics.insert(name);
  for (const std::string& name : metrics) number(name, r.numbers.find(name));
  for (const std::string& name : metrics)
    if (name != "lr") number("best." + name, r.numbers.find("best." + name));
  for (const char* name : {"epochs", "steps", "seconds", "samples_per_second"})
    number(name, r.numbers.find(name));
  if (const NumbersRecord* at = sweep.reached(r)) {
    number("reached.epoch", static_cast<double>(at->epoch));
    number("reached.seconds", at->trained_s);
  }
  return {{"run", r.point.name},
          {"state", name_of(r.state)},
          {"note", r.note},
          {"values", values},
          {"numbers", numbers}};
}

struct SavedRun {
  std::string name, note;
  SweepState state = SweepState::waiting;
};
struct Manifest {
  std::string spec_sha256;
  std::map<std::string, std::string> settings;
  std::vector<SavedRun> runs;
};

std::string text_at(const Json& object, std::string_view key) {
  const Json* const found = object.find(key);
  return found && found->text() ? *found->text() : "";
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = manifest_file(folder);
  const auto root = Json::parse(read_file(path, kMostBytesOfFile));
  if (!root)
    fail(Fault::data, "{} is damaged; restore it, or start another sweep with --out DIR", path);
  Manifest out{.spec_sha256 = text_at(*root, "spec_sha256"), .settings = {}, .runs = {}};
  if (const Json* const settings = root->find("settings"))
    for (const auto& [key, value] : settings->members())
      out.settings[key] = text_at(*settings, key);
  if (const Json* const runs = root->find("runs"))
    for (const Json& run : runs->items())
      out.runs.push_back(
          {.name = text_at(run, "run"),
           .note = text_at(run, "note"),
           .state = sweep_state_named(text_at(run, "state")).value_or(SweepState::waiting)});
  return out;
}

// How the data differ from those that the first run with others was trained on; empty: they are the
// same.
std::string data_change_since(const std::string& folder, const Sweep& sweep) {
  for (const SweepRun& r : sweep.runs) {
    std::error_code error;
    const std::string run = folder + "/" + r.point.name;
    if (!r.facts.data || !fs::is_directory(run, error)) continue;
    const std::optional<SampleForm> form = form_of_run(run);
    if (!form || form->trained_on.empty()) continue;
    const std::string change = data_change(form->trained_on.back(), *r.facts.data);
    if (!change.empty())
      return fmt::format("{} ({} was trained with the former data)", change, r.point.name);
  }
  return "";
}

}  // namespace

void write_manifest(const Sweep& sweep, const SweepIdentity& identity) {
  Json settings = Json::object(), runs = Json::array();
  for (const auto& [key, value] : identity.settings) settings.add(key, value);
  for (const SweepRun& r : sweep.runs) runs.push(run_json(sweep, r).on_line(0));
  const Json manifest = {{"version", 1},
                         {"name", sweep.name},
                         {"spec_sha256", Sha256().update(identity.spec).hex()},
                         {"metric", sweep.metric},
                         {"settings", std::move(settings).on_line(0)},
                         {"runs", std::move(runs).on_line(0)}};
  if (!fs::exists(spec_file(sweep.folder))) replace_file(spec_file(sweep.folder), identity.spec);
  replace_file(manifest_file(sweep.folder), manifest.dump() + "\n");
}

bool holds_sweep(const std::string& folder) {
  std::error_code error;
  return fs::exists(manifest_file(folder), error);
}

std::vector<std::string> sweep_changes(const std::string& folder, const Sweep& sweep,
                                       const SweepIdentity& identity) {
  const Manifest saved = read_manifest(folder);
  std::vector<std::string> out;
  if (saved.spec_sha256 != Sha256().update(identity.spec).hex()) {
    const std::string before = read_file(spec_file(folder), kMostBytesOfFile);
    for (const SpecChange& c : spec_changes(before, identity.spec, registries()))
      out.push_back(fmt::format("{}: {} -> {}", c.key, c.before, c.now));
    if (out.empty()) out.emplace_back("the spec is written differently");
  }
  std::map<std::string, std::string> all = saved.settings;
  all.insert(identity.settings.begin(), identity.settings.end());
  const auto text = [](const std::map<std::string, std::string>& in, const std::string& key) {
    const auto found = in.find(key);
    return found == in.end() ? std::string("(not given)") : found->second;
  };
  for (const auto& [key, value] : all)
    if (text(saved.settings, key) != text(identity.settings, key))
      out.push_back(fmt::format("--{}: {} -> {}", key, text(saved.settings, key),
                                text(identity.settings, key)));
  std::vector<std::string> gone;
  for (const SavedRun& r : saved.runs)
    if (std::ranges::none_of(sweep.runs,
                             [&](const SweepRun& now) { return now.point.name == r.name; }))
      gone.push_back(r.name);
  if (!gone.empty())
    out.push_back(fmt::format("{} of its {} not among the values now: {}{}", gone.size(),
                              counted(saved.runs.size(), "run is", "runs are"), gone[0],
                              gone.size() > 1 ? ", ..." : ""));
  if (std::string change = data_change_since(folder, sweep); !change.empty())
    out.push_back(std::move(change));
  return out;
}

void restore_runs(Sweep& sweep, bool retry_failed) {
  const Manifest saved = read_manifest(sweep.folder);
  for (SweepRun& r : sweep.runs) {
    r.numbers = read_numbers(sweep.folder_of(r));
    const auto found = std::ranges::find(saved.runs, r.point.name, &SavedRun::name);
    if (found == saved.runs.end()) continue;
    const bool failed = found->state == SweepState::failed;
    // What successive halving dropped is decided anew, from the same numbers.
    const bool ended = found->state == SweepState::finished || found->state == SweepState::reached;
    if ((ended && r.numbers.epochs() > 0) || (failed && !retry_failed)) {
      r.state = found->state;
      r.note = found->note;
    } else if (found->state == SweepState::stopped || r.numbers.epochs() > 0) {
      r.state = SweepState::stopped;
    }
  }
}

}  // namespace dpt
