// The commands as a user sees them: what they print, and their exit codes.
#include <algorithm>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/machine.h"
#include "cli/process.h"
#include "formats/json.h"
#include "golden_text.h"
#include "paths.h"
#include "spec/node.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

const std::string kSpec = R"(name: small
data:
  dataset: {synthetic_images: {samples: 200, test_samples: 100, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 40
model:
  - flatten
  - linear: 8
    name: hidden
  - relu
  - linear: 10
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 2
evaluate: true
)";

// Kernels differ by machine, and so does the room that they want.
std::string without_machine(const std::string& plan) {
  const std::string kernels =
      std::regex_replace(plan, std::regex("(\n    [a-z_{},]+ +)[a-z0-9A-Z]+ +"), "$1KERNEL ");
  const std::string arenas =
      std::regex_replace(kernels, std::regex("[0-9.]+ MiB of activations"), "? MiB of activations");
  return std::regex_replace(arenas, std::regex("\npeak: [^\n]+"), "\npeak: ?");
}

// The last match's first group.
std::string last_of(const std::string& text, const std::string& expression) {
  const std::regex r(expression);
  std::string found;
  for (std::sregex_iterator m(text.begin(), text.end(), r), end; m != end; ++m) found = (*m)[1];
  return found;
}

}  // namespace

TEST_CASE("version and help") {
  const Finished version = dptrain({"--version"});
  CHECK(version.code == 0);
  CHECK(std::regex_search(version.out, std::regex("^(dptrain )?[0-9]+\\.[0-9]+\\.[0-9]+")));
  const Finished help = dptrain({"--help"});
  CHECK(help.code == 0);
  for (const std::string command : {"train", "check", "plan", "eval", "bench", "compare", "export",
                                    "explain", "schema", "doctor"}) {
    CAPTURE(command);
    CHECK(has(help.out, "\n  " + command + " "));
    const Finished own = dptrain({command, "--help"});
    CHECK(own.code == 0);
    CHECK(has(own.out, "dptrain " + command));
    CHECK(own.err.empty());
  }
  CHECK(dptrain({}).out == help.out);
}

TEST_CASE("what can't be understood ends with code 2 and a message") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::string spec = folder.file("t.yaml");
  const auto refused = [&](const std::vector<std::string>& words, const std::string& message) {
    const Finished f = dptrain(words);
    CAPTURE(words[0]);
    CHECK(f.code == 2);
    CHECK(f.out.empty());
    CHECK_MESSAGE(has(f.err, message), f.err);
  };
  refused({"nothing.yaml"}, "nothing.yaml");
  refused({"check", folder.file("nothing.yaml")}, "nothing.yaml");
  refused({"check"}, "no spec was given");
  refused({"check", spec, "--fast"}, "--fast");
  refused({spec, "epoch=3"}, "did you mean 'epochs'?");
  refused({spec, "epochs"}, "epochs");
  refused({"export", spec, "--to", "jax"}, "jax");
  refused({"explain", "adamm"}, "did you mean 'adam'?");
  refused({"explain"}, "WORD");
  refused({spec, "device=cuda:7"}, "cuda:7");
}

TEST_CASE("a word that is neither a command nor a file is an unknown command") {
  const Folder folder;
  const auto error_of = [&](const std::vector<std::string>& words) {
    const Finished f = dptrain(words, {}, folder.path());
    CHECK(f.code == 2);
    CHECK(f.out.empty());
    return f.err;
  };
  CHECK(error_of({"trian", "x.yaml"}) ==
        "dptrain: unknown command 'trian'; did you mean 'train'?\n");
  CHECK(has(error_of({"evaluate", "x.yaml"}), "did you mean 'eval'?"));
  CHECK(has(error_of({"test", "x.yaml"}), "did you mean 'eval'?"));
  CHECK(has(error_of({"serve", "x.yaml"}), "unknown command 'serve'; known: train, check"));
  CHECK(has(error_of({"help", "trian"}), "did you mean 'train'?"));
  CHECK(has(error_of({"x.yaml"}), "x.yaml"));
  folder.write("mlp.yaml", kSpec);
  CHECK(has(error_of({"mlp"}), "did you mean 'mlp.yaml'?"));
  folder.write("trian", "epoch: 1\n");
  CHECK(has(error_of({"trian"}), "trian:1:1: error: unknown key 'epoch'"));
}

