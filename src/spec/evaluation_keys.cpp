#include "spec/evaluation_keys.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "spec/metric_name.h"

namespace dpt {
namespace {

constexpr Range kCount{.text = "must be between 1 and 2^31", .low = 1, .high = 2147483648};

constexpr const char* kMetricPattern =
    "^(loss|top[1-9][0-9]*|(accuracy|precision|recall|f1|auc)([.].+)?|confusion_matrix|perplexity|"
    "mae|mse|rmse|mape|r2)$";

bool is_metric(std::string_view name) {
  return is_number_metric(name) || name == "confusion_matrix";
}

// With the set or without: evaluations during training have one set.
constexpr const char* kRankedPattern =
    "^((validation|test)[.])?(loss|top[1-9][0-9]*|(accuracy|precision|recall|f1|auc)([.].+)?|"
    "perplexity|mae|mse|rmse|mape|r2)$";

// Whether weights can be chosen by the metric: it has one number.
bool has_number(std::string_view name) {
  return set_of(name) != "train" && is_number_metric(without_set(name));
}

constexpr const char* kRankedNames =
    "loss, accuracy, topK (such as top5), precision, recall, f1, auc, perplexity, mae, mse, rmse, "
    "mape or "
    "r2, also with the evaluated set, as in validation.loss";

// Reads a metric of the evaluations. "none": the text is kept.
void read_ranked(std::string_view key, const Node& n, std::string& out, Diagnostics& d) {
  if (n.kind == Node::Kind::null) return;
  if (n.kind == Node::Kind::scalar && (n.text == "none" || has_number(n.text))) {
    out = n.text;
    return;
  }
  const std::string meant = n.kind == Node::Kind::scalar ? current_name(n.text) : "";
  d.error(n.where,
          fmt::format("'{}' must be a metric with one number: {}{}", key, kRankedNames,
                      has_number(meant) ? fmt::format("; did you mean '{}'?", meant) : ""));
}

void unknown_metric(const Located<std::string>& name, Diagnostics& d) {
  d.unknown("metric", name, "",
            {"loss", "accuracy", "top5", "precision", "recall", "f1", "auc", "confusion_matrix",
             "perplexity", "mae", "mse", "rmse", "mape", "r2"});
}

struct EvaluateKeys : EvaluateSpec {
  static void read_metrics(EvaluateKeys& out, const Node& n, Diagnostics& d) {
    if (n.kind == Node::Kind::null) return;
    const std::vector<Node> one = {n};
    for (const Node& item : n.kind == Node::Kind::list ? n.items : one) {
      const Located<std::string> name{item.text, item.where};
      if (item.kind != Node::Kind::scalar)
        d.error(item.where, "'metrics' must be a list of names, such as [accuracy, f1]");
      else if (!is_metric(item.text))
        unknown_metric(name, d);
      else if (std::ranges::find(out.metrics, item.text, &Located<std::string>::value) !=
               out.metrics.end())
        d.error(item.where, fmt::format("metric '{}' is named twice", item.text));
      else
        out.metrics.push_back(name);
    }
  }

  static KeyTable<EvaluateKeys> keys() {
    return KeyTable<EvaluateKeys>()
        .optional("every", &EvaluateKeys::every, "epochs between two evaluations", kPositive)
        .usage("", "evaluate: {every: 5}")
        .optional("every_steps", &EvaluateKeys::every_steps,
                  "steps between two evaluations, instead of `every`; 0: evaluate by epochs",
                  kNotNegative)
        .usage("", "evaluate: {every_steps: 500}")
        .optional("batch_size", &EvaluateKeys::batch_size, "samples per batch of an evaluation",
                  kCount)
        .usage("DataLoader(batch_size)", "evaluate: {batch_size: 500}")
        .optional_section(
            "metrics",
            "metrics to compute in addition to the loss: accuracy, topK (such as top5), precision, "
            "recall, f1, auc, confusion_matrix, perplexity, mae, mse, rmse, mape, r2; f1.cat: "
            "that of one class or label; []: the accuracy, if targets are classes",
            read_metrics,
            {.kind = "a list of metrics",
             .fallback = "[]",
             .type = KeyKind::texts,
             .schema = {{"type", Json::array({"array", "string"})},
                        {"pattern", kMetricPattern},
                        {"items", {{"type", "string"}, {"pattern", kMetricPattern}}}}})
        .usage("torcheval.metrics", "evaluate: {metrics: [accuracy, top5, f1]}");
  }

  static void check(const EvaluateKeys& e, const Owner& owner, Diagnostics& d) {
    if (e.every_steps > 0 && owner.given("every"))
      d.error(owner.at("every_steps"), "'every' and 'every_steps' cannot be used together");
  }
};

struct SaveKeys : SaveSpec {
  static void read_best(SaveKeys& out, const Node& n, Diagnostics& d) {
    read_ranked("best", n, out.best, d);
  }

