#include "data/sample_form.h"

#include <optional>
#include <utility>

#include "base/fail.h"
#include "data/batch_loader.h"
#include "data/channel_scaling.h"
#include "formats/json.h"

namespace dpt {
namespace {

Json json_of(const TensorDesc& sample) {
  return {{"type", name_of(sample.dtype)}, {"shape", Json::array_of(sample.shape.extents())}};
}

Json json_of(const SetRecord& set) {
  return {{"samples", set.samples}, {"fingerprint", set.fingerprint}};
}

Json json_of(const std::vector<ColumnEncoding>& encodings) {
  Json out = Json::array();
  for (const ColumnEncoding& e : encodings) {
    Json one = Json::object();
    if (!e.categories.empty()) one.add("categories", Json::array_of(e.categories));
    if (e.fills) one.add("fill", e.fill);
    if (e.mean != 0) one.add("mean", e.mean);
    if (e.std != 1) one.add("std", e.std);
    out.push(std::move(one));
  }
  return out;
}

// Reads the members of data.json. Anything missing or of another type ends in one message.
class FormReader {
 public:
  FormReader(const Json& json, const std::string& path) : json_(json), path_(path) {}

  SampleForm run() const {
    SampleForm out{.stored = desc("sample"),
                   .target = desc("target"),
                   .classes = number(json_, "classes"),
                   .tokens = number(json_, "tokens"),
                   .class_names = texts(json_, "class_names")};
    if (const Json* columns = json_.find("columns"))
      out.columns = {.names = texts(*columns, "names"),
                     .header = columns->find("header") && *columns->find("header") == Json(true),
                     .inputs = indices(*columns, "inputs"),
                     .targets = indices(*columns, "targets"),
                     .encodings = encodings(*columns)};
    if (const Json* channels = json_.find("channels"))
      for (const Json& item : channels->items()) {
        out.channels.push_back({.mean = real(item, "mean", 0), .std = real(item, "std", 1)});
        if (out.channels.back().std == 0) refuse("std");
      }
    for (const size_t b : numbers(json_, "characters", 255))
      out.characters += static_cast<char>(static_cast<unsigned char>(b));
    if (const Json* records = json_.find("trained_on"))
      for (const Json& item : records->items()) out.trained_on.push_back(record(item));
    check(out);
    return out;
  }

 private:
  [[noreturn]] void refuse(std::string_view key) const {
    fail(Fault::data,
         "{} is damaged: '{}' is missing or wrong; remove the file, and dptrain reads the training "
         "data instead",
         path_, key);
  }

  SetRecord set_record(const Json& of) const {
    return {.samples = number(of, "samples"), .fingerprint = text(of, "fingerprint")};
  }

  DataRecord record(const Json& of) const {
    DataRecord out{.training = set_record(of), .split = text(of, "split")};
    if (const Json* validation = of.find("validation")) out.validation = set_record(*validation);
    return out;
  }

  int64_t number(const Json& of, std::string_view key) const {
    const Json* value = of.find(key);
    if (!value) return 0;
    const std::optional<int64_t> n = value->integer();
    if (!n || *n < 0) refuse(key);
    return *n;
  }

  std::vector<size_t> numbers(const Json& of, std::string_view key, int64_t most) const {
    std::vector<size_t> out;
    const Json* value = of.find(key);
    if (!value) return out;
    for (const Json& item : value->items()) {
      const std::optional<int64_t> n = item.integer();
      if (!n || *n < 0 || *n > most) refuse(key);
      out.push_back(static_cast<size_t>(*n));
    }
    return out;
  }

  std::vector<size_t> indices(const Json& columns, std::string_view key) const {
    const Json* names = columns.find("names");
    return numbers(columns, key, names ? static_cast<int64_t>(names->size()) - 1 : -1);
  }

  // "encodings": one object per input column.
  std::vector<ColumnEncoding> encodings(const Json& columns) const {
    std::vector<ColumnEncoding> out;
    const Json* value = columns.find("encodings");
    if (!value) return out;
    for (const Json& item : value->items()) {
      const Json* const fill = item.find("fill");
      out.push_back({.categories = texts(item, "categories"),
                     .fills = fill != nullptr,
                     .fill = real(item, "fill", 0),
                     .mean = real(item, "mean", 0),
                     .std = real(item, "std", 1)});
      if (out.back().std == 0) refuse("std");
    }
    const Json* inputs = columns.find("inputs");
    if (!inputs || inputs->size() != out.size()) refuse("encodings");
    return out;
  }

  double real(const Json& of, std::string_view key, double otherwise) const {
    const Json* value = of.find(key);
    if (!value) return otherwise;
    const std::optional<double> x = value->number();
    if (!x) refuse(key);
    return *x;
  }

  std::string text(const Json& of, std::string_view key) const {
    const Json* value = of.find(key);
    if (!value) return "";
    if (!value->text()) refuse(key);
    return *value->text();
  }

  std::vector<std::string> texts(const Json& of, std::string_view key) const {
    std::vector<std::string> out;
    const Json* value = of.find(key);
    if (!value) return out;
    for (const Json& item : value->items()) {
      if (!item.text()) refuse(key);
      out.push_back(*item.text());
    }
    return out;
  }

