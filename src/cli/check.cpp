// dptrain check SPEC: finds everything that is wrong with a spec, and trains nothing.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/count.h"
#include "base/machine.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "checkpoint/model_file.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "data/check_samples.h"
#include "formats/json.h"
#include "session/label_check.h"
#include "train/memory_estimate.h"
#include "train/warnings.h"

namespace dpt::commands {
namespace {

constexpr int64_t kMostDecoded = 1000;  // images of a set: photographs take some seconds

// Prints errors as they are found; one does not keep others from being found.
class Findings {
 public:
  // Whether it went well.
  template <class F>
  bool collect(F&& look) {
    try {
      look();
      return true;
    } catch (const BadSpec& e) {
      add(e.text, Fault::spec);
    } catch (const Error& e) {
      add(fmt::format("dptrain: {}\n", e.report()), e.fault());
    }
    return false;
  }
  void add(const std::string& text, Fault fault) {
    if (std::ranges::find(texts_, text) != texts_.end()) return;
    if (texts_.empty()) code_ = static_cast<int>(fault);
    texts_.push_back(text);
    errors_.push(Json{{"exit_code", static_cast<int>(fault)}, {"text", text}});
    print_stderr("{}", text);
  }
  void warn(const std::vector<Warning>& warnings) {
    for (const Warning& w : warnings) warnings_.push(Json{{"text", render({w})}});
    print_stderr("{}", render(warnings));
  }
  int code() const { return code_; }  // of the first error; 0: there is none
  Json json(const std::string& spec) const {
    return {{"spec", spec}, {"ok", code_ == 0}, {"errors", errors_}, {"warnings", warnings_}};
  }

