// The text of exported programs. That it runs and gives the same numbers is a matter for PyTorch,
// which tests do not need.
#include "export/torch.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "data/dataset.h"
#include "golden_text.h"
#include "layers/initialisation.h"
#include "layers/model.h"
#include "optim/optimizer.h"
#include "optim/precision.h"
#include "optim/schedule.h"

namespace dpt {
namespace {

struct NoKeys {
  static KeyTable<NoKeys> keys() { return {}; }
};

// Data sets and transforms of this test alone; everything else is real.
const DatasetType& images() {
  static const DatasetType type = [] {
    DatasetType t{registry_entry<NoKeys>("images", "")};
    t.torch = [](const std::any&, const LoadQuery& query) {
      return "x = read_idx(\"" + query.folder + (query.split == Split::train ? "/train" : "/test") +
             "-images.gz\")\ny = read_idx(\"labels.gz\").long()\n";
    };
    return t;
  }();
  return type;
}
const DatasetType& tokens() {
  static const DatasetType type = [] {
    DatasetType t{registry_entry<NoKeys>("tokens", "")};
    t.torch = [](const std::any&, const LoadQuery&) -> std::string {
      return "x = torch.zeros(7, 3).long()\ny = torch.zeros(7, 3, 2)\n";
    };
    return t;
  }();
  return type;
}
const DatasetType& secret() {
  static const DatasetType type{registry_entry<NoKeys>("secret", "")};
  return type;
}
const TransformType& halve() {
  static const TransformType type = [] {
    TransformType t{registry_entry<NoKeys>("halve", "")};
    t.torch = [](const std::any&) -> std::string { return "x = x / 2\n"; };
    return t;
  }();
  return type;
}

// The words of this test and all real ones.
std::vector<const RegistryEntry*> with(std::vector<const RegistryEntry*> words,
                                       const std::vector<const RegistryEntry*>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Text {
  SourceFile file;
  Diagnostics diagnostics{};
  Spec spec{};

  explicit Text(const std::string& yaml) : file{"configs/t.yaml", yaml} {
    static const RegistryEntry modes[] = {
        registry_entry<NoKeys>("single", ""), registry_entry<NoKeys>("dp", ""),
        registry_entry<NoKeys>("ddp", ""), registry_entry<NoKeys>("pipeline", ""),
        registry_entry<NoKeys>("other", "")};
    const Registries words{layer_registry(),
                           loss_registry(),
                           optimizer_registry(),
                           schedule_registry(),
                           with({&images(), &tokens(), &secret()}, dataset_registry()),
                           with({&halve()}, transform_registry()),
                           {},
                           {&modes[0], &modes[1], &modes[2], &modes[3], &modes[4]},
                           precision_registry(),
                           initialisation_registry()};
    spec = read_spec(read_yaml(file, diagnostics), words, diagnostics);
    REQUIRE_MESSAGE(diagnostics.ok(), diagnostics.render());
  }
};

TorchExport sizes(TensorDesc input, TensorDesc target) {
  return {.input = input,
          .target = target,
          .samples = 100,
          .classes = 10,
          .ranks = 2,
          .replicas = 2,
          .batch = 20,
          .epochs = 3,
          .steps = 15};
}
TorchExport image_sizes() { return sizes({DType::f32, {1, 1, 28, 28}}, {DType::i32, {1}}); }

std::string exported(const std::string& yaml, const TorchExport& query = image_sizes()) {
  const Text text(yaml);
  return export_torch(text.spec, query);
}

// The smallest spec, with more lines to come.
std::string spec(const std::string& more, const std::string& model = "[flatten, {linear: 10}]",
                 const std::string& loss = "cross_entropy") {
  return "name: t\ndata: {dataset: images, batch_size: 20}\nmodel: " + model + "\nloss: " + loss +
         "\noptimizer: {sgd: 0.1}\n" + more;
}

bool contains(const std::string& program, const std::string& part) {
  const bool found = program.find(part) != program.npos;
  if (!found) MESSAGE("not found:\n", part, "\nin:\n", program);
  return found;
}

}  // namespace

TEST_CASE("a ddp spec as a program") {
  const std::string program = exported(
      "name: fmnist\nseed: 3\n"
      "data: {dataset: images, transforms: [halve], batch_size_per_replica: 10, reshuffle: false}\n"
      "model: [flatten, {linear: 200, name: lin1}, sigmoid, {linear: 10}]\n"
      "loss: cross_entropy\noptimizer: {adam: 0.01}\nepochs: 3\nparallel: ddp\n");
  check_golden(program, "export/golden/torch_ddp.py");
}

TEST_CASE("parameter groups, frozen parameters and partial weights in a program") {
  TorchExport query = image_sizes();
  query.lr = 0.4;
  query.groups = {{.parameters = {"1.weight"}, .lr = 0.4, .weight_decay = 0.01},
                  {.parameters = {"1.bias"}, .lr = 1, .weight_decay = 0}};
  const std::string keys =
      "freeze: fc.bias\nno_decay: bias\ninitial_weights: {file: w.safetensors, partial: true}\n";
  const std::string model = "[flatten, {linear: 10}, relu, {linear: 10, name: fc}]";
  const std::string program = exported(spec(keys, model), query);
  CHECK(contains(program,
                 "        ([\"1.weight\"], {\"lr\": 0.4, \"weight_decay\": 0.01}),\n"
                 "        ([\"1.bias\"], {\"lr\": 1.0, \"weight_decay\": 0.0}),\n"));
  CHECK(contains(program, "optimizer = optim.SGD(parameter_groups(model), lr=0.4)\n"));
  CHECK(contains(program, "parameter.requires_grad_(name not in [\"fc.bias\"])\n"));
  CHECK(contains(program, "    load_weights(model, \"w.safetensors\", partial=True)\n"));
  query.exchange.shard_states = true;
  CHECK(contains(exported(spec(keys + "parallel: ddp\n", model), query),
                 "optimizer = ZeroRedundancyOptimizer(parameter_groups(model.module), "
                 "optimizer_class=optim.SGD, lr=0.4)\n"));
}

TEST_CASE("the accuracy of a program leaves out what the loss ignores") {
  TorchExport query = image_sizes();
  query.ignores = true;
  const std::string program = exported(
      spec("evaluate: true\n", "[flatten, {linear: 10}]", "{cross_entropy: {ignore_index: 3}}"),
      query);
  CHECK(contains(program,
                 "right += ((output.argmax(dim=1) == y) & (y != criterion.ignore_index))"
                 ".sum().item()\n"));
  CHECK(contains(program, "positions += (y != criterion.ignore_index).sum().item()\n"));
  CHECK(contains(
      program,
      "    return total / weight if weight else math.nan, right / positions if positions else "
      "math.nan\n"));
}

TEST_CASE("a program leaves out what the loss ignores altogether, as dptrain does") {
  const auto program = [](const std::string& more, int64_t accumulate) {
    TorchExport query = image_sizes();
    query.ignores = true;
    query.accumulate = accumulate;
    return exported(spec("evaluate: true\n" + more, "[flatten, {linear: 10}]",
                         "{cross_entropy: {ignore_index: 3}}"),
                    query);
  };
  const std::string one = program("", 1);
  CHECK(contains(one,
                 "            if not math.isnan(loss):  # else all targets are ignored\n"
                 "                total += loss * weight_of(criterion, y)\n"
                 "                weight += weight_of(criterion, y)\n"));
  CHECK(contains(one, "        mean = total / weight if weight else math.nan\n"));
  CHECK(contains(one,
                 "        if count:  # else all targets are ignored, and their mean is nan\n"
                 "            total += criterion(output, y).item() * count\n"
                 "            weight += count\n"));
  CHECK(contains(one, "import math\n"));
  // No division by the weight of a batch that has none.
  const std::string parts = program("accumulate: 2\n", 2);
  CHECK(contains(parts,
                 "            whole = weight_of(criterion, y)\n"
                 "            loss = 0.0 if whole else math.nan\n"));
  CHECK(contains(parts, "share = weight_of(criterion, y_part) / whole if whole else 0\n"));
  // A rank whose targets are all ignored adds nothing to the loss of all.
  CHECK(contains(program("parallel: ddp\nlog: {loss: global}\n", 1),
                 "            count = weight_of(criterion, y)\n"
                 "            loss = sum_over_ranks(loss * count if count else 0.0)\n"
                 "            count = sum_over_ranks(count)\n"
                 "            loss = loss / count if count else math.nan\n"));
}

TEST_CASE("data that PyTorch cannot make are read from files beside the program") {
  TorchExport query = image_sizes();
  query.program = "out/net.py";
  const std::string program = exported(
      "name: t\ndata: {dataset: secret, batch_size: 20, limit: 100}\nmodel: [flatten, {linear: "
      "10}]\n"
      "loss: cross_entropy\noptimizer: sgd\nevaluate: true\n",
      query);
  for (const std::string split : {"train", "test"}) {
    CHECK(contains(program, "    x = torch.from_numpy(np.load(Path(__file__).parent / \"net-" +
                                split + "-x.npy\"))\n"));
    CHECK(contains(program, "    y = torch.from_numpy(np.load(Path(__file__).parent / \"net-" +
                                split + "-y.npy\")).long()\n"));
  }
  CHECK(contains(program, "import numpy as np\n"));
}

TEST_CASE("folders of images and random changes of images are torchvision's") {
  const auto program = [](const std::string& data) {
    TorchExport query = image_sizes();
    query.input.shape = {1, 3, 24, 24};
    return exported("name: t\ndata: {" + data +
                        ", batch_size: 20, limit: 100}\n"
                        "model: [flatten, {linear: 10}]\nloss: cross_entropy\noptimizer: sgd\n"
                        "evaluate: true\n",
                    query);
  };
  const std::string folder = program(
      "dataset: {image_folder: {path: a, test_path: b, resize: 32, crop: 24}}, "
      "transforms: [to_tensor]");
  CHECK(contains(folder, "from torchvision import datasets, transforms\n"));
  CHECK(contains(folder,
                 "    decode = transforms.Compose([transforms.Resize(32), "
                 "transforms.CenterCrop(24), transforms.PILToTensor()])\n"
                 "    data = datasets.ImageFolder("));
  CHECK(contains(folder, "    data = torch.utils.data.Subset(data, range(100))\n"));
  CHECK(contains(folder, "    return Transformed(data, test_transform)\n"));
  CHECK(folder.find("TensorDataset") == folder.npos);

  // torchvision reads hidden folders, too.
  CHECK(folder.find("visible") == folder.npos);
  const Folder images;
  images.write("a/1.png", "");
  images.write("a/.ipynb_checkpoints/1.png", "");
  const std::string visible = program("dataset: {image_folder: {path: " + images.path() +
                                      ", test_path: b, crop: 24}}, transforms: [to_tensor]");
  CHECK(contains(visible, "    class VisibleFolders(datasets.ImageFolder):\n"));
  CHECK(contains(visible, "    def readable(path):\n        if not all(map(visible, Path(path)"));
  CHECK(contains(visible, "    data = VisibleFolders(\"" + images.path() +
                              "\", decode, is_valid_file=readable)\n"));

  const std::string turned = program(
      "dataset: {image_folder: {path: a, test_path: b, crop: 24, exif: true, on_error: skip}}, "
      "transforms: [to_tensor]");
  CHECK(contains(turned, "import torch\nfrom PIL import ImageOps\n"));
  CHECK(contains(turned, "    def readable(path):\n        try:\n"));
  CHECK(contains(turned,
                 "extension(path, endings)\n\n    decode = transforms.Compose(["
                 "transforms.Lambda(ImageOps.exif_transpose), transforms.CenterCrop(24), "
                 "transforms.PILToTensor()])\n"));
  CHECK(contains(turned, ", decode, is_valid_file=readable)\n"));

  const std::string changed = program(
      "dataset: images, transforms: [{random_crop: {size: [24, 20], padding: 4}}, "
      "random_horizontal_flip, to_tensor, {random_erasing: {p: 0.25, value: [1, 2, 3]}}, "
      "{cutout: 8}]");
  CHECK(contains(changed,
                 "def train_transform(x, y):\n"
                 "    x = transforms.RandomCrop([24, 20], padding=4)(x)\n"
                 "    x = transforms.RandomHorizontalFlip()(x)\n"
                 "    x = x.float() / 255 if x.dtype == torch.uint8 else x.float()\n"
                 "    x = transforms.RandomErasing(p=0.25, scale=[0.02, 0.33], ratio=[0.3, 3.3], "
                 "value=[1.0, 2.0, 3.0])(x)\n"
                 "    x = x.clone()\n"
                 "    for _ in range(1):\n"));
  CHECK(contains(
      changed, "    data = TensorDataset(x, y)\n    return Transformed(data, train_transform)\n"));
  CHECK(contains(changed, "Random transforms are torchvision's"));
  CHECK(contains(changed, "from torchvision import transforms\n"));
  // An evaluation takes the middle and draws nothing.
  CHECK(contains(changed,
                 "    x = transforms.CenterCrop([24, 20])(x)\n"
                 "    x = x.float() / 255 if x.dtype == torch.uint8 else x.float()\n"
                 "    return TensorDataset(x, y)\n"));
}

TEST_CASE("crops and flips that move the targets as a program") {
  TorchExport query = sizes({DType::f32, {1, 3, 24, 20}}, {DType::i32, {1, 24, 20}});
  query.moves_targets = true;
  const std::string text = exported(
      "name: t\ndata: {dataset: images, batch_size: 20, transforms: [random_vertical_flip, "
      "{random_crop: {size: [24, 20], padding: 4, fill: 7}}, to_tensor, {random_erasing: {p: "
      "1}}]}\n"
      "model: [{conv2d: {out_channels: 10, kernel_size: 1}}]\nloss: cross_entropy\n"
      "optimizer: sgd\nevaluate: true\n",
      query);
  CHECK(contains(text,
                 "    x = transforms.RandomVerticalFlip()(x)\n"
                 "    torch.set_rng_state(state)  # y is moved as x is\n"
                 "    y = transforms.RandomVerticalFlip()(y)\n"));
  CHECK(contains(text,
                 "    state = torch.get_rng_state()\n"
                 "    x = transforms.RandomCrop([24, 20], padding=4, fill=7.0)(x)\n"
                 "    torch.set_rng_state(state)  # y is moved as x is\n"
                 "    y = transforms.RandomCrop([24, 20], padding=4)(y)\n"
                 "    x = x.float() / 255 if x.dtype == torch.uint8 else x.float()\n"
                 "    x = transforms.RandomErasing("));
  CHECK(contains(text,
                 "    x = transforms.CenterCrop([24, 20])(x)\n"
                 "    y = transforms.CenterCrop([24, 20])(y)\n"));
}

// Training has probabilities, evaluations have classes.
TEST_CASE("mixed samples and weighted draws as a program") {
  TorchExport query = sizes({DType::f32, {1, 3, 24, 24}}, {DType::f32, {1, 10}});
  const std::string text =
      "name: mixed\n"
      "data: {dataset: images, sampler: weighted, batch_size: 20, limit: 90, transforms: "
      "[random_horizontal_flip, to_tensor, {mixup: 0.2}, {cutmix: {alpha: 1, p: 0.5}}]}\n"
      "model: [flatten, {linear: 10}]\n"
      "loss: {cross_entropy: {weight: [1, 2, 1, 1, 1, 1, 1, 1, 1, 1], label_smoothing: 0.1}}\n"
      "optimizer: {sgd: 0.1}\nepochs: 3\nevaluate: true\n";
  check_golden(exported(text, query), "export/golden/torch_mixed.py");
  // Mixed alone; classes that a target transform makes probabilities of.
  const std::string plain = exported(
      "name: t\ndata: {dataset: images, batch_size: 20, transforms: [to_tensor, {mixup: 1}]}\n"
      "model: [flatten, {linear: 10}]\nloss: cross_entropy\noptimizer: sgd\n",
      query);
  CHECK(contains(plain,
                 "    y = torch.nn.functional.one_hot(y, 10).float()\n"
                 "    data = TensorDataset(x, y)\n"
                 "    return Mixed(data, [(mixup, 1.0, 1.0)])  # alpha, probability\n"));
  CHECK(contains(plain, "Samples are mixed in the same way as in dptrain"));
  for (const char* other : {"cutmix", "Transformed", "Random transforms", "class_weights"})
    CHECK_MESSAGE(plain.find(other) == plain.npos, other);
}

TEST_CASE("replicas with batch norm of their own are computed one by one") {
  TorchExport query = image_sizes();
  const std::string norm = "[flatten, {linear: 10}, batch_norm1d]";
  const std::string program = exported(spec("parallel: dp\n", norm), query);
  CHECK(contains(program, "REPLICAS = 2\n"));
  CHECK(contains(program, "loss = criterion(forward_replicas(model, x), y)\n"));
  CHECK(contains(program, "def forward_replicas(model, x):\n"));
  query.replicas = 1;
  CHECK(exported(spec("parallel: dp\n", norm), query).find("replicas") == std::string::npos);
}

TEST_CASE("ema is an AveragedModel, which is evaluated and saved") {
  const std::string one = exported(spec("ema: 0.99\nevaluate: true\n"));
  CHECK(contains(one, "from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn\n"));
  CHECK(contains(one,
                 "    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))\n"));
  CHECK(contains(one,
                 "            optimizer.step()\n"
                 "            averaged.update_parameters(model)\n"));
  CHECK(contains(one, " = evaluate(averaged.module, criterion, test)\n"));
  CHECK(contains(one, "        write_weights(averaged.module.state_dict(), arguments.save)\n"));
  // A skipped step updates no average.
  TorchExport query = image_sizes();
  CHECK(contains(exported(spec("ema: 0.99\nparallel: ddp\nprecision: fp16\n"), query),
                 "            if scaler.get_scale() >= scale:  # else the step was skipped\n"
                 "                averaged.update_parameters(model.module)\n"));
}

TEST_CASE("averages of asgd are evaluated and saved") {
  const std::string asgd = "optimizer: {asgd: {lr: 0.1, t0: 100, average: true}}\n";
  std::string text = spec("evaluate: true\n");
  const size_t at = text.find("optimizer:");
  text.replace(at, text.find('\n', at) + 1 - at, asgd);
  const std::string one = exported(text);
  CHECK(contains(one, "import copy\n"));
  CHECK(contains(one, "    optimizer = optim.ASGD(model.parameters(), lr=0.1, t0=100.0)\n"));
  CHECK(contains(one,
                 "def averaged(model, optimizer):\n"
                 "    \"\"\"The model with the optimizer's averages of its weights.\"\"\"\n"
                 "    out = copy.deepcopy(model)\n"));
  CHECK(contains(one, "average.copy_(optimizer.state[weight][\"ax\"])\n"));
  CHECK(contains(one, " = evaluate(averaged(model, optimizer), criterion, test)\n"));
  CHECK(contains(one, "write_weights(averaged(model, optimizer).state_dict(), arguments.save)\n"));
  TorchExport query = image_sizes();
  query.average_every = 8;
  CHECK_THROWS_WITH_AS(exported(text + "parallel: ddp\n", query),
                       "the PyTorch program of `local_sgd` has no `average` of the optimizer; "
                       "export with optimizer.asgd.average=false",
                       Error);
  query = image_sizes();
  query.exchange.shard_states = true;
  CHECK_THROWS_WITH_AS(exported(text + "parallel: ddp\n", query),
                       "the PyTorch program of `shard: optimizer` has no `average` of the "
                       "optimizer; export with optimizer.asgd.average=false",
                       Error);
}

TEST_CASE("a program loads weights before it trains and saves them at its end") {
  const std::string one = exported(spec(""));
  CHECK(contains(one,
                 "    model = make_model()\n"
                 "    if arguments.weights:\n"
                 "        load_weights(model, arguments.weights)\n"));
  CHECK(contains(one,
                 "    if arguments.save:\n"
                 "        write_weights(model.state_dict(), arguments.save)\n"));
  const std::string ranks = exported(spec("parallel: ddp\n"));
  CHECK(contains(
      ranks,
      "load_weights(model, arguments.weights)\n    model = DistributedDataParallel(model)\n"));
  CHECK(contains(ranks,
                 "    if rank == 0 and arguments.save:\n"
                 "        write_weights(model.module.state_dict(), arguments.save)\n"));
}

TEST_CASE("local_sgd is a loop without a wrapper that averages every few steps") {
  TorchExport query = image_sizes();
  query.average_every = 8;
  query.accumulate = 2;
  const std::string text = spec("parallel: ddp\naccumulate: 2\nclip_grad_norm: 1\n");
  const std::string program = exported(text, query);
  CHECK(contains(program, "AVERAGE_EVERY = 8  # steps\n"));
  CHECK(contains(program, "Ranks train weights of their own"));
  CHECK(contains(
      program,
      "            for x_part, y_part in zip(x.chunk(ACCUMULATE), y.chunk(ACCUMULATE)):\n"));
  CHECK(contains(program,
                 "            losses.append(loss)\n"
                 "            total += loss * count\n"
                 "            weight += count\n"
                 "            if len(losses) % AVERAGE_EVERY == 0:\n"
                 "                average_replicas(model, optimizer)\n"
                 "        average_replicas(model, optimizer)\n"
                 "        mean = total / weight\n"));
  CHECK(contains(program,
                 "        if tensor.is_floating_point():\n"
                 "            dist.all_reduce(tensor)\n"
                 "            tensor /= RANKS\n"));
  CHECK(contains(program, "        write_weights(model.state_dict(), arguments.save)\n"));
  for (const char* of_ddp : {"DistributedDataParallel(", "no_sync", "model.module"})
    CHECK_MESSAGE(program.find(of_ddp) == program.npos, of_ddp);
  CHECK(exported(text, image_sizes()).find("average_replicas") == std::string::npos);
  CHECK_THROWS_WITH_AS(exported(text + "ema: 0.9\n", query),
                       "the PyTorch program of `local_sgd` has no `ema`; export with ema=none",
                       Error);
  CHECK_THROWS_WITH_AS(
      exported(text + "reproducible: 2\n", query),
      "the PyTorch program of `local_sgd` has no `reproducible`; export with reproducible=none",
      Error);
}

TEST_CASE("a spec of one process with everything as a program") {
  TorchExport query = image_sizes();
  query.accumulate = 2;
  const std::string program = exported(
      "name: all\n"
      "data: {dataset: images, batch_size: 20, drop_last: true, limit: 90}\n"
      "model:\n"
      "  - flatten\n"
      "  - {linear: 20, freeze: true}\n"
      "  - residual: {body: [relu, {linear: 20}]}\n"
      "  - {dropout: 0.1}\n"
      "  - linear: 10\n"
      "loss: {cross_entropy: {weight: [1, 2, 1, 1, 1, 1, 1, 1, 1, 1], label_smoothing: 0.1}}\n"
      "optimizer: {sgd: {lr: 0.1, momentum: 0.9}}\n"
      "schedule: {one_cycle: 0.2}\n"
      "clip_grad_norm: 1\nclip_grad_value: 0.5\naccumulate: 2\nsteps: 15\n"
      "evaluate: {every: 2, batch_size: 50}\ninitial_weights: configs/start.safetensors\n",
      query);
  check_golden(program, "export/golden/torch_all.py");
}

TEST_CASE("a replica of a pipeline is a process that computes the chunks one by one") {
  TorchExport query = image_sizes();
  query.accumulate = 4;
  const std::string two = exported(spec("parallel: pipeline\n"), query);
  CHECK(contains(two, "RANKS = 2\n"));
  CHECK(contains(two, "ACCUMULATE = 4 "));
  CHECK(contains(two, "so a replica is one process here"));
  query.ranks = query.replicas = 1;
  CHECK_FALSE(exported(spec("parallel: pipeline\n"), query).find("RANKS") != std::string::npos);
}

TEST_CASE("lists with from become a graph of modules") {
  const std::string program = exported(
      spec("",
           "[flatten, {linear: 8, name: a}, {residual: {body: [relu, {add: , from: [a, a]}]}}, "
           "{concat: , from: [a, input]}, {linear: 10}]"),
      sizes({DType::f32, {1, 5}}, {DType::i32, {1}}));
  CHECK(contains(program, "class Graph(nn.Module):"));
  CHECK(contains(program,
                 "    return Graph(\n"
                 "        (\"0\", nn.Flatten(), []),\n"
                 "        (\"a\", nn.Linear(5, 8), []),\n"
                 "        (\"2\", Residual(\n"
                 "            Graph(\n"
                 "                (\"0\", nn.ReLU(), []),\n"
                 "                (\"1\", lambda *x: sum(x), [\"a\", \"a\"]),\n"
                 "            ),\n"
                 "            nn.Identity(),\n"
                 "        ), []),\n"
                 "        (\"3\", lambda *x: torch.cat(x, dim=1), [\"a\", \"input\"]),\n"
                 "        (\"4\", nn.Linear(13, 10), []),\n"
                 "    )\n"));
}

TEST_CASE("what PyTorch has no module for is a class, once, beside what the lists need") {
  const auto attention = [&](const std::string& more) {
    return exported(spec("", "[{multihead_attention: 2}, " + more + "flatten, {linear: 10}]"),
                    sizes({DType::f32, {1, 3, 4}}, {DType::i32, {1}}));
  };
  const std::string begin = "\n\nclass MultiheadAttention(nn.MultiheadAttention):\n";
  const std::string one = attention("");
  CHECK(contains(one, begin));
  CHECK(contains(one, "        MultiheadAttention(4, 2),\n"));
  const std::string several = attention(
      "{residual: {body: [{multihead_attention: {num_heads: 4, causal: true, bias: false}}]}}, ");
  CHECK(contains(several, "\n\nclass Residual(nn.Module):\n"));
  CHECK(several.find(begin) == several.rfind(begin));
  CHECK(contains(several, "MultiheadAttention(4, 4, causal=True, bias=False),\n"));
}

TEST_CASE("what layers start from is drawn once the model is made, in their order") {
  const std::string program = exported(
      spec("initial_weights: w.safetensors\n",
           "[flatten, {linear: 8, name: a, init: {bias: zeros, weight: {xavier_uniform: 1.5}}}, "
           "{residual: {body: [{linear: 8, init: {kaiming_normal: {nonlinearity: relu}}}]}}, "
           "{linear: 10}]"),
      sizes({DType::f32, {1, 5}}, {DType::i32, {1}}));
  CHECK(contains(program,
                 "    nn.init.xavier_uniform_(model.get_parameter(\"a.weight\"), gain=1.5)\n"
                 "    nn.init.zeros_(model.get_parameter(\"a.bias\"))\n"
                 "    nn.init.kaiming_normal_(model.get_parameter(\"2.body.0.weight\"), "
                 "nonlinearity=\"relu\")\n"
                 "    load_weights(model, "));
}

TEST_CASE("a plateau is looked for where dptrain does: in test losses, if there are any") {
  const std::string plateau = "schedule: reduce_on_plateau\n";
  CHECK(contains(exported(spec(plateau)), "    scheduler.step(mean)\n"));
  const std::string evaluated = exported(spec(plateau + "evaluate: {every: 2}\n"));
  CHECK(contains(evaluated, "            scheduler.step(test_loss)\n"));
  CHECK(evaluated.find("scheduler.step(mean)") == evaluated.npos);
}

TEST_CASE("sequences: a class for the positions, and one for the loss over the last extent") {
  const std::string program = exported(
      "name: t\ndata: {dataset: tokens, batch_size: 20}\n"
      "model: [{embedding: {num_embeddings: 10, embedding_dim: 4}}, position_embedding, {residual: "
      "[position_embedding, {linear: 4}]}, {linear: 10}]\n"
      "loss: {cross_entropy: {class_dim: -1, label_smoothing: 0.1}}\n"
      "optimizer: {sgd: 0.1}\nepochs: 1\nevaluate: true\n",
      sizes({DType::i32, {1, 3}}, {DType::i32, {1, 3}}));
  CHECK(contains(program, "class LastExtent(nn.CrossEntropyLoss):\n"));
  CHECK(contains(program, "super().forward(output.flatten(0, -2), target.flatten(0, -1))\n"));
  CHECK(contains(program, "criterion = LastExtent(label_smoothing=0.1)\n"));
  CHECK(contains(program, "right += (output.argmax(dim=-1) == y).sum().item()\n"));
  CHECK(contains(program, "positions += y.numel()\n"));
  CHECK(contains(program, ", right / positions\n"));
  CHECK(contains(program, "        PositionEmbedding(3, 4),\n"));
  // Once, however many layers need it.
  const std::string definition = "class PositionEmbedding(nn.Embedding):\n";
  CHECK(contains(program, definition));
  CHECK(program.find(definition) == program.rfind(definition));
  // As torch has it.
  const std::string usual =
      exported(spec("", "[flatten, {linear: 10}]", "{cross_entropy: {class_dim: -1}}"));
  CHECK(contains(usual, "criterion = nn.CrossEntropyLoss()\n"));
}

TEST_CASE("losses that PyTorch gives several inputs have a class of their own") {
  const std::string program = exported(
      "name: t\ndata: {dataset: tokens, batch_size: 20}\n"
      "model: [{embedding: {num_embeddings: 10, embedding_dim: 4}}, {linear: 10}]\n"
      "loss: {ctc_loss: {blank: 9}}\noptimizer: {sgd: 0.1}\nepochs: 1\n",
      sizes({DType::i32, {1, 3}}, {DType::i32, {1, 3}}));
  CHECK(contains(program, "class Ctc(nn.CTCLoss):\n"));
  CHECK(contains(program, "criterion = Ctc(blank=9)\n"));
  CHECK(program.find("LastExtent") == program.npos);
  const std::string gauss = exported(spec("", "[flatten, {linear: 20}]", "gaussian_nll_loss"),
                                     sizes({DType::f32, {1, 5}}, {DType::f32, {1, 10}}));
  CHECK(contains(gauss, "class GaussianNLL(nn.GaussianNLLLoss):\n"));
  CHECK(contains(gauss, "criterion = GaussianNLL()\n"));
}

TEST_CASE("orders of samples") {
  const std::string single = exported(spec("parallel: single\n"));
  CHECK(contains(single, "loader = DataLoader(data, batch_size=BATCH_SIZE, shuffle=True)\n"));
  CHECK(single.find("set_epoch(") == single.npos);
  const std::string once = exported(
      "name: t\ndata: {dataset: images, batch_size: 20, reshuffle: false}\n"
      "model: [flatten, {linear: 10}]\nloss: cross_entropy\noptimizer: sgd\n");
  CHECK(contains(once, "order = list(RandomSampler(data))"));
  const std::string evaluated = exported(spec("evaluate: {batch_size: 7}\n"));
  CHECK(contains(evaluated, "for x, y in DataLoader(data, batch_size=7):\n"));
  const std::string ddp = exported(spec("parallel: ddp\n"));
  CHECK(contains(ddp, "sampler = DistributedSampler(data, num_replicas=RANKS, rank=rank)\n"));
  CHECK(contains(ddp, "sampler.set_epoch(epoch)\n"));
  CHECK(contains(ddp, "BATCH_SIZE = 10  # of each rank\n"));
  const std::string fixed = exported(spec("parallel: ddp\nreproducible: 8\n"));
  CHECK(contains(fixed, "sampler = DistributedSampler(data, num_replicas=1, rank=0, seed=SEED)\n"));
  CHECK(contains(fixed, "BATCH_SIZE = 20\n"));
  CHECK(fixed.find("mp.spawn") == fixed.npos);
}

TEST_CASE("weighted draws: PyTorch's sampler, or each rank's share of an order") {
  const auto program = [](const std::string& data, const std::string& more) {
    return exported("name: t\ndata: {" + data +
                    ", batch_size: 20, sampler: weighted}\nmodel: [flatten, {linear: 10}]\n"
                    "loss: cross_entropy\noptimizer: sgd\n" +
                    more);
  };
  const std::string single = program("dataset: images", "");
  CHECK(contains(single,
                 "    weights = class_weights(y)\n"
                 "    x = x.float()\n"
                 "    return TensorDataset(x, y), weights\n"));
  CHECK(contains(single, "    data, weights = train_data()\n"));
  CHECK(contains(single, "    sampler = WeightedRandomSampler(weights, len(weights))\n"));
  CHECK(
      contains(single, "    loader = DataLoader(data, batch_size=BATCH_SIZE, sampler=sampler)\n"));
  CHECK(contains(single, "import DataLoader, TensorDataset, WeightedRandomSampler\n"));
  CHECK(single.find("set_epoch") == single.npos);
  CHECK(contains(program("dataset: images, reshuffle: false", ""),
                 "order = list(WeightedRandomSampler(weights, len(weights)))"));
  const std::string ddp = program("dataset: images, drop_last: true", "parallel: ddp\n");
  CHECK(contains(ddp,
                 "    sampler = WeightedShare(weights, num_replicas=RANKS, rank=rank, "
                 "drop_last=True)\n"));
  CHECK(contains(program("dataset: images, sampler_seed: 3", "parallel: ddp\n"),
                 "    sampler = WeightedShare(weights, num_replicas=RANKS, rank=rank, seed=3)\n"));
  CHECK(contains(ddp, "class WeightedShare(DistributedSampler):\n"));
  CHECK(contains(ddp, "import DataLoader, DistributedSampler, TensorDataset\n"));
  CHECK(contains(ddp, "        sampler.set_epoch(epoch)\n"));
  CHECK(contains(program("dataset: images", "parallel: ddp\nreproducible: 8\n"),
                 "    sampler = WeightedShare(weights, num_replicas=1, rank=0, seed=SEED)\n"));
  const std::string folder =
      "dataset: {image_folder: {path: a, crop: 28}}, transforms: [to_tensor]";
  CHECK(contains(program(folder, ""),
                 "    weights = class_weights(torch.tensor(data.targets))\n"
                 "    return Transformed(data, train_transform), weights\n"));
  CHECK(contains(program(folder + ", limit: 100", ""),
                 "    weights = class_weights(torch.tensor(data.dataset.targets[:100]))\n"));
}

TEST_CASE("sums are not divided by DistributedDataParallel, and integers stay integers") {
  const std::string program = exported(
      "name: t\ndata: {dataset: tokens, batch_size: 4}\n"
      "model: [{embedding: {num_embeddings: 5, embedding_dim: 3}}, {linear: 2}]\n"
      "loss: {mse_loss: sum}\noptimizer: sgd\nparallel: ddp\n",
      sizes({DType::i32, {1, 3}}, {DType::f32, {1, 3, 2}}));
  CHECK(
      contains(program, "(loss * RANKS).backward()  # DistributedDataParallel divides by RANKS\n"));
  CHECK(contains(program, "loss = sum_over_ranks(loss)\n"));
  CHECK(program.find("x.float()") == program.npos);
}

TEST_CASE("ranks exchange gradients once a step, compressed by torch's hook, and shard states") {
  TorchExport query = image_sizes();
  query.accumulate = 2;
  const std::string text = spec("parallel: ddp\naccumulate: 2\n");
  CHECK(contains(exported(text, query),
                 "        parts = list(zip(x.chunk(ACCUMULATE), y.chunk(ACCUMULATE)))\n"
                 "            for number, (x_part, y_part) in enumerate(parts, 1):\n"
                 "                with model.no_sync() if number < len(parts) else "
                 "contextlib.nullcontext():\n"
                 "                    share = len(x_part) / len(x)\n"
                 "                    part = criterion(model(x_part), y_part) * share\n"
                 "                    part.backward()\n"
                 "                loss += part.item()\n"));
  query.exchange = {.compress = DType::bf16, .shard_states = true};
  const std::string program = exported(text, query);
  CHECK(
      contains(program, "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks\n"));
  CHECK(contains(program, "model.register_comm_hook(None, default_hooks.bf16_compress_hook)\n"));
  CHECK(contains(program, "from torch.distributed.optim import ZeroRedundancyOptimizer\n"));
  CHECK(
      contains(program,
               "optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=optim.SGD, "
               "lr=0.1)\n"));
  query.shards = 4;
  CHECK(contains(exported(text, query), "the hook those of each rank"));
  query.exchange.compress.reset();
  const std::string one = exported(text + "reproducible: 2\n", query);
  CHECK(contains(one, "`shard: optimizer` does not change results"));
  CHECK(one.find("ZeroRedundancyOptimizer(") == one.npos);
}

TEST_CASE("torch's plateau, which SequentialLR does not take, warms up apart") {
  const std::string plateau =
      "schedule: {reduce_on_plateau: {patience: 1}, warmup: 2}\nepochs: 8\n";
  const std::string program = exported(spec(plateau));
  CHECK(contains(program, "scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)\n"));
  CHECK(contains(program, "warmup = lr_scheduler.LinearLR(optimizer, start_factor="));
  CHECK(contains(program,
                 "        if epoch >= 2:\n            scheduler.step(mean)\n"
                 "        if epoch < 2:\n            warmup.step()\n"));
  CHECK(contains(exported(spec(plateau + "evaluate: {every: 2}\n")),
                 "            if epoch >= 2:\n                scheduler.step(test_loss)\n"
                 "        if epoch < 2:\n            warmup.step()\n"));
}

TEST_CASE("what is not the same in PyTorch is said on top") {
  TorchExport uneven = image_sizes();
  uneven.samples = 101;
  CHECK(contains(exported(spec("parallel: ddp\n"), uneven), "101 samples on 2 ranks"));
  CHECK(
      contains(exported(spec("parallel: dp\n")), "DataParallel gives the results of one process"));
  CHECK(contains(exported(spec("", "[flatten, dropout, {linear: 10}]")),
                 "Dropout masks are PyTorch's; dptrain draws the same ones with `random: torch`."));
  CHECK(
      exported(spec("random: torch\n", "[flatten, dropout, {linear: 10}]")).find("Dropout masks") ==
      std::string::npos);
}

TEST_CASE("what can't be exported says why") {
  const auto refusal = [](const std::string& yaml) -> std::string {
    try {
      exported(yaml);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  CHECK(refusal(spec("parallel: other\n")) ==
        "parallel mode 'other' has no equivalent program; single, dp, ddp, pipeline and "
        "local_sgd have one");
  CHECK(refusal("name: t\ndata: {dataset: secret, batch_size: 20}\nmodel: [{linear: 10}]\n"
                "loss: cross_entropy\noptimizer: muon\n") ==
        "optimizer 'muon' has no equivalent program: in PyTorch it takes two optimizers; export "
        "with another one, such as optimizer=adam_w");
  CHECK(refusal("name: t\ndata: {dataset: secret, batch_size: 20}\nmodel: [flatten, {linear: 10}]\n"
                "loss: cross_entropy\noptimizer: sgd\n") ==
        "PyTorch cannot make the data set 'secret', so it is written as .npy files beside the "
        "program: name the program's file, as with --output t.py");
  for (const auto& [more, key] :
       {std::pair("early_stop: 2\n", "early_stop"), std::pair("minutes: 3\n", "minutes"),
        std::pair("evaluate: {every_steps: 2}\n", "evaluate.every_steps"),
        std::pair("evaluate: {metrics: [f1]}\n", "evaluate.metrics")})
    CHECK(refusal(spec(more)).starts_with(fmt::format("the PyTorch program has no `{}`", key)));
  CHECK(refusal(spec("early_stop: 2\n")) ==
        "the PyTorch program has no `early_stop`, so it trains to the last epoch; export with "
        "early_stop=none");
  // The program's accuracy is that of classes.
  CHECK(
      refusal("name: t\ndata: {dataset: {random: {samples: 40, in_features: 3, out_features: 2}}, "
              "batch_size: 20}\nmodel: [{linear: 2}]\nloss: bce_with_logits_loss\n"
              "optimizer: sgd\nevaluate: {metrics: [accuracy]}\n") ==
      "the PyTorch program has no `evaluate.metrics`; export with evaluate.metrics=[]");
  TorchExport compressed = image_sizes();
  compressed.exchange.compress = DType::f16;
  CHECK_THROWS_WITH_AS(
      exported(spec("parallel: ddp\nreproducible: 8\n"), compressed),
      "with `reproducible` the equivalent program is one process, which compresses nothing, but "
      "`compress` rounds the gradients of each shard; export without one of the two",
      Error);
  const std::string norm = "[flatten, {linear: 10}, batch_norm1d]";
  CHECK(refusal(spec("parallel: ddp\nsync_batch_norm: true\n", norm)) ==
        "with sync_batch_norm, batch norm uses the statistics of all ranks, but PyTorch's "
        "SyncBatchNorm runs on GPUs only; export and train with reproducible=2 to get the same "
        "numbers; parallel=single changes the order of samples, and sync_batch_norm=false the "
        "statistics");
  CHECK(refusal(spec("parallel: dp\nreproducible: 8\n", norm)) ==
        "each of the 2 replicas has statistics of its own for batch norm, but the equivalent "
        "program is one process; export with sync_batch_norm=true or parallel=single");
  for (const char* same :
       {"parallel: ddp\n", "parallel: dp\n", "parallel: dp\nsync_batch_norm: true\n",
        "parallel: ddp\nsync_batch_norm: true\nreproducible: 8\n"})
    CHECK(refusal(spec(same, norm)) == "");
}

}  // namespace dpt
