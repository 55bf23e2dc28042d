// The ONNX node test cases (tests/fixtures/onnx_nodes.py): the committed ones always, all of them
// where a folder with them is named in DPT_ONNX_CASES.
#include "onnx/nodes.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "layers/loss.h"
#include "optim/optimizer.h"
#include "paths.h"

namespace dpt {
namespace {

using namespace onnx;

// Where the first element lies outside; empty: none does.
std::string outside(const Comparison& r) {
  if (r.got.size() != r.want.size())
    return fmt::format("{} elements instead of {}", r.got.size(), r.want.size());
  for (size_t i = 0; i < r.got.size(); ++i) {
    const double a = r.got[i], b = r.want[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= r.tolerance.absolute + r.tolerance.relative * std::abs(b)))
      return fmt::format("element {} is {:.9g}, not {:.9g}", i, a, b);
  }
  return "";
}

struct Tally {
  int passed = 0;
  std::map<std::string, std::vector<std::string>> inexpressible;  // by reason
};

Tally run_all(const std::string& folder) {
  Tally tally;
  for (const Case& c : read_cases(folder).cases) {
    try {
      const std::vector<Comparison> results = run_case(c);
      CHECK_FALSE_MESSAGE(results.empty(), c.name);
      for (const Comparison& r : results) {
        const std::string wrong = outside(r);
        CHECK_MESSAGE(wrong.empty(), c.name, " ", r.what, ": ", wrong);
      }
      ++tally.passed;
    } catch (const Inexpressible& e) {
      tally.inexpressible[e.reason].push_back(c.name);
    } catch (const Error& e) {
      CHECK_MESSAGE(e.fault() == Fault::spec, c.name, ": ", std::string(e.what()));
      tally.inexpressible[e.what()].push_back(c.name);
    }
  }
  return tally;
}

}  // namespace

TEST_CASE("the committed ONNX node cases") {
  const Tally tally = run_all(test_file("fixtures"));
  std::string reasons;
  for (const auto& [reason, names] : tally.inexpressible)
    reasons += fmt::format("{} {}\n", names.size(), reason);
  CHECK(tally.passed == 244);
  CHECK(reasons ==
        "2 a mask of numpy's generator that the case does not give\n"
        "2 a sequence, not a tensor\n"
        "1 a transposed convolution whose padding the output decides\n"
        "1 add takes several values: write from: [a, b]\n"
        "1 add: [3, 4, 5] and [5] are not the same shape\n"
        "2 avg_pool has no dilation\n"
        "1 bfloat16 elements\n"
        "1 embedding counts rows from the front, as torch does\n"
        "2 embedding looks up whole rows of a table\n"
        "1 float16 elements\n"
        "1 int16 elements\n"
        "3 int32 elements\n"
        "2 int8 elements\n"
        "1 linear has one bias for all samples\n"
        "4 linear has one matrix for all samples\n"
        "2 selu has the paper's constants only\n"
        "1 slice takes every element of a range\n"
        "1 uint16 elements\n"
        "1 uint32 elements\n"
        "1 uint64 elements\n"
        "2 uint8 elements\n");
}

TEST_CASE("every ONNX node case") {
  const char* folder = std::getenv("DPT_ONNX_CASES");  // NOLINT(concurrency-mt-unsafe)
  if (!folder) return;
  const Tally tally = run_all(folder);
  size_t not_said = 0;
  for (const auto& [reason, names] : tally.inexpressible) {
    std::printf("%3zu not said in dptrain: %s (%s)\n", names.size(), reason.c_str(),
                fmt::format("{}", fmt::join(names, ", ")).c_str());
    not_said += names.size();
  }
  std::printf("%d cases agree, %zu cannot be said in dptrain\n", tally.passed, not_said);
  CHECK(tally.passed >= 251);  // onnx 1.23; fewer: what was collected is not what is meant
}

TEST_CASE("every layer, loss and optimizer has an ONNX case, or ONNX has no such operator") {
  run_all(test_file("fixtures"));
  std::set<std::string_view> without = {
      "batch_norm1d",
      "mse_loss",
      "l1_loss",
      "smooth_l1_loss",
      "huber_loss",
      "bce_loss",
      "bce_with_logits_loss",
      "kl_div",
      "poisson_nll_loss",
      "soft_margin_loss",
      "multilabel_soft_margin_loss",
      "hinge_embedding_loss",
      "margin_ranking_loss",
      "multi_margin_loss",
      "multilabel_margin_loss",
      "gaussian_nll_loss",
      "cosine_embedding_loss",
      "triplet_margin_loss",
      "ctc_loss",
      "adam_w",
      "adamax",
      "n_adam",
      "r_adam",
      "rms_prop",
      "adadelta",
      "rprop",
      "asgd",
      "conv1d",
      "relu6",
      "mish",
      "hardtanh",
      "hardsigmoid",
      "logsigmoid",
      "tanhshrink",
      "glu",
      "multiply",
      "permute",
      "reshape",
      "pixel_shuffle",
      "pixel_unshuffle",
      "adaptive_avg_pool1d",
      "adaptive_max_pool1d",
      "adaptive_max_pool2d",
      "conv3d",
      "avg_pool3d",  // one case, with a dilation
      "adaptive_max_pool3d",
      "adaptive_avg_pool3d",
      "batch_norm3d",
      "rms_norm",
      "dropout2d",
      "class_token",
      "select",
      "position_embedding",
      "focal_loss",
      "sigmoid_focal_loss",
      "dice_loss",
      "sigmoid_dice_loss",
      "lion",
      "muon",
      "multihead_attention"};  // theirs has fewer queries than keys
  for (const std::string& word : used_words()) CHECK_MESSAGE(!without.contains(word), word);
  const std::set<std::string_view> used(used_words().begin(), used_words().end());
  for (const auto& words : {layer_registry(), loss_registry(), optimizer_registry()})
    for (const RegistryEntry* word : words)
      CHECK_MESSAGE((used.contains(word->name) || without.contains(word->name)), word->name,
                    ": add it to nodes.cpp and onnx_nodes.py, or to this list");
}

}  // namespace dpt