 private:
  std::vector<std::string> texts_;
  Json errors_ = Json::array(), warnings_ = Json::array();
  int code_ = 0;
};

// Each of the files that the data set needs, where a session could not be made.
void check_splits(const Spec& spec, Findings& found) {
  const auto& type = *static_cast<const DatasetType*>(spec.data.dataset.what);
  const auto& loss = *static_cast<const LossType*>(spec.loss.what);
  LoadQuery query{.folder = std::filesystem::path(spec.path).parent_path().string(),
                  .binary_labels = has_binary_labels(loss),
                  .sizes_only = true};
  if (loss.ignore_index && spec.data.target_transforms.empty())
    query.ignore_index = loss.ignore_index(spec.loss.settings);
  for (const Split split : {Split::train, Split::test}) {
    query.split = split;
    const bool evaluated = spec.evaluate.on && !spec.data.validation.on();
    if (split == Split::train || evaluated)
      found.collect([&] { (void)type.load(spec.data.dataset.settings, query); });
  }
  const Choice& validation = spec.data.validation.dataset;
  query.split = Split::train;
  if (validation)
    found.collect([&] {
      (void)static_cast<const DatasetType*>(validation.what)->load(validation.settings, query);
    });
}

// The rest of the spec, on a made-up set of the same shapes.
bool check_stand_in(SpecArgument argument, const Spec& spec, Findings& found) {
  const auto& type = *static_cast<const DatasetType*>(spec.data.dataset.what);
  if (type.stand_in == nullptr) return false;
  argument.overrides.push_back("data.dataset=" + type.stand_in(spec.data.dataset.settings));
  bool opened = false;
  found.collect([&] {
    const LoadedSpec loaded = load(argument);
    const auto session = open_session(loaded, {.runs = false, .sizes_only = true});
    opened = true;
    check_initial_weights(session->settings, session->model);
  });
  return opened;
}

void check_data(const Session& s, int64_t most_decoded, Findings& found) {
  const SessionData& data = s.data;
  const auto look = [&](const Dataset& set, std::string_view name) {
    const SampleReport report = check_samples(set, name, most_decoded);
    for (const std::string& problem : report.problems)
      found.add(fmt::format("dptrain: {}\n", problem), Fault::data);
    if (report.read > 0)
      print_stderr("{} set: decoded {} of {}{}{}\n", name, report.read - report.broken,
                   counted(set.size(), "image"),
                   report.read < set.size() ? ", evenly spread; --all-images decodes all" : "",
                   report.broken > 0 ? fmt::format("; {} cannot be read", report.broken) : "");
    if (!report.remarks.empty()) print_stderr("warning: {} set: {}\n", name, report.remarks);
  };
  // Labels of the training set have been checked: these make the loss of an evaluation infinite.
  const auto look_at_labels = [&](const Dataset& set, std::string_view name,
                                  std::span<const uint32_t> rows) {
    const std::string problem = misfitting_labels(s.settings, s.model, set, name, rows);
    if (!problem.empty()) found.add(fmt::format("dptrain: {}\n", problem), Fault::data);
  };
  look(data.train, "training");
  if (data.test && data.test_rows.empty()) look(*data.test, data.evaluated_set());
  if (data.test) look_at_labels(*data.test, data.evaluated_set(), data.test_rows);
  if (data.final_test) {
    look(*data.final_test, "test");
    look_at_labels(*data.final_test, "test", {});
  }
}

void check_session(const LoadedSpec& loaded, const SpecArgument& argument, int64_t most_decoded,
                   Findings& found) {
  std::unique_ptr<const Session> session;
  found.collect([&] { session = open_session(loaded, {.runs = false, .sizes_only = true}); });
  if (session) {
    found.collect([&] { check_memory(*session); });
    if (found.collect(
            [&] { print_stderr("{}", partial_weights_text(session->settings, session->model)); }) &&
        found.collect([&] { check_initial_weights(session->settings, session->model); }))
      found.collect([&] { check_weight_values(session->settings, session->model); });
    check_data(*session, most_decoded, found);
    found.warn(warnings_of(*session, static_cast<int>(usable_cores().size())));
    return;
  }
  check_splits(loaded.spec, found);
  const bool stands_in =
      found.code() == static_cast<int>(Fault::data) && check_stand_in(argument, loaded.spec, found);
  if (!stands_in) found.collect([&] { check_weights_file(loaded.spec); });
}

// The specs among the words: overrides have a `=`.
std::vector<std::string> take_specs(SpecArgument& argument) {
  std::vector<std::string> out = {argument.path};
  std::erase_if(argument.overrides, [&](const std::string& word) {
    const bool spec = word.find('=') == word.npos;
    if (spec) out.push_back(word);
    return spec;
  });
  return out;
}

struct CheckArguments {
  SpecArgument spec;
  bool syntax = false, all_images = false, json = false;
};

void declare_check(Arguments& arguments, CheckArguments& given) {
  arguments.about(
      "Reports all errors in specs, their data and their initial weights; the exit code is the\n"
      "first error's. At most 1000 images of each set are decoded. Overrides apply to all specs.");
  given.spec.add_to(arguments, "YAML files: configs/*.yaml", 0, takes::spec);
  arguments.flag("--no-data", given.syntax,
                 "check only the text of the spec; do not open the data or check shapes");
  arguments.flag("--all-images", given.all_images, "decode every image", "--no-data");
  arguments.flag("--json", given.json, "print errors and warnings as JSON");
}

int run_check(CheckArguments& given) {
  int code = 0;
  Json results = Json::array();
  for (const std::string& path : take_specs(given.spec)) {
    given.spec.path = path;
    Findings found;
    std::optional<LoadedSpec> loaded;
    found.collect([&] { loaded = load(given.spec); });
    if (loaded && given.syntax)
      found.warn(warnings_of(loaded->spec));
    else if (loaded)
      check_session(*loaded, given.spec,
                    given.all_images ? std::numeric_limits<int64_t>::max() : kMostDecoded, found);
    if (found.code() == 0 && !given.json) print_stdout("{}: ok\n", path);
    if (code == 0) code = found.code();
    results.push(found.json(path).on_line(0));
  }
  if (given.json) print_stdout("{}\n", Json{{"specs", std::move(results)}}.dump());
  return code;
}

}  // namespace

Command check() {
  return make_command("check", "report all errors in specs", declare_check, run_check);
}

}  // namespace dpt::commands
