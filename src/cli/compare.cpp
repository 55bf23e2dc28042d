// dptrain compare A B: reports at which step two runs start to differ, and by how much.
#include "report/compare.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/run_argument.h"
#include "cli/trained_run.h"
#include "formats/json.h"
#include "train/reporter.h"

namespace dpt::commands {
namespace {

// An argument's content: a run directory, a safetensors file, or JSON lines of losses.
struct Side {
  std::string path;
  std::optional<RecordedLosses> losses;
  std::optional<SafeTensors> weights;
};

Side read_side(const std::string& given) {
  Side side;
  const bool folder = names_run(given);
  side.path = folder ? find_run(given, "model.safetensors") : given;
  const std::string losses = folder ? side.path + "/metrics.jsonl" : given;
  const std::string weights = folder ? model_file(side.path) : given;
  if (folder ? std::filesystem::exists(weights) : given.ends_with(".safetensors"))
    side.weights = SafeTensors::read(weights);
  if (folder ? std::filesystem::exists(losses) : !side.weights) side.losses = read_losses(losses);
  return side;
}

enum class Verdict { same, within, apart };

Verdict verdict_of(bool differ, bool beyond) {
  if (beyond) return Verdict::apart;
  return differ ? Verdict::within : Verdict::same;
}

// What compare prints: texts for people, or the same as JSON.
struct Findings {
  std::string text;
  Json json = Json::object();
  std::vector<Verdict> verdicts;
};

Json json_of(const std::optional<LossPair>& p, const std::string& interval) {
  if (!p) return {};
  return {{interval, p->at},
          {"a", Json::rounded(p->a, 9)},
          {"b", Json::rounded(p->b, 9)},
          {"distance", Json::rounded(p->distance, 9)}};
}

void add_losses(Findings& out, const std::string& interval, const LossesBy& a, const LossesBy& b,
                Tolerance tolerance) {
  const LossParting p = compare_losses(a, b, tolerance);
  out.text +=
      fmt::format("losses of {}{}{}\n", counted(p.compared, interval),
                  a.size() != b.size() ? fmt::format(" (A has {}, B {})", a.size(), b.size()) : "",
                  p.first ? "" : ": no difference");
  Json json = {{"interval", interval}, {"compared", p.compared}};
  const auto add = [&](std::string_view what, const char* key, const std::optional<LossPair>& at) {
    json.add(key, json_of(at, interval));
    if (!p.first) return;
    out.text += fmt::format("  {:<26}  ", what);
    out.text += at ? fmt::format("{} {}: {:.9g} and {:.9g}, {:.2g} apart\n", interval, at->at,
                                 at->a, at->b, at->distance)
                   : "none\n";
  };
  add("first that differs", "first", p.first);
  add("first beyond the tolerance", "first_beyond", p.first_beyond);
  add("largest distance", "largest", p.largest);
  out.json.add("losses", std::move(json));
  out.verdicts.push_back(verdict_of(p.first.has_value(), p.first_beyond.has_value()));
}

std::string described(const TensorParting& t) {
  if (!t.unlike.empty()) return t.unlike;
  if (t.differ == 0) return "same bits";
  const bool floats =
      t.desc.dtype != DType::i64 && t.desc.dtype != DType::i32 && t.desc.dtype != DType::u8;
  return fmt::format("{} of {} differ, {} beyond the tolerance; by {:.2g} at most{}", t.differ,
                     t.desc.shape.elements(), t.beyond, t.distance,
                     floats ? fmt::format(", {} ulp", t.ulps) : "");
}

std::string kind_of(const TensorParting& t) {
  return fmt::format("{}{}", name_of(t.desc.dtype), t.desc.shape.str());
}

Json json_of(const TensorParting& t) {
  Json out = {{"name", t.name}, {"type", kind_of(t)}};
  if (!t.unlike.empty()) return out.add("unlike", t.unlike);
  out.add("differ", t.differ);
  out.add("beyond", t.beyond);
  out.add("distance", Json::rounded(t.distance, 9));
  return out.add("ulps", t.ulps);
}

void add_weights(Findings& out, const SafeTensors& a, const SafeTensors& b, Tolerance tolerance) {
  const std::vector<TensorParting> tensors = compare_weights(a, b, tolerance);
  const auto beyond = [](const TensorParting& t) { return !t.unlike.empty() || t.beyond > 0; };
  const auto differs = [&](const TensorParting& t) { return beyond(t) || t.differ > 0; };
  const Verdict verdict =
      verdict_of(std::ranges::any_of(tensors, differs), std::ranges::any_of(tensors, beyond));
  out.verdicts.push_back(verdict);
  out.text += fmt::format("weights of {}{}\n", counted(tensors.size(), "tensor"),
                          verdict == Verdict::same ? ": same bits" : "");
  size_t names = 0, kinds = 0;
  Json json = Json::array();
  for (const TensorParting& t : tensors) {
    names = std::max(names, t.name.size());
    kinds = std::max(kinds, kind_of(t).size());
    json.push(json_of(t));
  }
  out.json.add("weights", std::move(json));
  if (verdict == Verdict::same) return;
  for (const TensorParting& t : tensors)
    out.text +=
        fmt::format("  {:<{}}  {:<{}}  {}\n", t.name, names, kind_of(t), kinds, described(t));
}

struct CompareArguments {
  std::string a, b;
  Tolerance tolerance;
  bool json = false;
};

void declare_compare(Arguments& arguments, CompareArguments& given) {
  arguments.about(
      "Reports at which step two runs start to differ, and by how much. A and B are run\n"
      "directories (runs/NAME or NAME: its newest run), files of losses (JSON lines, such as "
      "metrics.jsonl "
      "or\n"
      "what an exported program writes) or safetensors files. Steps are compared where both "
      "record\n"
      "them (log.every=1), else epochs. Exit codes: 0 the same within the tolerance, 1 they "
      "differ,\n"
      "2 there is nothing to compare, 4 a file cannot be read.");
  arguments.required("A", given.a, {takes::run | takes::file});
  arguments.required("B", given.b, {takes::run | takes::file},
                     "the reference that A is compared with");
  arguments.not_negative("--rtol NUMBER", given.tolerance.relative,
                         "relative to B; default: torch's for float32, 1.3e-6");
  arguments.not_negative("--atol NUMBER", given.tolerance.absolute,
                         "default: torch's for float32, 1e-5");
  arguments.flag("--json", given.json, "print JSON");
}

int run_compare(CompareArguments& given) {
  const Side a = read_side(given.a), b = read_side(given.b);
  Findings found;
  const auto compare_by = [&](const std::string& interval, LossesBy RecordedLosses::*by) {
    if (!a.losses || !b.losses || !found.verdicts.empty()) return;
    const LossesBy &of_a = (*a.losses).*by, &of_b = (*b.losses).*by;
    if (std::ranges::any_of(of_a, [&](const auto& r) { return of_b.contains(r.first); }))
      add_losses(found, interval, of_a, of_b, given.tolerance);
  };
  compare_by("step", &RecordedLosses::steps);
  compare_by("epoch", &RecordedLosses::epochs);
  if (a.weights && b.weights) add_weights(found, *a.weights, *b.weights, given.tolerance);
  if (found.verdicts.empty())
    fail(Fault::spec,
         "{} and {} have nothing in common to compare: weights, or losses of the same steps or "
         "epochs (log.every=1 records every step)",
         given.a, given.b);
  const Verdict verdict = *std::ranges::max_element(found.verdicts);
  const int code = verdict == Verdict::apart ? 1 : 0;
  if (given.json) {
    constexpr std::string_view kVerdicts[] = {"same", "within tolerance", "different"};
    Json out = {{"a", a.path}, {"b", b.path}, {"verdict", kVerdicts[static_cast<int>(verdict)]}};
    for (const auto& [key, value] : found.json.members()) out.add(key, value);
    print_stdout("{}\n", out.dump());
    return code;
  }
  print_stdout("{}", found.text);
  if (verdict == Verdict::apart)
    print_stdout("they differ\n");
  else if (verdict == Verdict::same)
    print_stdout("the same\n");
  else
    print_stdout("the same within rtol {:g}, atol {:g}\n", given.tolerance.relative,
                 given.tolerance.absolute);
  return code;
}

}  // namespace

Command compare() {
  return make_command("compare", "report at which step two runs start to differ, and by how much",
                      declare_compare, run_compare);
}

}  // namespace dpt::commands
