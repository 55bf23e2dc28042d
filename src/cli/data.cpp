// dptrain data SPEC: what the data sets of a run hold.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/files.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/data_text.h"
#include "cli/spec_argument.h"
#include "cli/terminal_text.h"
#include "data/contact_sheet.h"
#include "data/sampler.h"
#include "data/tables.h"
#include "formats/png.h"
#include "session/load_data.h"

namespace dpt::commands {
namespace {

constexpr int64_t kMostSamplesRead = 1000;  // samples whose values are read one by one

// The training samples in the order of a first epoch, as with `reproducible`.
Order first_samples(const SessionData& data, const Spec& spec, int64_t most) {
  const auto seed = static_cast<uint64_t>(spec.seed);
  Order out;
  if (data.weighted) {
    Generator generator(seed);
    out = data.weighted->order(generator, true);
  } else {
    out = reproducible_order(data.train_samples(), spec.data.shuffle, seed, 0);
  }
  const auto count = static_cast<size_t>(std::min(most, std::ssize(out.indices)));
  out.indices.resize(count);
  if (data.weighted) out.repeats.resize(count);
  if (!data.train_rows.empty())
    for (uint32_t& row : out.indices) row = data.train_rows[row];
  return out;
}

// The class of a sample, or its first value.
std::string label_of(const Dataset& d, uint32_t row) {
  if (d.targets.sample().elements() == 0) return "";
  const auto first = static_cast<size_t>(row) * static_cast<size_t>(d.targets.step());
  if (d.classes == 0) return fmt::format("{:.3g}", values_of<float>(d.targets)[first]);
  if (d.targets.sample().rank() > 0) return "";  // one per pixel
  const int32_t c = values_of<int32_t>(d.targets)[first];
  const bool named = c >= 0 && std::cmp_less(c, d.class_names.size());
  return named ? d.class_names[static_cast<size_t>(c)] : std::to_string(c);
}

// The class with the largest share of one mixed sample: "0.72 coat".
std::string label_of_mixed(const SessionData& data, DrawnSamples sample, const AugmentSeed& seed) {
  std::vector<float> shares(static_cast<size_t>(data.loader->target().shape.elements()));
  data.loader->targets(sample, shares.data(), seed);
  const auto most = std::ranges::max_element(shares);
  const auto c = static_cast<size_t>(most - shares.begin());
  const std::vector<std::string>& names = data.train.class_names;
  return fmt::format("{:.2f} {}", *most, c < names.size() ? names[c] : std::to_string(c));
}

// Returns a line about the picture.
std::string write_sheet(const std::string& path, const SessionData& data, const Spec& spec,
                        int count) {
  const AugmentSeed seed{.seed = static_cast<uint64_t>(spec.seed), .epoch = 0};
  const Order order = first_samples(data, spec, count);
  const DrawnSamples samples = order.samples();
  std::vector<std::string> labels;
  for (size_t i = 0; i < samples.size(); ++i)
    labels.push_back(data.loader->mixes() ? label_of_mixed(data, samples.subspan(i, 1), seed)
                                          : label_of(data.train, samples[i].row));
  const ContactSheet sheet = contact_sheet(*data.loader, samples, labels, seed);
  write_text(path, png_file(sheet.pixels, sheet.height, sheet.width));
  return fmt::format("{}: {} x {} pixels, {} training samples after transforms\n", path,
                     sheet.width, sheet.height, samples.size());
}

// Of some training samples, evenly spread.
ValueRange range_after_transforms(const SessionData& data, const Spec& spec) {
  const BatchLoader& loader = *data.loader;
  const int64_t samples = data.train_samples(), count = std::min<int64_t>(samples, 256);
  std::vector<float> x(static_cast<size_t>(loader.input().shape.elements()));
  ValueRange out;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<uint32_t>(i * samples / count);
    const uint32_t row = data.train_rows.empty() ? at : data.train_rows[at];
    loader.inputs(std::span(&row, 1), x.data(),
                  {.seed = static_cast<uint64_t>(spec.seed), .epoch = 0});
    for (const float v : x) out.add(static_cast<double>(v));
  }
  return out;
}

SessionData data_of(const Spec& spec) {
  Diagnostics d;
  const RunSettings settings = make_settings(spec, d);
  if (d.ok()) {
    SessionData out = load_data(settings, {.runs = false}, d);
    if (d.ok()) return out;
  }
  throw BadSpec{d.render()};
}

struct DataArguments {
  SpecArgument spec;
  std::string sheet;
  int count = 64;
  bool json = false;
};

void declare_data(Arguments& arguments, DataArguments& given) {
  arguments.about(
      "Prints what the data of a spec holds: samples, classes, ranges of values, missing values.\n"
      "Of images in files at most 1000 of each set are decoded.");
  given.spec.add_to(arguments);
  arguments.text("--sheet FILE", given.sheet, {takes::file},
                 "a PNG file for a picture of the first training samples after transforms, images "
                 "only");
  arguments.number("--samples N", given.count, 1, 1024, "how many samples --sheet shows");
  arguments.flag("--json", given.json, "print JSON");
}

int run_data(DataArguments& given) {
  const LoadedSpec loaded = load(given.spec);
  const Spec& spec = loaded.spec;
  if (!given.sheet.empty()) refuse_overwriting(given.sheet, loaded);
  const SessionData data = data_of(spec);
  const size_t width = text_width();
  const DataTextStyle style{.columns = width > 0 ? width : 80, .ascii = !shows_utf8()};
  Json sets = Json::array();
  const auto print = [&](const std::string& name, const Dataset& set,
                         std::span<const uint32_t> rows) {
    const DataSummary summary = summarize(set, rows, kMostSamplesRead);
    if (given.json)
      sets.push(data_json(name, set, summary).on_line(0));
    else
      print_stdout("{}{}", name == "training" ? "" : "\n", data_text(name, set, summary, style));
    if (!rows.empty() && name != "training") return;  // a part of the training set
    for (const std::string& warning : set.warnings) print_stderr("warning: {}\n", warning);
    const std::string remarks = set.reader ? set.reader->remarks() : "";
    if (!remarks.empty()) print_stderr("warning: {} set: {}\n", name, remarks);
  };
  print("training", data.train, data.train_rows);
  if (!given.json && data.loader->input().dtype == DType::f32)
    print_stdout("{}",
                 transformed_text(data.loader->input(), range_after_transforms(data, spec), style));
  if (!given.json && spec.data.sampler == "weighted")
    print_stdout("{}", weighted_text(data.train_samples(), style));
  if (data.test) print(std::string(data.evaluated_set()), *data.test, data.test_rows);
  if (data.final_test) print("test", *data.final_test, {});
  if (given.json) print_stdout("{}\n", Json{{"sets", std::move(sets)}}.dump());
  if (given.sheet.empty()) return 0;
  const std::string written = write_sheet(given.sheet, data, spec, given.count);
  given.json ? print_stderr("{}", written) : print_stdout("\n{}", written);
  return 0;
}

}  // namespace

Command data() {
  return make_command("data", "print what the data of a spec holds", declare_data, run_data);
}

}  // namespace dpt::commands