TEST_CASE("help has the version, the environment, and names of values in place of types") {
  const std::string help = dptrain({"--help"}).out;
  for (const char* part :
       {"\n  --version ", "DPTRAIN_DATA", "DPTRAIN_OUTLIVE_LAUNCHER", "Exit codes: 0 done"})
    CHECK_MESSAGE(has(help, part), part);
  for (const char* command : {"train", "check", "plan", "eval", "bench", "compare", "export",
                              "explain", "schema", "doctor"}) {
    const std::string own = dptrain({command, "--help"}).out;
    for (const char* type : {"TEXT", "INT", "FLOAT", " in ["})
      CHECK_MESSAGE(!has(own, type), command << ": " << own);
  }
  const std::string bench = dptrain({"bench", "--help"}).out;
  CHECK(has(bench, "--rounds N "));
  CHECK(has(bench, "; default: 5; 1 to 1000"));
  CHECK(has(dptrain({"export", "--help"}).out, "--to FORMAT"));
}

TEST_CASE("help fits the terminal") {
  std::vector<std::vector<std::string>> all = {{"--help"}};
  for (const char* command :
       {"train",   "check",    "plan",    "data",   "init",    "lr-find",    "eval",
        "predict", "generate", "bench",   "sweep",  "compare", "runs",       "watch",
        "report",  "export",   "explain", "schema", "doctor",  "completion", "manual"})
    all.push_back({command, "--help"});
  for (const size_t width : {40, 80, 200})
    for (const auto& words : all) {
      const std::string help =
          dptrain(words, {{"COLUMNS", fmt::format("{}", width)}, {"LC_ALL", "C.UTF-8"}}).out;
      std::istringstream lines(help);
      for (std::string line; std::getline(lines, line);) {
        const bool word = line.find(' ', line.find_first_not_of(' ')) == line.npos;
        CHECK_MESSAGE((line.size() <= width || word), words[0] << ": " << line);
      }
    }
  const std::string sweep = dptrain({"sweep", "--help"}, {{"COLUMNS", "80"}}).out;
  CHECK(has(sweep, "Usage: dptrain sweep [SPEC] [KEY=VALUE ...] [OPTIONS]\n"));
  CHECK(has(sweep, "\n  --jobs N "));
}

TEST_CASE("an option that is a key of the spec is explained") {
  const auto err = [](const std::vector<std::string>& words) {
    const Finished f = dptrain(words);
    CHECK(f.code == 2);
    return f.err;
  };
  CHECK(err({"t.yaml", "--epochs", "3"}) ==
        "dptrain: unknown option '--epochs'; epochs is a key of the spec: epochs=3; see `dptrain "
        "train --help`\n");
  CHECK(has(err({"train", "t.yaml", "--batch-size=64"}), ": data.batch_size=64; see"));
  CHECK(has(err({"eval", "t.yaml", "--lr"}), ": optimizer.lr=VALUE; see `dptrain eval --help`"));
  CHECK(has(err({"sweep", "t.yaml", "--sedes", "3"}), "'--sedes'; did you mean '--seeds'?"));
  CHECK(
      has(err({"runs", "--epochs", "3"}), "unknown option '--epochs'; see `dptrain runs --help`"));
}

TEST_CASE("help of a command") {
  const Finished help = dptrain({"help", "train"});
  CHECK(help.code == 0);
  CHECK(help.out == dptrain({"train", "--help"}).out);
}

