#include "session/parameter_groups.h"

#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "session/session.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

const std::string kNet = R"(
data: {dataset: {synthetic_images: {samples: 40, test_samples: 8, shape: [1, 4, 4]}},
       transforms: [to_tensor], batch_size: 8}
model: [flatten, {linear: 19, name: lin1}, {layer_norm: , name: n}, relu, {linear: 10, name: fc}]
loss: cross_entropy
optimizer: {sgd: {lr: 0.1, weight_decay: 0.01}}
cores: 1
)";

// "0.weight lr 0.1 decay 0.01" for each trained parameter.
std::string settings_of(const Session& s) {
  const ParameterGroups& all = s.parameter_groups;
  std::string out;
  for (size_t p = 0; p < s.model.graph.parameters.size(); ++p) {
    const int group = all.of_parameter[p];
    if (group < 0) continue;
    const ParameterGroup& g = all.groups[static_cast<size_t>(group)];
    out += fmt::format("{} {:g} {:g}\n", s.model.graph[s.model.graph.parameters[p]].name,
                       all.rates[g.rate], g.weight_decay);
    CHECK(s.settings.optimizer->lr(g.settings) == all.rates[g.rate]);
    CHECK(s.settings.optimizer->weight_decay(g.settings) == g.weight_decay);
  }
  return out;
}

std::string settings(const std::vector<std::string>& how) {
  return settings_of(*session_of(kNet, how));
}

std::string complaint(const std::vector<std::string>& how) {
  const Ran ran = run_spec(kNet, how);
  CHECK(ran.code == 2);
  const size_t at = ran.err.find("error: ");
  return at == ran.err.npos ? ran.err : ran.err.substr(at, ran.err.find('\n', at) - at);
}

TEST_CASE("without keys there is one group, of one segment") {
  const auto s = session_of(kNet, {});
  CHECK(s->parameter_groups.groups.size() == 1);
  CHECK(s->parameter_groups.rates == std::vector<double>{0.1});
  REQUIRE(s->parameter_groups.segments.size() == 1);
  CHECK(s->parameter_groups.segments[0].end == s->model.layout.trainable);
  CHECK(groups_text(s->parameter_groups) == "");
}

TEST_CASE("muon: matrices have its settings, all other parameters those of adam_w") {
  const std::vector<std::string> how = {
      "optimizer={muon: {lr: 0.02, weight_decay: 0.3, adam_w: {lr: 0.004}, adam_w_for: fc}}",
      "parameter_groups={match: lin1, lr: 0.5}", "no_decay=norm"};
  CHECK(settings(how) ==
        "lin1.weight 0.5 0.3\nlin1.bias 0.5 0.01\nn.weight 0.004 0\nn.bias 0.004 0\n"
        "fc.weight 0.004 0.01\nfc.bias 0.004 0.01\n");
  const auto s = session_of(kNet, how);
  REQUIRE(s->parameter_groups.matrices.size() == 1);
  const UpdatedMatrix& m = s->parameter_groups.matrices[0];
  const bool transposed =
      s->model.graph[s->model.graph.parameters[0]].desc.layout == Layout::transposed;
  CHECK(m.transposed == transposed);
  CHECK(m.rows == (transposed ? 16 : 19));
  CHECK(m.columns == (transposed ? 19 : 16));
  CHECK(m.begin == s->model.layout.offset[0]);
  CHECK(groups_text(s->parameter_groups)
            .starts_with("parameter groups: 1 tensor as matrices with lr 0.5, weight_decay 0.3; "));
}

TEST_CASE("muon: what it cannot do is refused") {
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(
      complaint({"optimizer=muon", "schedule={one_cycle: {max_lr: 0.1, cycle_momentum: false}}"}),
      "sets one learning rate for all parameters, but optimizer 'muon' has two"));
  CHECK(has(complaint({"optimizer={muon: {adam_w_for: head}}"}), "no parameter matches 'head'"));
  std::unique_ptr<const Session> none;
  CHECK(has(errors_of_session(kNet, {"optimizer=muon", "device=cuda"},
                              {.runs = false, .sizes_only = true}, none),
            "optimizer 'muon' trains on CPUs only: write `device: cpu`"));
}

TEST_CASE("groups set what they name; no_decay holds in every group; frozen ones have none") {
  CHECK(settings({"no_decay=[bias, norm]"}) ==
        "lin1.weight 0.1 0.01\nlin1.bias 0.1 0\nn.weight 0.1 0\nn.bias 0.1 0\n"
        "fc.weight 0.1 0.01\nfc.bias 0.1 0\n");
  CHECK(settings({"no_decay=[bias, norm]",
                  "parameter_groups=[{match: fc, lr: 1}, {match: lin1, "
                  "weight_decay: 0.5}]",
                  "freeze=[n.bias]"}) ==
        "lin1.weight 0.1 0.5\nlin1.bias 0.1 0\nn.weight 0.1 0\n"
        "fc.weight 1 0.01\nfc.bias 1 0\n");
}

TEST_CASE("equal settings are one group, however they are written") {
  CHECK(
      session_of(kNet, {"parameter_groups={match: fc, lr: 0.1}"})->parameter_groups.groups.size() ==
      1);
  CHECK(session_of(kNet, {"optimizer=sgd", "no_decay=[bias]"})->parameter_groups.groups.size() ==
        1);
}

