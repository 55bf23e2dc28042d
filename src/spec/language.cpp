#include "spec/language.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"

namespace dpt {
namespace {

// Their product, with 1024 workers, is still a number of 64 bits.
constexpr Range kCount{"must be between 1 and 2^31", 1, 2147483648};
constexpr Range kMicroBatches{"must be between 1 and 65536", 1, 65536};

KeyDoc one_of(std::string_view kind, std::string_view words) {
  return {.kind = kind, .words = words};
}
KeyDoc some_of(std::string_view kind, std::string_view words, std::string fallback) {
  return {.kind = kind, .fallback = std::move(fallback), .words = words, .many = true};
}

// A section that is a map of its own keys, decoded by Table.
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
        .optional(
            "every", &LogKeys::every,
            "steps between two step records in metrics.jsonl and lines on standard error; 0: none",
            kNotNegative)
        .choice("loss", &LogKeys::loss, {"global", "rank0"},
                "the mean over all samples of all ranks, or rank 0's own mean of its steps")
        .optional("shapes", &LogKeys::shapes,
                  "print the sizes of each replica's input and output in the first steps");
  }
};

struct EvaluateKeys : EvaluateSpec {
  static KeyTable<EvaluateKeys> keys() {
    return KeyTable<EvaluateKeys>()
        .optional("every", &EvaluateKeys::every, "epochs between two evaluations", kPositive)
        .optional("batch_size", &EvaluateKeys::batch_size, "samples of one batch", kCount);
  }
};

struct SaveKeys : SaveSpec {
  static KeyTable<SaveKeys> keys() {
    return KeyTable<SaveKeys>()
        .optional("every_epochs", &SaveKeys::every_epochs,
                  "epochs between two checkpoints; 0: only where the run ends or is stopped",
                  kNotNegative)
        .optional("every_steps", &SaveKeys::every_steps,
                  "steps between two checkpoints, beside those of epochs; 0: none", kNotNegative)
        .optional("every_minutes", &SaveKeys::every_minutes,
                  "minutes after a checkpoint until the next, beside the others; 0: never by time",
                  kNotNegative)
        .optional("keep", &SaveKeys::keep, "how many of the newest checkpoints are kept", kCount);
  }
};

struct ClipKeys : ClipSpec {
  static KeyTable<ClipKeys> keys() {
    return KeyTable<ClipKeys>()
        .required("max_norm", &ClipKeys::max_norm, "the largest norm of all gradients together",
                  kPositiveOrInfinite)
        .optional("norm_type", &ClipKeys::norm_type, "p of the norm; .inf is the largest element",
                  kPositiveOrInfinite);
  }
};

struct ReproducibleKeys {
  int64_t shards = 0;
  static KeyTable<ReproducibleKeys> keys() {
    return KeyTable<ReproducibleKeys>().required(
        "shards", &ReproducibleKeys::shards,
        "into how many shards each global batch is split, whatever the number of devices",
        Range{"must be between 1 and 4096", 1, 4096});
  }
};

struct ScheduleKeys : ScheduleSpec {
  static KeyTable<ScheduleKeys> keys() {
    return KeyTable<ScheduleKeys>()
        .choice("interval", &ScheduleKeys::interval, {"epoch", "step"},
                "what the schedule counts; none: the schedule's own")
        .optional("warmup", &ScheduleKeys::warmup,
                  "intervals of linear warm-up before the schedule", kNotNegative)
        .optional("warmup_factor", &ScheduleKeys::warmup_factor,
                  "of the learning rate, at the first interval of the warm-up",
                  Range{"must be above 0 and at most 1", 0, 1, true});
  }
};

void read_schedule(ScheduleSpec& out, const Node& n, const Words& words, Diagnostics& d) {
  static const KeyTable<ScheduleKeys> table = ScheduleKeys::keys();
  if (n.kind == Node::Kind::null) return;
  Node beside;
  beside.kind = Node::Kind::map;
  const auto names = table.names();
  for (const Node::Entry& e : n.entries)
    if (std::ranges::find(names, e.key.value) != names.end()) beside.entries.push_back(e);
  out = table.decode(beside, {"'schedule'", n.where}, d);
  out.schedule = read_choice("schedule", n, words, d, names);
}