TEST_CASE("check says ok, or everything that is wrong") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const Finished good = dptrain({"check", folder.file("t.yaml")});
  CHECK(good.code == 0);
  CHECK(good.out == folder.file("t.yaml") + ": ok\n");
  CHECK(good.err.empty());
  folder.write("bad.yaml", kSpec + "epoch: 3\nseed: x\n");
  const Finished bad = dptrain({"check", folder.file("bad.yaml")});
  CHECK(bad.code == 2);
  CHECK(has(bad.err, "bad.yaml:16:1: error: unknown key 'epoch'"));
  CHECK(has(bad.err, "bad.yaml:17:7: error: 'seed' must be an integer"));
  CHECK(dptrain({"check", folder.file("t.yaml"), "parallel=ddp", "devices=3"}).code ==
        2);  // 40 by 3
}

TEST_CASE("check, plan and bench look at initial_weights before a run does") {
  const Folder folder;
  folder.write("t.yaml", kSpec + "initial_weights: nowhere.safetensors\n");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"check"}, {"plan"}, {"bench", "--rounds", "1"}}) {
    std::vector<std::string> words = command;
    words.push_back(folder.file("t.yaml"));
    CAPTURE(command[0]);
    const Finished f = dptrain(words);
    CHECK(f.code == 4);
    CHECK_MESSAGE(has(f.err, "nowhere.safetensors"), f.err);
    CHECK_MESSAGE(has(f.err, "while reading `initial_weights` ("), f.err);
  }
}

TEST_CASE("the header of a run and its plan agree on samples and replicas") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto both = [&](const std::vector<std::string>& overrides, const std::string& text) {
    std::vector<std::string> words = {"plan", folder.file("t.yaml")};
    words.insert(words.end(), overrides.begin(), overrides.end());
    const Finished plan = dptrain(words);
    CHECK_MESSAGE(has(plan.out, text), plan.out, plan.err);
    words[0] = "train";
    words.push_back("out=" + folder.file("run"));
    const Finished run = dptrain(words);
    CHECK_MESSAGE(has(run.err, text), run.err);
  };
  both({"parallel=dp", "devices=7", "data.batch_size=8"},
       ", at most 2 per replica, none for 3 of 7;");
  both({"parallel=dp", "devices=3", "data.batch_size=8"}, ", at most 3 per replica;");
  both({"parallel=ddp", "devices=2", "data.batch_size=8"}, ", 4 per replica;");
  both({"data.limit=24"}, ": the first 24 of ");
}

TEST_CASE("single says that it uses several cores, and how to compare it") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto err = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"t.yaml", "epochs=1"};
    words.insert(words.end(), more.begin(), more.end());
    return dptrain(words, {}, folder.path()).err;
  };
  const bool several = usable_cores().size() > 1;
  CHECK(has(err({}), "cores: single uses ") == several);
  for (const char* more : {"cores=1", "cores=2", "parallel=dp"})
    CHECK(!has(err({more}), "cores: single uses "));
}

TEST_CASE("available CPUs are those of the machine, not those that were asked for") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const Finished f =
      dptrain({"t.yaml", "parallel=ddp", "devices=5", "cores=1", "epochs=1", "evaluate=false"}, {},
              folder.path());
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK(f.out.starts_with(fmt::format("Number of available CPUs: {}\n", usable_cores().size())));
}

TEST_CASE("control bytes of file names do not reach standard output") {
  const Folder folder;
  const std::string path = folder.write("a\x1b[2J\x07.yaml", kSpec);
  const Finished f = dptrain({"check", path});
  CHECK(f.code == 0);
  CHECK(has(f.out, "a\\x1b[2J\\x07.yaml: ok"));
  CHECK(f.out.find('\x1b') == std::string::npos);
}

