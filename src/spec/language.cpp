#include "spec/language.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "spec/evaluation_keys.h"
#include "spec/parameter_keys.h"

namespace dpt {
namespace {

// Their product, with 1024 workers, is still a number of 64 bits.
constexpr Range kCount{.text = "must be between 1 and 2^31", .low = 1, .high = 2147483648};
constexpr Range kMicroBatches{.text = "must be between 1 and 65536", .low = 1, .high = 65536};

KeyDoc one_of(std::string_view kind, std::string_view registry) {
  return {.kind = kind, .registry = registry};
}
KeyDoc some_of(std::string_view kind, std::string_view registry, std::string fallback) {
  return {.kind = kind, .fallback = std::move(fallback), .registry = registry, .many = true};
}

// Documents a section that is a map of its own keys, decoded by Section.
template <class Section>
KeyDoc map_of(std::string fallback = "none", bool main = false) {
  return {.kind = "a map",
          .fallback = std::move(fallback),
          .keys = Section::keys().describe(),
          .main = main};
}

struct LogKeys : LogSpec {
  static KeyTable<LogKeys> keys() {
    return KeyTable<LogKeys>()
        .optional("every", &LogKeys::every,
                  "steps between two step records in metrics.jsonl and log lines on standard "
                  "error; 0: none",
                  kNotNegative)
        .usage("", "log: {every: 100}")
        .choice(
            "loss", &LogKeys::loss, {"global", "rank0"},
            "which loss is printed: the mean over all samples of all ranks, or rank 0's own mean")
        .usage("", "log: {loss: rank0}")
        .optional(
            "shapes", &LogKeys::shapes,
            "whether to print the shapes of each replica's input and output in the first steps")
        .usage("", "log: {shapes: true}")
        .optional("tensorboard", &LogKeys::tensorboard,
                  "whether to write event files for TensorBoard into the run directory")
        .usage("torch.utils.tensorboard.SummaryWriter", "log: {tensorboard: true}")
        .optional(
            "grad_norms", &LogKeys::grad_norms,
            "whether step records have the norm of each parameter's gradient, before clipping")
        .usage("param.grad.norm()", "log: {every: 100, grad_norms: true}")
        .optional("noise_scale", &LogKeys::noise_scale,
                  "whether step records have the gradient noise scale, which estimates the largest "
                  "useful batch size; it compares the gradients of a batch's shards")
        .usage("", "log: {every: 100, noise_scale: true}");
  }