void read_evaluate(EvaluateSpec& out, const Node& n, Diagnostics& d) {
  if (n.kind == Node::Kind::map)
    out = EvaluateKeys::keys().decode(n, {"'evaluate'", n.where}, d), out.on = true;
  else if (n.kind != Node::Kind::scalar || !parse_scalar(n, out.on))
    d.error(n.where, "'evaluate' must be true, false or a map of 'every' and 'batch_size'");
  out.where = n.where;
}

void read_save(SaveSpec& out, const Node& n, Diagnostics& d) {
  if (n.kind == Node::Kind::map)
    out = SaveKeys::keys().decode(n, {"'save'", n.where}, d);
  else if (n.kind != Node::Kind::scalar || !parse_scalar(n, out.on))
    d.error(n.where,
            "'save' must be true, false or a map of 'every_epochs', 'every_steps', 'every_minutes' "
            "and 'keep'");
}

// "cpu:1", "1": the index; false where it is neither. `kind` is empty for a bare number.
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
    if (read_value("devices", n, Rule<int64_t>(Range{"must be between 1 and 4096", 1, 4096}), count,
                   d))
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

constexpr const char* kDevicesSchema =
    R"({"type": ["integer", "array"], "minimum": 1, "maximum": 4096, "minItems": 1, "items": )"
    R"({"type": ["integer", "string"], "minimum": 0, "maximum": 4095, )"
    R"("pattern": "^((cpu|cuda):)?(0|[1-9][0-9]{0,3})$"}})";

constexpr const char* kNameSchema =
    R"({"type": ["string", "number", "boolean"], "pattern": "^[^./\\n\\t][^/\\n\\t]*$"})";

void add_run(KeyTable<TopKeys>& t, const Vocabulary& v) {
  t.section(
       "loss", "what is minimised",
       [&v](TopKeys& s, const Node& n, Diagnostics& d) {
         s.loss = read_choice("loss", n, v.losses, d);
       },
       one_of("a loss", "losses"))
      .section(
          "optimizer", "what changes the weights",
          [&v](TopKeys& s, const Node& n, Diagnostics& d) {
            s.optimizer = read_choice("optimizer", n, v.optimizers, d);
          },
          one_of("an optimizer", "optimizers"))
      .optional_section("schedule", "how the learning rate changes, with a warm-up in front",
                        [&v](TopKeys& s, const Node& n, Diagnostics& d) {
                          read_schedule(s.schedule, n, v.schedules, d);
                        },
                        {.kind = "a schedule",
                         .fallback = "constant",
                         .keys = ScheduleKeys::keys().describe(),
                         .words = "schedules"})
      .optional_section(
          "clip_grad_norm", "scale all gradients so that their norm is at most this",
          [](TopKeys& s, const Node& n, Diagnostics& d) {
            const ClipKeys c = ClipKeys::keys().decode(n, {"'clip_grad_norm'", n.where}, d);
            s.clip.max_norm = c.max_norm;
            s.clip.norm_type = c.norm_type;
          },
          map_of<ClipKeys>("none", true))
      .optional("clip_grad_value", &TopKeys::clip_grad_value,
                "cut each element of the gradients to at most this", kPositive)
      .optional("epochs", &TopKeys::epochs,
                "passes over the data; 1 where 'steps' is not given either", kPositive)
      .optional(
          "steps", &TopKeys::steps,
          "steps of the optimizer; beside 'epochs' the one that is reached first ends the run",
          kPositive)
      .optional("sync_batch_norm", &TopKeys::sync_batch_norm,
                "whether batch normalisation takes the statistics of all replicas, not of each")
      .optional("accumulate", &TopKeys::accumulate, "micro-batches that make one global batch",
                kMicroBatches);
}