TEST_CASE("plan prints what a run would do") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  for (const auto& plan_of : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"plan_single", {"cores=2"}},
           {"plan_reproducible", {"cores=2", "reproducible.shards=5"}},
           {"plan_dp", {"parallel=dp", "devices=2", "cores=1"}},
           {"plan_ddp", {"parallel=ddp", "devices=2", "cores=1", "clip_grad_norm=1"}},
           {"plan_local_sgd",
            {"parallel={local_sgd: 8}", "devices=2", "cores=2", "clip_grad_norm=1"}},
           {"plan_pipeline", {"parallel={pipeline: {stages: 2, chunks: 2}}", "cores=1"}},
           {"plan_exchange",
            {"parallel={ddp: {shard: optimizer, compress: bf16}}", "devices=2", "cores=1",
             "accumulate=2"}}}) {
    CAPTURE(plan_of.first);
    std::vector<std::string> words = {"plan", folder.file("t.yaml")};
    words.insert(words.end(), plan_of.second.begin(), plan_of.second.end());
    const Finished plan = dptrain(words);
    CHECK_MESSAGE(plan.code == 0, plan.err);
    check_golden(without_machine(plan.out), "cli/golden/" + plan_of.first + ".txt");
    words.emplace_back("-v");
    CHECK(without_machine(dptrain(words).out).starts_with(without_machine(plan.out)));
  }
}

TEST_CASE("plan -v prints what each pass of the back end changed") {
  const std::string vgg = source_file("configs/vgg.yaml");
  for (const auto& [name, words] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"passes_cpu", {"device=cpu", "cores=1"}},
           {"passes_cuda", {"device=cuda", "precision=bf16"}}}) {
    std::vector<std::string> all = {"plan", "-v", vgg, "data.batch_size=4"};
    all.insert(all.end(), words.begin(), words.end());
    const Finished plan = dptrain(all);
    CHECK_MESSAGE(plan.code == 0, plan.err);
    const size_t begin = plan.out.find("\npasses:\n"), end = plan.out.find("\nrefused:\n");
    REQUIRE(begin < end);
    check_golden(plan.out.substr(begin + 1, end - begin), "cli/golden/" + name + ".txt");
  }
}

TEST_CASE("plan prints what a GPU would do, without one") {
  const std::string configs = source_file("configs/");
  const std::string images = "data.dataset={synthetic_images: {samples: 128, shape: [1, 28, 28]}}";
  for (const auto& [name, words] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"plan_cuda_mlp", {configs + "fmnist_single.yaml"}},
           {"plan_cuda_lenet", {configs + "lenet.yaml", "precision=bf16"}},
           {"plan_cuda_ddp",
            {configs + "fmnist_ddp.yaml", "devices=2", "parallel={ddp: {bucket_cap_mb: 0.5}}",
             "clip_grad_norm=1"}},
           {"plan_cuda_pieces",
            {configs + "fmnist_ddp.yaml", "devices=3", "data.batch_size=120",
             "parallel={ddp: {bucket_cap_mb: 0.1, shard: optimizer, compress: fp16}}",
             "clip_grad_norm=1"}},
           {"plan_cuda_pipeline",
            {configs + "fmnist_single.yaml", "parallel={pipeline: {stages: 2, chunks: 4}}"}},
           {"plan_cuda_processes",
            {configs + "fmnist_single.yaml",
             "parallel={pipeline: {stages: 2, chunks: 4, processes: true}}"}},
           {"plan_cuda_dp", {configs + "fmnist_dp.yaml", "devices=[cuda:0, cuda:0]"}}}) {
    std::vector<std::string> all = {"plan", words[0], "device=cuda", images};
    all.insert(all.end(), words.begin() + 1, words.end());
    const Finished plan = dptrain(all);
    CHECK_MESSAGE(plan.code == 0, plan.err);
    check_golden(plan.out, "cli/golden/" + name + ".txt");
  }
  const Finished gathers =
      dptrain({"plan", configs + "fmnist_dp.yaml", "device=cuda", images, "devices=2"});
  CHECK(gathers.out.find("launches: whole steps as CUDA graphs") != std::string::npos);
  CHECK(gathers.out.find("each micro-batch:\n"
                         "  each GPU     load, forward, gather, loss on device 0, scatter, record "
                         "for the exchange\n"
                         "  NCCL         all_reduce loss\n") != std::string::npos);
  const Finished fed =
      dptrain({"plan", configs + "lenet.yaml", "device=cuda", "graphs=false",
               "data.dataset={synthetic_images: {samples: 100000, shape: [1, 28, 28]}}"});
  CHECK(fed.out.find("batches: made by the host, since samples are read on the way, and copied ") !=
        std::string::npos);
  CHECK(fed.out.find("launches: each kernel by itself\n") != std::string::npos);
}