  TensorDesc desc(std::string_view key) const {
    const Json* value = json_.find(key);
    const Json* type = value ? value->find("type") : nullptr;
    const Json* shape = value ? value->find("shape") : nullptr;
    if (!type || !type->text() || !shape || !shape->is_array()) refuse(key);
    std::vector<int64_t> extents;
    for (const Json& item : shape->items()) {
      const std::optional<int64_t> n = item.integer();
      if (!n || *n < 0 || *n > kMostExtent) refuse(key);
      extents.push_back(*n);
    }
    if (extents.size() >= Shape::kMaxRank) refuse(key);  // a batch has one dimension more
    for (const DType t : {DType::u8, DType::f32, DType::i32})
      if (name_of(t) == *type->text()) return {t, Shape(extents)};
    refuse(key);
  }

  void check(const SampleForm& form) const {
    if (!form.channels.empty() && form.channels.size() != scaled_channels(form.stored.shape))
      refuse("channels");
    if (!form.class_names.empty() && std::ssize(form.class_names) != form.classes)
      refuse("class_names");
    if (!form.characters.empty() && std::ssize(form.characters) != form.tokens)
      refuse("characters");
  }

  static constexpr int64_t kMostExtent = 2147483647;

  const Json& json_;
  const std::string& path_;
};

// A loader of one sample whose values do not matter.
BatchLoader loader_of(const SampleForm& form, std::span<const Choice> transforms) {
  Dataset d;
  d.inputs = {.desc = {form.stored.dtype, form.stored.shape.batch(1)}};
  d.targets = {.desc = {DType::i32, {1}}};
  d.made = false;
  return BatchLoader(std::move(d), transforms, {}, reference_gathers(), Split::test);
}

}  // namespace

SampleForm form_of(const Dataset& dataset) {
  return {.stored = {dataset.inputs.desc.dtype, dataset.inputs.sample()},
          .target = {dataset.targets.desc.dtype, dataset.targets.sample()},
          .classes = dataset.classes,
          .tokens = dataset.tokens,
          .class_names = dataset.class_names,
          .columns = dataset.columns,
          .channels = dataset.channels,
          .characters = dataset.characters};
}

std::vector<std::string> as_stored(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  const std::optional<Json> stored = Json::parse(Json::array_of(names).dump());
  for (const Json& name : stored->items()) out.push_back(*name.text());
  return out;
}

Dataset fitted_by(const SampleForm& form) {
  Dataset out;
  out.classes = form.classes;
  out.tokens = form.tokens;
  out.class_names = form.class_names;
  out.columns = form.columns;
  out.channels = form.channels;
  out.characters = form.characters;
  out.made = false;
  return out;
}

bool same_columns(const SampleForm& a, const SampleForm& b) {
  const auto inputs = [](const TableColumns& columns) {
    std::vector<std::string> out;
    for (const size_t i : columns.inputs) out.push_back(columns.names[i]);
    return out;
  };
  return inputs(a.columns) == inputs(b.columns) &&
         as_stored(a.class_names) == as_stored(b.class_names);
}

bool same_fit(const SampleForm& a, const SampleForm& b) {
  return same_columns(a, b) && a.columns.encodings == b.columns.encodings &&
         a.channels == b.channels && a.characters == b.characters;
}

std::string to_json(const SampleForm& form) {
  Json out{{"sample", json_of(form.stored)}, {"target", json_of(form.target)}};
  if (form.classes > 0) out.add("classes", form.classes);
  if (!form.class_names.empty()) out.add("class_names", Json::array_of(form.class_names));
  if (form.tokens > 0) out.add("tokens", form.tokens);
  if (!form.characters.empty()) {
    Json bytes = Json::array();
    for (const char c : form.characters) bytes.push(static_cast<unsigned char>(c));
    out.add("characters", std::move(bytes));
  }
  if (!form.channels.empty()) {
    Json channels = Json::array();
    for (const ChannelScaling& c : form.channels)
      channels.push(Json{{"mean", c.mean}, {"std", c.std}});
    out.add("channels", std::move(channels));
  }
  if (const TableColumns& columns = form.columns; !columns.names.empty()) {
    Json of{{"names", Json::array_of(columns.names)},
            {"header", columns.header},
            {"inputs", Json::array_of(columns.inputs)},
            {"targets", Json::array_of(columns.targets)}};
    if (!columns.encodings.empty()) of.add("encodings", json_of(columns.encodings));
    out.add("columns", std::move(of));
  }
  if (!form.trained_on.empty()) {
    Json records = Json::array();
    for (const DataRecord& r : form.trained_on) {
      Json one = json_of(r.training);
      if (!r.split.empty()) one.add("split", r.split);
      if (r.validation) one.add("validation", json_of(*r.validation));
      records.push(std::move(one));
    }
    out.add("trained_on", std::move(records));
  }
  return out.lines();
}

SampleForm form_from_json(std::string_view text, const std::string& path) {
  JsonError error;
  const std::optional<Json> json = Json::parse(text, {}, &error);
  if (!json)
    fail(Fault::data,
         "{} is damaged: {} at byte {}; remove the file, and dptrain reads the "
         "training data instead",
         path, error.what, error.offset);
  return FormReader(*json, path).run();
}

TensorDesc input_of(const SampleForm& form, std::span<const Choice> transforms) {
  return loader_of(form, transforms).input();
}

std::vector<float> byte_values(const SampleForm& form, std::span<const Choice> transforms) {
  const BatchLoader loader = loader_of(form, transforms);
  if (loader.input().shape != form.stored.shape) return {};
  return loader.stored_inputs().values;
}

}  // namespace dpt