void add_machine(KeyTable<TopKeys>& t, const Vocabulary& v) {
  t.choice("device", &TopKeys::device, {"auto", "cpu", "cuda"},
           "where it runs; auto: the CPU, since GPUs are new here")
      .optional_section(
          "devices", "how many devices, or which: [cpu:0, cpu:1]",
          [](TopKeys& s, const Node& n, Diagnostics& d) { read_devices(s.devices, n, d); },
          {.kind = "an integer or a list", .schema = kDevicesSchema})
      .optional("cores", &TopKeys::cores,
                "worker threads of each CPU device; none: the machine's, shared evenly",
                Range{"must be between 1 and 4096", 1, 4096})
      .optional("memory_limit", &TopKeys::memory_limit,
                "MiB of weights, gradients, optimizer states and activations that a device may "
                "hold; a run that needs more is refused; none: what the machine has",
                kPositive)
      .optional("graphs", &TopKeys::graphs,
                "whether a GPU gets whole steps at a time, captured as CUDA graphs, or each kernel "
                "by itself")
      .optional_section("parallel", "how several devices share the work",
                        [&v](TopKeys& s, const Node& n, Diagnostics& d) {
                          s.parallel = read_choice("parallel mode", n, v.modes, d);
                        },
                        {.kind = "a mode", .fallback = "single", .words = "modes"})
      .optional_section("precision", "of the arithmetic; mixed: halves where autocast has them",
                        [&v](TopKeys& s, const Node& n, Diagnostics& d) {
                          s.precision = read_choice("precision", n, v.precisions, d);
                        },
                        {.kind = "a precision", .fallback = "fp32", .words = "precisions"})
      .choice("random", &TopKeys::random, {"counter", "torch"},
              "dropout masks: the same in every mode, or torch's own (single mode)")
      .optional_section(
          "reproducible", "the same bits for any number of devices and cores",
          [](TopKeys& s, const Node& n, Diagnostics& d) {
            const auto r = ReproducibleKeys::keys().decode(n, {"'reproducible'", n.where}, d);
            if (r.shards > 0) s.reproducible_shards = r.shards;
          },
          map_of<ReproducibleKeys>("none", true));
}

void read_name(TopKeys& s, const Node& n, Diagnostics& d) {
  const bool word = n.kind == Node::Kind::scalar && !n.text.empty() && !n.text.starts_with('.') &&
                    n.text.find('/') == n.text.npos && n.text.find_first_of("\n\t") == n.text.npos;
  if (!word)
    d.error(n.where, "'name' must be a word that can name a folder");
  else
    s.name = n.text;
}

}  // namespace

KeyTable<DataSpec> data_keys(const Vocabulary& v) {
  KeyTable<DataSpec> t;
  t.section(
       "dataset", "where samples come from",
       [&v](DataSpec& s, const Node& n, Diagnostics& d) {
         s.dataset = read_choice("dataset", n, v.datasets, d);
       },
       one_of("a dataset", "datasets"))
      .optional_section(
          "transforms", "changes of each sample, first to last; random ones only while training",
          [&v](DataSpec& s, const Node& n, Diagnostics& d) {
            s.transforms = read_choices("transform", n, v.transforms, d);
          },
          some_of("a list of transforms", "transforms", "[]"))
      .optional_section(
          "target_transforms", "changes of each target, first to last",
          [&v](DataSpec& s, const Node& n, Diagnostics& d) {
            s.target_transforms = read_choices("target transform", n, v.target_transforms, d);
          },
          some_of("a list of target transforms", "target_transforms", "[]"))
      .optional("batch_size", &DataSpec::batch_size,
                "samples of a step over all replicas together; this or batch_size_per_replica",
                kCount)
      .optional("batch_size_per_replica", &DataSpec::batch_size_per_replica,
                "samples of a step on each replica; this or batch_size", kCount)
      .optional("shuffle", &DataSpec::shuffle, "whether samples come in random order")
      .optional("reshuffle", &DataSpec::reshuffle,
                "whether each epoch has its own order; false: all use the first epoch's")
      .optional("drop_last", &DataSpec::drop_last, "leave out a smaller last batch")
      .optional("pad", &DataSpec::pad,
                "ddp: repeat the first samples so that all ranks have equally many, as torch does")
      .optional("limit", &DataSpec::limit, "use only the first N samples; 0: all", kNotNegative);
  return t;
}