// The part of a plan's text that lists its steps.
static std::string listed_steps(const std::string& plan) {
  const size_t begin =
      std::min({plan.find("before each step:\n"), plan.find("once a step:\n"),
                plan.find("each micro-batch:\n"), plan.find("all micro-batches:\n")});
  return plan.substr(begin, plan.find("each shard of ") - begin);
}

TEST_CASE("the steps of every mode, on CPUs and on 1, 2 and 4 GPUs") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::vector<std::string> hosts = {"cpu", "cuda"}, counts = {"1", "2", "4"};
  std::string all;
  const auto add = [&](const std::vector<std::string>& overrides) {
    std::vector<std::string> words = {"plan", folder.file("t.yaml"), "cores=1",
                                      "data.batch_size=80"};
    if (overrides[0] == "device=cuda") words[2] = "graphs=true";
    words.insert(words.end(), overrides.begin(), overrides.end());
    const Finished plan = dptrain(words);
    REQUIRE_MESSAGE(plan.code == 0, plan.err);
    all += fmt::format("# {}\n{}\n", fmt::join(overrides, " "), listed_steps(plan.out));
  };
  for (const std::string& host : hosts) {
    const std::string device = "device=" + host;
    add({device, "devices=1", "parallel=single"});
    add({device, "devices=1", "parallel=single", "accumulate=2", "clip_grad_norm=1"});
    for (const std::string& n : {counts[1], counts[2]}) {
      add({device, "devices=" + n, "parallel=dp"});
      add({device, "devices=" + n, "parallel={dp: {loss: distributed}}"});
      add({device, "devices=" + n, "parallel=ddp", "clip_grad_norm=1"});
      add({device, "devices=" + n, "parallel={ddp: {shard: optimizer}}", "clip_grad_norm=1"});
      const std::string small = host == "cuda" ? ", bucket_cap_mb: 0.0005" : "";
      add({device, "devices=" + n, "parallel={ddp: {compress: bf16" + small + "}}",
           "accumulate=2"});
    }
    add({device, "parallel={pipeline: {stages: 2, chunks: 2}}"});
    add({device, "parallel={pipeline: {stages: 2, chunks: 2, processes: true}}"});
    add({device, "parallel={pipeline: {stages: 2, chunks: 2, data_parallel: 2}}",
         "clip_grad_norm=1"});
  }
  for (const std::string& n : {counts[1], counts[2]})
    add({"device=cpu", "devices=" + n, "parallel={local_sgd: 8}", "accumulate=2"});
  for (const std::string& n : {counts[1], counts[2]}) {
    add({"device=cuda", "devices=" + n, "parallel={dp: {backend: gloo}}"});
    add({"device=cuda", "devices=" + n, "parallel={ddp: {backend: gloo, shard: optimizer}}",
         "clip_grad_norm=1"});
  }
  add({"device=cuda", "devices=2", "parallel=ddp",
       "loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"});
  check_golden(all, "cli/golden/steps_of_modes.txt");
}