  static KeyTable<SaveKeys> keys() {
    return KeyTable<SaveKeys>()
        .optional("every_epochs", &SaveKeys::every_epochs,
                  "epochs between two checkpoints; 0: only when the run ends or is stopped",
                  kNotNegative)
        .usage("", "save: {every_epochs: 5}")
        .optional("every_steps", &SaveKeys::every_steps,
                  "steps between two checkpoints, in addition to every_epochs; 0: none",
                  kNotNegative)
        .usage("", "save: {every_steps: 1000}")
        .optional("every_minutes", &SaveKeys::every_minutes,
                  "minutes between two checkpoints, in addition to the others; 0: none",
                  kNotNegative)
        .usage("", "save: {every_minutes: 30}")
        .optional("keep", &SaveKeys::keep, "number of newest checkpoints to keep", kCount)
        .usage("", "save: {keep: 3}")
        .optional_section(
            "best",
            "metric of the evaluations by which the best weights are kept, in best.safetensors; "
            "none: they are not kept",
            read_best,
            {.kind = "a metric or none",
             .fallback = "loss with `data.validation`, else none",
             .type = KeyKind::text,
             .schema = {{"type", "string"}, {"pattern", fmt::format("^none$|{}", kRankedPattern)}}})
        .usage("ModelCheckpoint(monitor)", "save: {best: accuracy}");
  }
};

struct EarlyStopKeys : EarlyStopSpec {
  static void read_metric(EarlyStopKeys& out, const Node& n, Diagnostics& d) {
    std::string metric;
    read_ranked("metric", n, metric, d);
    if (metric != "none") out.metric = metric;
  }