TEST_CASE("segments cover the trained elements, each in its parameter's group") {
  for (const char* cores : {"cores=1", "cores=3"}) {
    const auto s =
        session_of(kNet, {cores, "no_decay=[bias]", "parameter_groups={match: fc, lr: 2}"});
    const ParameterGroups& all = s->parameter_groups;
    CHECK(all.groups.size() == 4);
    std::vector<int> group(s->model.layout.trainable, -1);
    // In pieces that begin and end anywhere, as those of workers may.
    for (size_t begin = 0; begin < group.size(); begin += 7)
      all.each(begin, std::min(begin + 7, group.size()), [&](size_t from, size_t to, int g) {
        REQUIRE(from < to);
        for (size_t i = from; i < to; ++i) group[i] = g;
      });
    for (size_t p = 0; p < s->model.graph.parameters.size(); ++p)
      for (int64_t i = 0; i < s->model.graph[s->model.graph.parameters[p]].desc.shape.elements();
           ++i)
        if (group[s->model.layout.offset[p] + static_cast<size_t>(i)] != all.of_parameter[p])
          FAIL("parameter ", p, " element ", i);
  }
}

TEST_CASE("lr_scale multiplies all rates") {
  const auto rates = [](const std::vector<std::string>& how) {
    return session_of(kNet, how)->parameter_groups.rates;
  };
  const std::string group = "parameter_groups={match: fc, lr: 1}";
  CHECK(rates({"lr_scale={linear: 2}", group}) == std::vector<double>{0.1 * 4, 4});
  CHECK(rates({"lr_scale={sqrt: 2}", group}) == std::vector<double>{0.1 * 2, 2});
  CHECK(rates({"data.batch_size_per_replica=4", "lr_scale=linear", "accumulate=3"}) ==
        std::vector<double>{0.1 * 3});
  CHECK(rates({"data.batch_size_per_replica=4", "lr_scale=sqrt", "parallel=dp", "devices=2"}) ==
        std::vector<double>{0.1 * std::sqrt(2.0)});
  CHECK(rates({"lr_scale=none"}) == std::vector<double>{0.1});
  const auto text = [](const char* scale) {
    const auto s = session_of(kNet, {scale});
    return lr_scale_text(s->settings, s->batches, s->parameter_groups);
  };
  CHECK(text("lr_scale={linear: 2}") == "learning rate: 0.4 = 0.1 * 8/2 (lr_scale: linear)\n");
  CHECK(text("lr_scale={sqrt: 2}") == "learning rate: 0.2 = 0.1 * sqrt(8/2) (lr_scale: sqrt)\n");
}

TEST_CASE("one_cycle has a largest rate for each group") {
  const std::vector<std::string> how = {"parameter_groups={match: fc, weight_decay: 0.1}",
                                        "schedule={one_cycle: [0.2, 0.05]}"};
  const auto s = session_of(kNet, how);
  CHECK(s->parameter_groups.rates == std::vector<double>{0.2, 0.05});
  for (size_t p = 0; p < s->model.graph.parameters.size(); ++p) {
    const auto group = static_cast<size_t>(s->parameter_groups.of_parameter[p]);
    const bool fc = s->model.graph[s->model.graph.parameters[p]].name.starts_with("fc.");
    CHECK(s->parameter_groups.groups[group].rate == (fc ? 1 : 0));
  }
  CHECK(complaint({"schedule={one_cycle: [0.2, 0.05]}"}) ==
        "error: 'max_lr' has 2 numbers, but the spec has 0 parameter groups; write one number, or "
        "one for parameters in no group and one for each group");
}

TEST_CASE("the header names groups, frozen tensors and the scaled rate") {
  const Ran ran = run_spec(
      kNet, {"no_decay=[bias, norm]", "freeze=[lin1.bias]", "lr_scale={linear: 16}", "steps=1"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(ran.err.find("learning rate: 0.05 = 0.1 * 8/16 (lr_scale: linear)\n"
                             "parameter groups: 2 tensors with lr 0.05, weight_decay 0.01; 3 "
                             "tensors with lr 0.05, weight_decay 0\n"
                             "frozen: 1 of 6 tensors\n") != std::string::npos,
                ran.err);
  CHECK_MESSAGE(ran.metrics.find("\"lr\": 0.05") != std::string::npos, ran.metrics);
}

TEST_CASE("settings that contradict each other are refused") {
  CHECK(
      complaint({"parameter_groups=[{match: fc, lr: 1}, {match: bias, lr: 2}]"}) ==
      "error: 'fc.bias' is in this parameter group and in the one on line 1; as in PyTorch, groups "
      "must not share parameters: make the patterns of one narrower");
  CHECK(complaint({"lr_scale=linear"}) ==
        "error: lr_scale needs the batch size for which the learning rate is meant; write "
        "`lr_scale: {linear: 256}`, or give batch_size_per_replica instead of batch_size");
  CHECK(complaint({"lr_scale={linear: 4}", "schedule={one_cycle: 0.1}"}) ==
        "error: lr_scale has no effect: schedule 'one_cycle' sets the learning rate by its own "
        "max_lr; leave lr_scale out and scale max_lr");
  CHECK(complaint({"parameter_groups={match: fc, lr: 1}", "schedule={one_cycle: 0.1}"}) ==
        "error: the 'lr' of this group has no effect: schedule 'one_cycle' sets the learning rate "
        "of all parameters; leave 'lr' out, or choose another schedule");
  CHECK(complaint({"freeze=[fc.wieght]"}) ==
        "error: no parameter matches 'fc.wieght'; did you mean 'fc.weight'?");
}

}  // namespace
}  // namespace dpt