TEST_CASE("plan prints the type of each operation in mixed precision") {
  const Folder folder;
  const Finished f = dptrain(
      {"plan", folder.write("small.yaml", kSpec), "cores=1", "precision={bf16: {emulate: true}}"});
  REQUIRE_MESSAGE(f.code == 0, f.err);
  CHECK(f.out.find("hidden.weight.bf16[8, 16]") != std::string::npos);
  CHECK(f.out.find(" = (2.relu, 3.weight.bf16, 3.bias.bf16)") != std::string::npos);
  CHECK(f.out.find("d hidden.weight[8, 16]") != std::string::npos);
}

TEST_CASE("a precision that nothing computes in is refused with the reason and the way out") {
  const Folder folder;
  const std::string spec = folder.write("small.yaml", kSpec);
  const Finished half = dptrain({spec, "precision=fp16", "out=" + folder.file("run")});
  CHECK(half.code == 3);
  CHECK(half.err.find("write `precision: {fp16: {emulate: true}}`") != std::string::npos);
  const Finished tf32 = dptrain({spec, "precision=tf32", "out=" + folder.file("run")});
  CHECK(tf32.code == 3);
  CHECK(tf32.err.find("'tf32' is for CUDA devices") != std::string::npos);
}

TEST_CASE("with a scaled loss each epoch tells the scale and what was skipped") {
  const Folder folder;
  const Finished f =
      dptrain({folder.write("small.yaml", kSpec), "out=" + folder.file("run"),
               "precision={fp16: {emulate: true, init_scale: 16777216, growth_interval: 3}}"});
  REQUIRE_MESSAGE(f.code == 0, f.err);
  CHECK(f.out.find(", Loss scale: ") != std::string::npos);
  CHECK(std::stoi(last_of(f.out, "skipped steps: ([0-9]+)")) > 0);
  CHECK(read_file(folder.file("run/metrics.jsonl")).find("\"skipped_steps\": ") !=
        std::string::npos);
  CHECK(read_file(folder.file("run/model.safetensors")).find("scaler.scale") != std::string::npos);
}

TEST_CASE("gradients that overflow at every scale end the run") {
  const Folder folder;
  // Steps that are always too large: the loss itself is no number after the first.
  const Finished f = dptrain({folder.write("small.yaml", kSpec), "out=" + folder.file("run"),
                              "precision={fp16: {emulate: true}}", "optimizer={sgd: 1e30}",
                              "epochs=60", "evaluate=false", "log.every=1"});
  CHECK(f.code != 0);
  CHECK(read_file(folder.file("run/metrics.jsonl")).find("\"loss\": null") != std::string::npos);
  CHECK(f.err.find("not finite in 50 consecutive steps, the last at epoch") != std::string::npos);
}

TEST_CASE("the nets of configs/large have as many parameters as torchvision's") {
  const std::string folder = source_file("configs/large/");
  const auto plan = [&](const std::string& name) {
    return dptrain({"plan", folder + name,
                    "data.dataset={synthetic_images: {samples: 16, shape: [3, 64, 64], classes: "
                    "1000}}"})
        .out;
  };
  CHECK(has(plan("resnet18.yaml"), "parameters: 11689512\n"));
  CHECK(has(plan("resnet34.yaml"), "parameters: 21797672\n"));
  CHECK(has(plan("resnet50.yaml"), "parameters: 25557032\n"));
  CHECK(has(plan("mobilenet_v2.yaml"), "parameters: 3504872\n"));
}

TEST_CASE("export writes a PyTorch program") {
  const Folder folder;
  folder.write("made.yaml", kSpec);
  const Finished made = dptrain({"export", folder.file("made.yaml")});
  CHECK(made.code == 2);
  CHECK(has(made.err, "PyTorch cannot make the data set 'synthetic_images'"));
  folder.write("t.yaml", R"(
data: {dataset: {random: {samples: 90, in_features: 5, out_features: 3}}, batch_size: 30}
model: [{linear: 7}, tanh, {linear: 3}]
loss: mse_loss
optimizer: {adam: 0.01}
)");
  const Finished shown = dptrain({"export", folder.file("t.yaml"), "--to", "torch"});
  CHECK_MESSAGE(shown.code == 0, shown.err);
  CHECK(has(shown.out, "nn.Sequential"));
  CHECK(has(shown.out, "nn.Linear(5, 7)"));
  CHECK(has(shown.out, "optim.Adam("));
  const Finished written = dptrain({"export", folder.file("t.yaml"), "-o", folder.file("t.py")});
  CHECK(written.code == 0);
  CHECK(written.out.empty());
  CHECK(read_file(folder.file("t.py")) == shown.out);
  CHECK(dptrain({"export", folder.file("t.yaml"), "-o", folder.file("no/t.py")}).code == 1);
}