  static void check(const LogKeys& s, const Owner& owner, Diagnostics& d) {
    for (const auto& [key, given] :
         {std::pair("grad_norms", s.grad_norms), std::pair("noise_scale", s.noise_scale)})
      if (given && s.every == 0)
        d.error(owner.at(key), fmt::format("'{}' is written to step records, and 'every' is 0: set "
                                           "log.every to the steps between two records",
                                           key));
  }
};

struct ClipKeys : ClipSpec {
  static KeyTable<ClipKeys> keys() {
    return KeyTable<ClipKeys>()
        .required("max_norm", &ClipKeys::max_norm, "largest norm of all gradients together",
                  kPositiveOrInfinite)
        .usage("clip_grad_norm_(max_norm)", "clip_grad_norm: {max_norm: 1}")
        .optional("norm_type", &ClipKeys::norm_type, "p of the p-norm; .inf: the largest element",
                  kPositiveOrInfinite)
        .usage("clip_grad_norm_(norm_type)", "clip_grad_norm: {max_norm: 1, norm_type: .inf}");
  }
};

struct ReproducibleKeys {
  int64_t shards = 0;
  std::optional<std::string> gradients;
  static KeyTable<ReproducibleKeys> keys() {
    return KeyTable<ReproducibleKeys>()
        .required(
            "shards", &ReproducibleKeys::shards,
            "number of shards that each global batch is split into, for any number of devices",
            Range{.text = "must be between 1 and 4096", .low = 1, .high = 4096})
        .usage("", "reproducible: {shards: 8}")
        .choice("gradients", &ReproducibleKeys::gradients, {"fused", "stored"},
                "fused: gradients of linear weights are computed within the update where possible; "
                "stored: all are stored and summed, which gives the same bits on several hosts. "
                "None: fused on one host, stored on several")
        .usage("", "reproducible: {shards: 8, gradients: stored}");
  }
};

struct ScheduleKeys : ScheduleSpec {
  static KeyTable<ScheduleKeys> keys() {
    return KeyTable<ScheduleKeys>()
        .choice(
            "interval", &ScheduleKeys::interval, {"epoch", "step"},
            "what one interval of the schedule and of its warm-up is; none: a step for one_cycle "
            "and cyclic, an epoch for the others")
        .usage("", "schedule: {cosine_annealing: {}, interval: step}")
        .optional("warmup", &ScheduleKeys::warmup,
                  "intervals of linear warm-up before the schedule starts; 0: none", kNotNegative)
        .usage("LinearLR(total_iters), SequentialLR",
               "schedule: {constant: null, interval: step, warmup: 300}")
        .optional("warmup_factor", &ScheduleKeys::warmup_factor,
                  "factor of the learning rate in the first interval of the warm-up",
                  kPositiveFraction)
        .usage("LinearLR(start_factor)",
               "schedule: {constant: null, interval: step, warmup: 300, warmup_factor: 0.1}");
  }
};

void read_schedule(ScheduleSpec& out, const Node& n, const Registry& registry, Diagnostics& d) {
  static const KeyTable<ScheduleKeys> table = ScheduleKeys::keys();
  if (n.kind == Node::Kind::null) return;
  Node beside;
  beside.kind = Node::Kind::map;
  const auto names = table.names();
  for (const Node::Entry& e : n.entries)
    if (std::ranges::find(names, e.key.value) != names.end()) beside.entries.push_back(e);
  out = table.decode(beside, {"'schedule'", n.where}, d);
  out.schedule = read_choice("schedule", n, registry, d, names);
}

// Parses "cpu:1" or "1"; returns false if it is neither. `kind` is empty for a bare number.
bool read_device(const std::string& text, std::string& kind, int64_t& index) {
  const size_t colon = text.find(':');
  kind = colon == text.npos ? "" : text.substr(0, colon);
  if (colon != text.npos && kind != "cpu" && kind != "cuda") return false;
  const std::string_view digits = std::string_view(text).substr(colon == text.npos ? 0 : colon + 1);
  if (digits.size() > 1 && digits[0] == '0') return false;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  return error == std::errc{} && stop == digits.data() + digits.size() && index >= 0 &&
         index < 4096;
}

void read_devices(DeviceSpec& out, const Node& n, Diagnostics& d) {
  out.where = n.where;
  if (n.kind != Node::Kind::list) {
    int64_t count = 0;
    if (read_value(
            "devices", n,
            Rule<int64_t>(Range{.text = "must be between 1 and 4096", .low = 1, .high = 4096}),
            count, d))
      out.count = count;
    return;
  }
  if (n.items.empty()) d.error(n.where, "'devices' must name at least one device");
  for (const Node& i : n.items) {
    std::string kind;
    int64_t index = 0;
    if (i.kind != Node::Kind::scalar || !read_device(i.text, kind, index))
      d.error(i.where, "expected a device: cpu:0, cuda:1 or a number");
    else if (!kind.empty() && out.device != "auto" && out.device != kind)
      d.error(i.where,
              fmt::format("'{}' and '{}' devices cannot be mixed; name devices of one kind", i.text,
                          out.device));
    else if (kind != "cuda" && std::ranges::find(out.indices, index) != out.indices.end())
      d.error(i.where, fmt::format("device {} is named twice", index));
    else
      out.indices.push_back(index), out.device = kind.empty() ? out.device : kind;
  }
  out.count = static_cast<int64_t>(out.indices.size());
}

// The word `auto`, or a number.
void read_batch_size(DataSpec& out, const Node& n, Diagnostics& d) {
  out.auto_batch = n.kind == Node::Kind::scalar && n.text == "auto";
  int64_t size = 0;
  if (!out.auto_batch && read_value("batch_size", n, Rule<int64_t>(kCount), size, d))
    out.batch_size = size;
}

Json batch_schema() {
  return {{"type", Json::array({"integer", "string"})},
          {"minimum", 1},
          {"maximum", 2147483648},
          {"pattern", "^auto$"}};
}

Json devices_schema() {
  const Json device = {{"type", Json::array({"integer", "string"})},
                       {"minimum", 0},
                       {"maximum", 4095},
                       {"pattern", "^((cpu|cuda):)?(0|[1-9][0-9]{0,3})$"}};
  return {{"type", Json::array({"integer", "array"})},
          {"minimum", 1},
          {"maximum", 4096},
          {"minItems", 1},
          {"items", device}};
}

Json name_schema() {
  return {{"type", Json::array({"string", "number", "boolean"})},
          {"pattern", R"(^[^./\n\t][^/\n\t]*$)"}};
}

void add_run(KeyTable<TopKeys>& t, const Registries& v) {
  t.section(
       "loss", "loss function to minimize",
       [&v](TopKeys& s, const Node& n, Diagnostics& d) {
         s.loss = read_choice("loss", n, v.losses, d);
       },
       one_of("a loss", "losses"))
      .usage("torch.nn", "loss: cross_entropy")
      .section(
          "optimizer", "algorithm that updates the weights",
          [&v](TopKeys& s, const Node& n, Diagnostics& d) {
            s.optimizer = read_choice("optimizer", n, v.optimizers, d);
          },
          one_of("an optimizer", "optimizers"))
      .usage("torch.optim", "optimizer: {adam: 0.001}")
      .optional_section("schedule", "how the learning rate changes, with an optional warm-up",
                        [&v](TopKeys& s, const Node& n, Diagnostics& d) {
                          read_schedule(s.schedule, n, v.schedules, d);
                        },
                        {.kind = "a schedule",
                         .fallback = "constant",
                         .keys = ScheduleKeys::keys().describe(),
                         .registry = "schedules"})
      .usage("torch.optim.lr_scheduler", "schedule: cosine_annealing")
      .optional_section(
          "clip_grad_norm", "scales all gradients so that their norm is at most this",
          [](TopKeys& s, const Node& n, Diagnostics& d) {
            const ClipKeys c = ClipKeys::keys().decode(n, {"'clip_grad_norm'", n.where}, d);
            s.clip.max_norm = c.max_norm;
            s.clip.norm_type = c.norm_type;
          },
          map_of<ClipKeys>("none", true))
      .usage("torch.nn.utils.clip_grad_norm_", "clip_grad_norm: 1")
      .optional("clip_grad_value", &TopKeys::clip_grad_value,
                "clamps each element of the gradients to [-value, value]", kPositive)
      .usage("torch.nn.utils.clip_grad_value_", "clip_grad_value: 0.5")
      .optional("epochs", &TopKeys::epochs,
                "passes over the training set; none: 1, or unlimited if `steps` is given",
                kPositive)
      .usage("", "epochs: 10")
      .optional("steps", &TopKeys::steps,
                "optimizer steps; with `epochs`, the limit reached first ends the run", kPositive)
      .usage("", "steps: 5000");
  add_end_keys(t);
  t.optional("ema", &TopKeys::ema,
             "decay of the exponential average of the weights, which evaluations and the saved "
             "model use; none: no average",
             kBelowOne)
      .usage("torch.optim.swa_utils.get_ema_multi_avg_fn(decay)", "ema: 0.999");
  t.optional("sync_batch_norm", &TopKeys::sync_batch_norm,
             "whether batch norm uses the statistics of all replicas together")
      .usage("torch.nn.SyncBatchNorm", "sync_batch_norm: true")
      .optional("accumulate", &TopKeys::accumulate,
                "micro-batches per global batch (gradient accumulation)", kMicroBatches)
      .usage("DistributedDataParallel.no_sync", "accumulate: 4");
}

void add_machine(KeyTable<TopKeys>& t, const Registries& v) {
  t.choice("device", &TopKeys::device, {"auto", "cpu", "cuda"},
           "type of device; auto: the CPU, because GPU support is new")
      .usage("torch.device", "device: cpu")
      .optional_section(
          "devices", "number of devices, or a list of them",
          [](TopKeys& s, const Node& n, Diagnostics& d) { read_devices(s.devices, n, d); },
          {.kind = "an integer or a list", .schema = devices_schema()})
      .usage("DataParallel(device_ids), torchrun --nproc-per-node", "devices: 2")
      .optional("cores", &TopKeys::cores,
                "worker threads per CPU device; none: the machine's cores, divided evenly",
                Range{.text = "must be between 1 and 4096", .low = 1, .high = 4096})
      .usage("torch.set_num_threads", "cores: 4")
      .optional("memory_limit", &TopKeys::memory_limit,
                "MiB of weights, gradients, optimizer states and activations that a device may "
                "hold; a run that needs more is refused; none: the memory of the machine",
                kPositive)
      .usage("torch.cuda.set_per_process_memory_fraction", "memory_limit: 4096")
      .optional("graphs", &TopKeys::graphs,
                "whether a GPU runs steps as CUDA graphs; false: it launches each kernel by itself")
      .usage("torch.cuda.CUDAGraph", "graphs: false")
      .optional_section("parallel", "how devices share the work",
                        [&v](TopKeys& s, const Node& n, Diagnostics& d) {
                          s.parallel = read_choice("parallel mode", n, v.modes, d);
                        },
                        {.kind = "a mode", .fallback = "single", .registry = "modes"})
      .usage("", "parallel: ddp")
      .optional_section(
          "precision",
          "precision of arithmetic; bf16 and fp16 are mixed precision as in torch.autocast",
          [&v](TopKeys& s, const Node& n, Diagnostics& d) {
            s.precision = read_choice("precision", n, v.precisions, d);
          },
          {.kind = "a precision", .fallback = "fp32", .registry = "precisions"})
      .usage("torch.autocast", "precision: bf16")
      .choice("random", &TopKeys::random, {"counter", "torch"},
              "counter: the same dropout masks in every mode; torch: PyTorch's dropout masks, only "
              "in mode single")
      .usage("", "random: torch")
      .optional_section(
          "reproducible", "the same results, bit for bit, for any number of devices and cores",
          [](TopKeys& s, const Node& n, Diagnostics& d) {
            const auto r = ReproducibleKeys::keys().decode(n, {"'reproducible'", n.where}, d);
            if (r.shards > 0) s.reproducible_shards = r.shards;
            s.reproducible_gradients = r.gradients;
          },
          map_of<ReproducibleKeys>("none", true))
      .usage("", "reproducible: 8");
}

void read_name(TopKeys& s, const Node& n, Diagnostics& d) {
  const bool word = n.kind == Node::Kind::scalar && !n.text.empty() && !n.text.starts_with('.') &&
                    n.text.find('/') == n.text.npos && n.text.find_first_of("\n\t") == n.text.npos;
  if (!word)
    d.error(n.where, "'name' must be a word that is valid as the name of a folder");
  else
    s.name = n.text;
}

}  // namespace

KeyTable<DataSpec> data_keys(const Registries& v) {
  KeyTable<DataSpec> t;
  t.section(
       "dataset", "source of the samples",
       [&v](DataSpec& s, const Node& n, Diagnostics& d) {
         s.dataset = read_choice("dataset", n, v.datasets, d);
       },
       one_of("a dataset", "datasets"))
      .usage("torch.utils.data.Dataset", "data: {dataset: fashion_mnist}");
  add_validation_key(t, v);
  t.optional_section(
       "transforms", "changes to each sample, in order; random ones apply in training only",
       [&v](DataSpec& s, const Node& n, Diagnostics& d) {
         s.transforms = read_choices("transform", n, v.transforms, d);
       },
       some_of("a list of transforms", "transforms", "[]"))
      .usage("torchvision.transforms.Compose", "data: {transforms: [to_tensor]}")
      .optional_section(
          "target_transforms", "changes to each target, in order",
          [&v](DataSpec& s, const Node& n, Diagnostics& d) {
            s.target_transforms = read_choices("target transform", n, v.target_transforms, d);
          },
          some_of("a list of target transforms", "target_transforms", "[]"))
      .usage("torchvision.datasets.VisionDataset(target_transform)",
             "data: {target_transforms: [one_hot]}")
      .optional_section(
          "batch_size",
          "samples per step, over all replicas together; this or batch_size_per_replica. auto: "
          "chosen by measuring when a run starts",
          read_batch_size,
          {.kind = "an integer or auto", .type = KeyKind::integer, .schema = batch_schema()})
      .usage("DataLoader(batch_size)", "data: {batch_size: 128}")
      .optional("batch_size_per_replica", &DataSpec::batch_size_per_replica,
                "samples of each replica per step, or per micro-batch with accumulate; this or "
                "batch_size",
                kCount)
      .usage("DataLoader(batch_size)", "data: {batch_size_per_replica: 64}")
      .optional("shuffle", &DataSpec::shuffle, "whether training samples are in random order")
      .usage("DataLoader(shuffle)", "data: {shuffle: false}")
      .optional("reshuffle", &DataSpec::reshuffle,
                "whether each epoch has its own random order; false: all use the first epoch's")
      .usage("DistributedSampler.set_epoch", "data: {reshuffle: false}")
      .choice("sampler", &DataSpec::sampler, {"weighted"},
              "weighted: draws as many samples as there are, with replacement, so that all classes "
              "are equally frequent; none: each sample once")
      .usage("torch.utils.data.WeightedRandomSampler", "data: {sampler: weighted}")
      .optional(
          "sampler_seed", &DataSpec::sampler_seed,
          "seed of the sample orders of ddp and local_sgd, whatever `seed` is, as in PyTorch; "
          "other modes, and `reproducible`, use `seed`",
          kNotNegative)
      .usage("DistributedSampler(seed)", "data: {sampler_seed: 1}")
      .optional("drop_last", &DataSpec::drop_last, "whether to drop a smaller last batch")
      .usage("DataLoader(drop_last)", "data: {drop_last: true}")
      .optional("pad", &DataSpec::pad,
                "whether ddp repeats the first samples so that all ranks have the same number, "
                "like PyTorch's DistributedSampler")
      .usage("DistributedSampler(drop_last=False)", "data: {pad: false}")
      .optional("limit", &DataSpec::limit, "use only the first N samples; 0: all", kNotNegative)
      .usage("torch.utils.data.Subset", "data: {limit: 1000}");
  return t;
}

KeyTable<TopKeys> top_keys(const Registries& v) {
  const auto ignore = [](TopKeys&, const Node&, Diagnostics&) {};
  KeyTable<TopKeys> t;
  t.optional("version", &TopKeys::version, "version of the spec language",
             Range{.text = "must be 1 (the version this dptrain reads)", .low = 1, .high = 1})
      .usage("", "version: 1")
      .optional_section("name", "name of the run; none: the file name without its extension",
                        read_name, {.kind = "text", .type = KeyKind::text, .schema = name_schema()})
      .usage("", "name: baseline")
      .optional(
          "seed", &TopKeys::seed,
          "seed of initial weights, dropout and sample orders; orders of ddp and local_sgd have "
          "`data.sampler_seed`")
      .usage("torch.manual_seed", "seed: 1")
      .optional_section(
          "extends", "base file whose keys this file overrides; the path is relative to this file",
          [](TopKeys&, const Node& n, Diagnostics& d) {
            d.error(n.where, "'extends' is allowed only in a file, not on the command line");
          },
          {.kind = "a path", .type = KeyKind::text})
      .usage("", "extends: base.yaml")
      .section("data", "samples, their order and their batches",
               [&v](TopKeys& s, const Node& n, Diagnostics& d) {
                 if (n.kind == Node::Kind::map)
                   s.data = data_keys(v).decode(with_shared_keys(n, v.datasets, d),
                                                {"'data'", n.where}, d);
                 else
                   d.error(n.where, "'data' must be a map of keys");
                 s.data.where = n.where;
               },
               {.kind = "a map", .keys = data_keys(v).describe()})
      .usage("torch.utils.data.DataLoader", "data: {dataset: mnist, batch_size: 100}")
      .optional_section("blocks", "named lists of layers with parameters, for use in `model`",
                        ignore, {.kind = "a map of names and blocks", .registry = "blocks"})
      .usage("", "blocks: {pair: {layers: [linear: 10, relu]}}")
      .section("model", "layers, first to last", ignore,
               {.kind = "a list of layers", .registry = "layers", .many = true})
      .usage("torch.nn.Sequential", "model: [flatten, linear: 10]");
  add_initial_weights(t);
  add_run(t, v);
  add_parameter_keys(t);
  add_machine(t, v);
  add_evaluation_keys(t);
  t.optional_section(
       "log", "what is recorded during the run",
       [](TopKeys& s, const Node& n, Diagnostics& d) {
         if (n.kind == Node::Kind::map)
           s.log = LogKeys::keys().decode(n, {"'log'", n.where}, d);
         else
           d.error(n.where, "'log' must be a map of keys");
       },
       map_of<LogKeys>("the defaults"))
      .usage("", "log: {every: 100}")
      .optional("out", &TopKeys::out,
                "folder of the run, relative to the working directory; none: the next number "
                "in runs/NAME, such as runs/NAME/3")
      .usage("", "out: runs/first");
  return t;
}

std::vector<std::string_view> keys_in(const KeyDoc& section, const Registries& registries) {
  std::vector<std::string_view> out;
  const auto add = [&](const std::vector<KeyDoc>& keys) {
    for (const KeyDoc& k : keys) out.push_back(k.name);
  };
  // The entries of a list have keys of their own, which are nobody's home.
  if (!section.many) add(section.keys);
  if (section.registry.empty() || section.registry == "blocks" || section.many) return out;
  for (const RegistryEntry* word : registry_of(registries, section.registry)) add(word->describe());
  return out;
}

const Registry& registry_of(const Registries& v, std::string_view list) {
  if (list == "losses") return v.losses;
  if (list == "optimizers") return v.optimizers;
  if (list == "schedules") return v.schedules;
  if (list == "datasets") return v.datasets;
  if (list == "transforms") return v.transforms;
  if (list == "target_transforms") return v.target_transforms;
  if (list == "modes") return v.modes;
  if (list == "precisions") return v.precisions;
  if (list == "initialisations") return v.initialisations;
  require(list == "layers", "the registries have such a list");
  return v.layers;
}

const std::vector<ChoiceLocation>& choice_locations() {
  static const std::vector<ChoiceLocation> locations = {
      {.path = {"loss"}, .registry = "losses", .siblings = {}},
      {.path = {"optimizer"}, .registry = "optimizers", .siblings = {}},
      {.path = {"schedule"}, .registry = "schedules", .siblings = ScheduleKeys::keys().names()},
      {.path = {"parallel"}, .registry = "modes", .siblings = {}},
      {.path = {"precision"}, .registry = "precisions", .siblings = {}},
      {.path = {"data", "dataset"}, .registry = "datasets", .siblings = {}},
      {.path = {"data", "validation"}, .registry = "datasets", .siblings = {}},
      {.path = {"data", "transforms"}, .registry = "transforms", .siblings = {}, .many = true},
      {.path = {"data", "target_transforms"},
       .registry = "target_transforms",
       .siblings = {},
       .many = true}};
  return locations;
}

}  // namespace dpt