KeyTable<TopKeys> top_keys(const Vocabulary& v) {
  const auto ignore = [](TopKeys&, const Node&, Diagnostics&) {};
  KeyTable<TopKeys> t;
  t.optional("version", &TopKeys::version, "of the language",
             Range{"must be 1, the version this dptrain reads", 1, 1})
      .optional_section("name", "of the run; none: the file's without its ending", read_name,
                        {.kind = "text", .type = KeyKind::text, .schema = kNameSchema})
      .optional("seed", &TopKeys::seed, "as torch.manual_seed: initial weights and orders")
      .optional_section(
          "extends",
          "a base file whose keys this file overrides; the path is relative to this file",
          [](TopKeys&, const Node& n, Diagnostics& d) {
            d.error(n.where, "'extends' is possible only in a file, not on the command line");
          },
          {.kind = "a path", .type = KeyKind::text})
      .section("data", "samples, their order and their batches",
               [&v](TopKeys& s, const Node& n, Diagnostics& d) {
                 if (n.kind == Node::Kind::map)
                   s.data = data_keys(v).decode(n, {"'data'", n.where}, d);
                 else
                   d.error(n.where, "'data' must be a map of keys");
                 s.data.where = n.where;
               },
               {.kind = "a map", .keys = data_keys(v).describe()})
      .optional_section("blocks", "lists of layers with parameters, to be used in the model",
                        ignore, {.kind = "a map of names and blocks", .words = "blocks"})
      .section("model", "the layers, first to last", ignore,
               {.kind = "a list of layers", .words = "layers", .many = true})
      .path("initial_weights", &TopKeys::initial_weights,
            "a safetensors file to start from; none: torch's initialisation");
  add_run(t, v);
  add_machine(t, v);
  t.optional_section(
       "evaluate", "evaluate on the test set: true, or how often",
       [](TopKeys& s, const Node& n, Diagnostics& d) { read_evaluate(s.evaluate, n, d); },
       {.kind = "true, false or a map",
        .fallback = "false",
        .type = KeyKind::boolean,
        .keys = EvaluateKeys::keys().describe()})
      .optional_section("save", "checkpoints for `--resume`: false, or how often",
                        [](TopKeys& s, const Node& n, Diagnostics& d) { read_save(s.save, n, d); },
                        {.kind = "true, false or a map",
                         .fallback = "true",
                         .type = KeyKind::boolean,
                         .keys = SaveKeys::keys().describe()})
      .optional_section(
          "log", "what is recorded during the run",
          [](TopKeys& s, const Node& n, Diagnostics& d) {
            if (n.kind == Node::Kind::map)
              s.log = LogKeys::keys().decode(n, {"'log'", n.where}, d);
            else
              d.error(n.where, "'log' must be a map of keys");
          },
          map_of<LogKeys>("the defaults"))
      .optional("out", &TopKeys::out,
                "the run's folder, relative to the working directory; none: the next number in "
                "runs/NAME, as runs/NAME/3");
  return t;
}

std::vector<std::string_view> keys_in(const KeyDoc& section, const Vocabulary& vocabulary) {
  std::vector<std::string_view> out;
  const auto add = [&](const std::vector<KeyDoc>& keys) {
    for (const KeyDoc& k : keys) out.push_back(k.name);
  };
  add(section.keys);
  if (section.words.empty() || section.words == "blocks" || section.many) return out;
  for (const Nameable* word : words_of(vocabulary, section.words)) add(word->describe());
  return out;
}

const Words& words_of(const Vocabulary& v, std::string_view list) {
  if (list == "losses") return v.losses;
  if (list == "optimizers") return v.optimizers;
  if (list == "schedules") return v.schedules;
  if (list == "datasets") return v.datasets;
  if (list == "transforms") return v.transforms;
  if (list == "target_transforms") return v.target_transforms;
  if (list == "modes") return v.modes;
  if (list == "precisions") return v.precisions;
  if (list == "initialisations") return v.initialisations;
  require(list == "layers", "the vocabulary has such a list");
  return v.layers;
}

const std::vector<ChoicePlace>& choice_places() {
  static const std::vector<ChoicePlace> places = {
      {{"loss"}, "losses", {}},
      {{"optimizer"}, "optimizers", {}},
      {{"schedule"}, "schedules", ScheduleKeys::keys().names()},
      {{"parallel"}, "modes", {}},
      {{"precision"}, "precisions", {}},
      {{"data", "dataset"}, "datasets", {}},
      {{"data", "transforms"}, "transforms", {}, true},
      {{"data", "target_transforms"}, "target_transforms", {}, true}};
  return places;
}

}  // namespace dpt