TEST_CASE("explain and schema tell the language") {
  const Finished adam = dptrain({"explain", "adam"});
  CHECK(adam.code == 0);
  CHECK(adam.out.starts_with("optimizer 'adam': "));
  for (const char* key : {"lr", "betas", "eps", "weight_decay", "amsgrad"})
    CHECK(has(adam.out, std::string("  ") + key + " "));

  const Finished schema = dptrain({"schema"});
  CHECK(schema.code == 0);
  const SourceFile file{"schema.json", schema.out};
  Diagnostics d;
  const Node root = read_yaml(file, d);  // JSON is YAML
  CHECK(d.render() == "");
  REQUIRE(root.find("properties") != nullptr);
  CHECK(root.find("properties")->find("optimizer") != nullptr);
  CHECK(dptrain({"schema", "--markdown"}).out.starts_with("#"));
}

TEST_CASE("eval of a run's weights gives the accuracy of its last line") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::string out = "out=" + folder.file("run");
  for (const std::vector<std::string>& how : std::vector<std::vector<std::string>>{
           {"cores=2"}, {"parallel=ddp", "devices=2", "cores=1"}}) {
    CAPTURE(how[0]);
    std::vector<std::string> words = {folder.file("t.yaml"), out};
    words.insert(words.end(), how.begin(), how.end());
    const Finished train = dptrain(words);
    CHECK_MESSAGE(train.code == 0, train.err);
    words.insert(words.begin(), "eval");
    const Finished eval = dptrain(words);
    CHECK_MESSAGE(eval.code == 0, eval.err);
    const std::string accuracy = last_of(train.out, "Accuracy: ([0-9.]+) %");
    CHECK(!accuracy.empty());
    CHECK(accuracy == last_of(eval.out, "Accuracy: ([0-9.]+) %"));
    // Printed with four digits by the one and six by the other.
    CHECK(std::stod(last_of(train.out, "Test loss: ([0-9.]+)")) ==
          doctest::Approx(std::stod(last_of(eval.out, "Test loss: ([0-9.]+)"))).epsilon(1e-4));
  }
  CHECK(dptrain({"eval", folder.file("t.yaml"), "--weights", folder.file("none")}).code == 4);
}

// Before, one that no machine could train ended as std::bad_alloc, and `check` took it.
TEST_CASE("commands that print results print them as JSON, too") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  REQUIRE(dptrain({"t.yaml", "out=run"}, {}, folder.path()).code == 0);
  const auto json_of = [&](std::vector<std::string> words) {
    words.emplace_back("--json");
    const Finished f = dptrain(words, {}, folder.path());
    CHECK_MESSAGE(f.code == 0, f.err);
    const auto out = Json::parse(f.out);
    REQUIRE_MESSAGE(out, f.out);
    return *out;
  };
  const Json eval = json_of({"eval", "run"});
  CHECK(*eval.find("set")->text() == "test");
  CHECK(eval.find("samples")->integer() == 100);
  CHECK(eval.find("test.loss")->number() > 0);
  CHECK(*json_of({"compare", "run", "run"}).find("verdict")->text() == "same");
  CHECK(json_of({"data", "t.yaml"}).find("sets")->size() == 2);
  const Json plan = json_of({"plan", "t.yaml", "parallel=ddp", "devices=2", "cores=1"});
  CHECK(plan.find("ranks")->integer() == 2);
  CHECK(plan.find("tensors")->size() == 4);
  CHECK(plan.find("memory_bytes")->find("peak")->number() > 0);
  CHECK(json_of({"doctor"}).find("found")->size() > 5);
  CHECK(json_of({"check", "t.yaml"}).find("specs")->items()[0].find("ok")->boolean() == true);
}