  static KeyTable<EarlyStopKeys> keys() {
    return KeyTable<EarlyStopKeys>()
        .required("patience", &EarlyStopKeys::patience,
                  "evaluations without improvement after which the run ends", kPositive)
        .usage("EarlyStopping(patience)", "early_stop: {patience: 5}")
        .optional_section(
            "metric", "metric of the evaluations that must improve; none: the loss", read_metric,
            {.kind = "a metric or none",
             .fallback = "loss",
             .type = KeyKind::text,
             .schema = {{"type", "string"}, {"pattern", fmt::format("^none$|{}", kRankedPattern)}}})
        .usage("EarlyStopping(monitor)", "early_stop: {patience: 5, metric: accuracy}")
        .optional("min_delta", &EarlyStopKeys::min_delta,
                  "a smaller change of the metric does not count as an improvement", kNotNegative)
        .usage("EarlyStopping(min_delta)", "early_stop: {patience: 5, min_delta: 0.001}");
  }
};

void read_validation(ValidationSpec& out, const Node& n, const Registry& datasets, Diagnostics& d) {
  out.where = n.where;
  double fraction = 0;
  if (n.kind != Node::Kind::scalar || !parse_scalar(n, fraction)) {
    out.dataset = read_choice("dataset", n, datasets, d);
  } else if (!(fraction > 0 && fraction < 1)) {
    d.error(n.where,
            "'validation' must be a part of the training set between 0 and 1, such as 0.1, or a "
            "data set");
  } else {
    out.fraction = fraction;
  }
}

// The texts of a list, or that of a single value.
std::vector<std::string> texts_of(const Node& n) {
  if (n.kind != Node::Kind::list) return {n.text};
  std::vector<std::string> out;
  for (const Node& i : n.items) out.push_back(i.text);
  return out;
}

bool is_default(const KeyDoc& key, const Node& value) {
  const std::string text = fmt::format("{}", fmt::join(texts_of(value), ", "));
  return key.fallback == text || key.fallback == fmt::format("[{}]", text);
}

// The value of a key; null: it is not given, or unset.
const Node* given(const Node& settings, std::string_view key) {
  const Node* const value = settings.find(key);
  return value && value->kind != Node::Kind::null ? value : nullptr;
}

// Gives the validation set the training set's value of a key.
void share(const KeyDoc& key, const Node& training, Node& validation, Diagnostics& d) {
  const Node *const of = given(training, key.name), *const own = given(validation, key.name);
  if (!own && of) {
    std::erase_if(validation.entries, [&](const auto& e) { return e.key.value == key.name; });
    validation.entries.push_back({.key = {std::string(key.name), of->where}, .value = *of});
  }
  if (!own || (of ? texts_of(*of) == texts_of(*own) : is_default(key, *own))) return;
  const std::string theirs =
      of ? fmt::format("has {} in line {}", fmt::join(texts_of(*of), ", "), of->where.line)
         : fmt::format("leaves it out (default: {})", key.fallback);
  d.error(own->where,
          fmt::format("'{0}' of the validation set is that of the training set, which {1}; delete "
                      "'{0}' here, or give both the same value",
                      key.name, theirs));
}

void read_evaluate(EvaluateSpec& out, const Node& n, Diagnostics& d) {
  if (n.kind == Node::Kind::map)
    out = EvaluateKeys::keys().decode(n, {"'evaluate'", n.where}, d), out.on = true;
  else if (n.kind != Node::Kind::scalar || !parse_scalar(n, out.on))
    d.error(n.where,
            "'evaluate' must be true, false or a map of 'every', 'every_steps', 'batch_size' and "
            "'metrics'");
  out.where = n.where;
}

void read_save(SaveSpec& out, const Node& n, Diagnostics& d) {
  if (n.kind == Node::Kind::map)
    out = SaveKeys::keys().decode(n, {"'save'", n.where}, d);
  else if (n.kind != Node::Kind::scalar || !parse_scalar(n, out.on))
    d.error(n.where,
            "'save' must be true, false or a map of 'every_epochs', 'every_steps', "
            "'every_minutes', 'keep' and 'best'");
}

}  // namespace

void add_validation_key(KeyTable<DataSpec>& t, const Registries& v) {
  t.optional_section(
       "validation",
       "samples for evaluations during training, which are not trained on: a part of the training "
       "set, or a separate data set, whose training samples are used",
       [&v](DataSpec& s, const Node& n, Diagnostics& d) {
         read_validation(s.validation, n, v.datasets, d);
       },
       {.kind = "a number between 0 and 1, or a dataset",
        .fallback = "none",
        .registry = "datasets",
        .schema = {{"if", {{"type", "number"}}},
                   {"then", {{"exclusiveMinimum", 0}, {"exclusiveMaximum", 1}}},
                   {"else", {{"$ref", "#/definitions/dataset"}}}}})
      .usage("torch.utils.data.random_split", "data: {validation: 0.1}");
}

Node with_shared_keys(const Node& data, const Registry& datasets, Diagnostics& d) {
  Node out = data;
  const Node* const training = out.find("dataset");
  Node* const validation = out.find("validation");
  if (!training || !validation || training->entries.size() != 1 || validation->entries.size() != 1)
    return out;
  const auto& [type, settings] = training->entries[0];
  auto& [own_type, own] = validation->entries[0];
  const RegistryEntry* const entry = find_entry(datasets, type.value);
  if (!entry || own_type.value != type.value) return out;
  const std::vector<KeyDoc> keys = entry->describe();
  if (own.kind == Node::Kind::scalar) {  // the first key's value
    Node map{.kind = Node::Kind::map, .where = own.where};
    map.entries.push_back({.key = {std::string(keys[0].name), own.where}, .value = own});
    own = std::move(map);
  }
  for (const KeyDoc& key : keys)
    if (key.shared && own.kind == Node::Kind::map) share(key, settings, own, d);
  return out;
}

void add_end_keys(KeyTable<TopKeys>& t) {
  t.optional("minutes", &TopKeys::minutes,
             "minutes after which the run is stopped with a checkpoint, counted from zero again "
             "when it is resumed; none: no limit",
             kPositive)
      .usage("Trainer(max_time)", "minutes: 30")
      .optional_section(
          "early_stop", "ends the run when evaluations have stopped improving",
          [](TopKeys& s, const Node& n, Diagnostics& d) {
            s.early_stop = EarlyStopKeys::keys().decode(n, {"'early_stop'", n.where}, d);
            s.early_stop.where = n.where;
          },
          {.kind = "a map",
           .fallback = "none",
           .keys = EarlyStopKeys::keys().describe(),
           .main = true})
      .usage("EarlyStopping", "early_stop: 5");
}

void add_evaluation_keys(KeyTable<TopKeys>& t) {
  t.optional_section(
       "evaluate",
       "whether, or how often, to evaluate: on `data.validation` if it is given, and then on the "
       "test set at the end of the run; else on the test set",
       [](TopKeys& s, const Node& n, Diagnostics& d) { read_evaluate(s.evaluate, n, d); },
       {.kind = "true, false or a map",
        .fallback = "false",
        .type = KeyKind::boolean,
        .keys = EvaluateKeys::keys().describe()})
      .usage("model.eval()", "evaluate: true")
      .optional_section("save",
                        "whether, or how often, to save checkpoints for `--resume`, and by which "
                        "metric the best weights are kept",
                        [](TopKeys& s, const Node& n, Diagnostics& d) { read_save(s.save, n, d); },
                        {.kind = "true, false or a map",
                         .fallback = "true",
                         .type = KeyKind::boolean,
                         .keys = SaveKeys::keys().describe()})
      .usage("torch.save", "save: false");
}

}  // namespace dpt
