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
#include "cli/spec_argument.h"
#include "train/reporter.h"

namespace dpt::commands {
namespace {

// An argument's content: a run directory, a safetensors file, or JSON lines of losses.
struct Side {
  std::optional<RecordedLosses> losses;
  std::optional<SafeTensors> weights;
};

Side read_side(const std::string& given) {
  Side side;
  const bool folder = std::filesystem::is_directory(given);
  const std::string path = folder ? named_run(given) : given;
  const std::string losses = folder ? path + "/metrics.jsonl" : path;
  const std::string weights = folder ? model_file(path) : path;
  if (folder ? std::filesystem::exists(weights) : path.ends_with(".safetensors"))
    side.weights = SafeTensors::read(weights);
  if (folder ? std::filesystem::exists(losses) : !side.weights) side.losses = read_losses(losses);
  return side;
}

enum class Verdict { same, within, apart };

Verdict verdict_of(bool differ, bool beyond) {
  if (beyond) return Verdict::apart;
  return differ ? Verdict::within : Verdict::same;
}

Verdict print_losses(const std::string& interval, const LossesBy& a, const LossesBy& b,
                     Tolerance tolerance) {
  const LossParting p = compare_losses(a, b, tolerance);
  print_stdout("losses of {}", counted(p.compared, interval));
  if (a.size() != b.size()) print_stdout(" (A has {}, B {})", a.size(), b.size());
  print_stdout("{}\n", p.first ? "" : ": no difference");
  const auto line = [&](std::string_view what, const std::optional<LossPair>& at) {
    print_stdout("  {:<26}  ", what);
    if (at)
      print_stdout("{} {}: {:.9g} and {:.9g}, {:.2g} apart\n", interval, at->at, at->a, at->b,
                   at->distance);
    else
      print_stdout("none\n");
  };
  if (p.first) {
    line("first that differs", p.first);
    line("first beyond the tolerance", p.first_beyond);
    line("largest distance", p.largest);
  }
  return verdict_of(p.first.has_value(), p.first_beyond.has_value());
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

Verdict print_weights(const SafeTensors& a, const SafeTensors& b, Tolerance tolerance) {
  const std::vector<TensorParting> tensors = compare_weights(a, b, tolerance);
  const auto beyond = [](const TensorParting& t) { return !t.unlike.empty() || t.beyond > 0; };
  const auto differs = [&](const TensorParting& t) { return beyond(t) || t.differ > 0; };
  const Verdict verdict =
      verdict_of(std::ranges::any_of(tensors, differs), std::ranges::any_of(tensors, beyond));
  print_stdout("weights of {}{}\n", counted(tensors.size(), "tensor"),
               verdict == Verdict::same ? ": same bits" : "");
  if (verdict == Verdict::same) return verdict;
  const auto kind = [](const TensorParting& t) {
    return fmt::format("{}{}", name_of(t.desc.dtype), t.desc.shape.str());
  };
  size_t names = 0, kinds = 0;
  for (const TensorParting& t : tensors) {
    names = std::max(names, t.name.size());
    kinds = std::max(kinds, kind(t).size());
  }
  for (const TensorParting& t : tensors)
    print_stdout("  {:<{}}  {:<{}}  {}\n", t.name, names, kind(t), kinds, described(t));
  return verdict;
}

int run_compare(const std::vector<std::string>& words) {
  Arguments arguments(
      "compare",
      "Reports at which step two runs start to differ, and by how much. A and B are run\n"
      "directories (runs/NAME: its newest run), files of losses (JSON lines, such as metrics.jsonl "
      "or\n"
      "what an exported program writes) or safetensors files. Steps are compared where both "
      "record\n"
      "them (log.every=1), else epochs. Exit codes: 0 the same within the tolerance, 1 they "
      "differ,\n"
      "2 there is nothing to compare, 4 a file cannot be read.");
  std::string a_path, b_path;
  Tolerance tolerance;
  arguments.required("A", a_path);
  arguments.required("B", b_path, "the reference that A is compared with");
  arguments.not_negative("--rtol NUMBER", tolerance.relative,
                         "relative to B; default: torch's for float32, 1.3e-6");
  arguments.not_negative("--atol NUMBER", tolerance.absolute, "default: torch's for float32, 1e-5");
  arguments.parse(words);
  const Side a = read_side(a_path), b = read_side(b_path);
  std::vector<Verdict> verdicts;
  const auto compare_by = [&](const std::string& interval, LossesBy RecordedLosses::*by) {
    if (!a.losses || !b.losses || !verdicts.empty()) return;
    const LossesBy &of_a = (*a.losses).*by, &of_b = (*b.losses).*by;
    if (std::ranges::any_of(of_a, [&](const auto& r) { return of_b.contains(r.first); }))
      verdicts.push_back(print_losses(interval, of_a, of_b, tolerance));
  };
  compare_by("step", &RecordedLosses::steps);
  compare_by("epoch", &RecordedLosses::epochs);
  if (a.weights && b.weights) verdicts.push_back(print_weights(*a.weights, *b.weights, tolerance));
  if (verdicts.empty())
    fail(Fault::spec,
         "{} and {} have nothing in common to compare: weights, or losses of the same steps or "
         "epochs (log.every=1 records every step)",
         a_path, b_path);
  const Verdict verdict = *std::ranges::max_element(verdicts);
  if (verdict == Verdict::apart) {
    print_stdout("they differ\n");
    return 1;
  }
  if (verdict == Verdict::same)
    print_stdout("the same\n");
  else
    print_stdout("the same within rtol {:g}, atol {:g}\n", tolerance.relative, tolerance.absolute);
  return 0;
}

}  // namespace

Command compare() {
  return {.name = "compare",
          .summary = "report at which step two runs start to differ, and by how much",
          .run = run_compare};
}

}  // namespace dpt::commands