TEST_CASE("eval prints numbers alone for shells") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  REQUIRE(dptrain({"t.yaml", "out=run"}, {}, folder.path()).code == 0);
  const auto eval = [&](const std::string& names) {
    return dptrain({"eval", "run", "--print", names}, {}, folder.path());
  };
  const std::string accuracy = eval("accuracy").out;
  CHECK(std::stod(accuracy) >= 0);
  CHECK(eval("test.accuracy").out == accuracy);
  CHECK(std::ranges::count(eval("loss,accuracy").out, ' ') == 1);
  const Finished wrong = eval("f1");
  CHECK(wrong.code == 2);
  CHECK(wrong.out.empty());
  CHECK(has(wrong.err, "no number 'f1'; it has: test.loss, test.accuracy\n"));
}

TEST_CASE("check takes several specs, and reports all of them") {
  const Folder folder;
  folder.write("a.yaml", kSpec);
  folder.write("b.yaml", kSpec + "epoch: 3\n");
  folder.write("c.yaml", kSpec);
  const Finished f =
      dptrain({"check", "a.yaml", "b.yaml", "none.yaml", "c.yaml", "epochs=1"}, {}, folder.path());
  CHECK(f.code == 2);
  CHECK(f.out == "a.yaml: ok\nc.yaml: ok\n");
  CHECK(has(f.err, "b.yaml:16:1: error: unknown key 'epoch'"));
  CHECK(has(f.err, "none.yaml"));
  const Finished json = dptrain({"check", "a.yaml", "b.yaml", "--json"}, {}, folder.path());
  const auto specs = Json::parse(json.out);
  REQUIRE(specs);
  CHECK(specs->find("specs")->items()[1].find("errors")->size() == 1);
}

TEST_CASE("what a limit of the address space does not allow is refused by all commands" *
          doctest::skip(kSanitized)) {  // its shadow memory takes more than any limit
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::string small = " " + folder.file("t.yaml") + " out=" + folder.file("run") + " cores=1";
  const std::string wide = " 'model=[flatten, {linear: 2000000}, {linear: 10}]'";
  const std::string data = " data.dataset.synthetic_images.test_samples=200000000";
  for (const std::string command : {"check", "plan", "train"}) {
    CAPTURE(command);
    // In KiB: twice and more what a small run takes.
    const auto limited = [&](const std::string& words) {
      const std::string line = fmt::format("ulimit -v 500000; exec {} {}{} >{} 2>&1", program(),
                                           command, words, folder.file("said"));
      return WEXITSTATUS(std::system(line.c_str()));  // NOLINT(concurrency-mt-unsafe)
    };
    CHECK_MESSAGE(limited(small) == 0, read_file(folder.file("said")));
    for (const std::string& more : {wide, data}) {
      CHECK(limited(small + more) == 5);
      const std::string said = read_file(folder.file("said"));
      CHECK_MESSAGE(has(said, "MiB are free; "), said);
      CHECK_MESSAGE(!has(said, "bad_alloc"), said);
    }
  }
}

TEST_CASE("doctor describes the machine") {
  const Finished doctor = dptrain({"doctor"});
  CHECK(doctor.code == 0);
  CHECK(has(doctor.out, "[x] cpu"));
  CHECK(has(doctor.out, "] cuda"));
  const bool has_vectors = !has(doctor.out, "kernels      baseline");
  CHECK(has(doctor.out, " GFLOP/s on all at once") == has_vectors);
}

}  // namespace dpt
