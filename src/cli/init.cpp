// dptrain init DATA: writes a commented spec that trains a small net on the user's data.
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/count.h"
#include "base/disk.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/installation.h"
#include "base/one_line.h"
#include "base/refuse_overwriting.h"
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/command_texts.h"
#include "cli/init_spec.h"
#include "cli/spec_argument.h"

namespace dpt::commands {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSchema = "schema/dptrain.schema.json";

// The JSON Schema for editors: of the source tree that the spec or the program lies in, or the
// installed one; else a file beside the spec.
std::string schema_for(const fs::path& folder) {
  std::error_code ignored;
  std::string up;
  for (int i = 0; i < 4; ++i, up += "../")
    if (fs::exists(folder / (up + std::string(kSchema)), ignored)) return up + std::string(kSchema);
  if (const std::string installed = installed_file(kSchema); !installed.empty()) return installed;
  const fs::path built = fs::path(program_folder()) / "../.." / kSchema;
  if (fs::exists(built, ignored)) return built.lexically_normal().string();
  return "dptrain.schema.json";
}

// A word for the file and the run: other characters than letters, digits and _ . - become _.
std::string word_of(std::string name) {
  for (char& c : name) {
    const bool usual = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.';
    if (!usual) c = '_';
  }
  name.erase(0, name.find_first_not_of("._-"));
  return name.empty() ? "model" : name;
}

// Replaces every `from` in the text.
std::string with_name(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// Writes the spec once it has passed the check: a spec that init leaves behind can be trained, and
// one that was there stays if the check fails.
void write_checked(const std::string& path, const std::string& text) {
  std::error_code ignored;
  const fs::file_status there = fs::symlink_status(path, ignored);
  if (fs::exists(there) && !fs::is_regular_file(there) && !fs::is_symlink(there))
    fail(Fault::spec, "{} is not a regular file; name another file with --out", path);
  Disk disk;
  write_file(disk, path, text, [&](const std::string& made) {
    try {
      const LoadedSpec loaded = load({.path = made, .overrides = {}});
      (void)open_session(loaded, {.runs = false, .sizes_only = true});
    } catch (const BadSpec& e) {
      throw BadSpec{with_name(e.text, made, path) +
                    "dptrain: no spec was written: the net that init chose does not fit this "
                    "data; write the spec as docs/specs.md shows\n"};
    }
  });
}

// Throws Error{spec} if the spec would replace a file of the data.
void check_output(const std::string& path, const DataGuess& guess, const std::string& data) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  refuse_overwriting(path, data);
  for (const DataGuess::Setting& s : guess.settings) {
    if (!s.is_path) continue;
    refuse_overwriting(path, s.value);
    if (!fs::is_directory(s.value, ignored)) continue;
    for (fs::recursive_directory_iterator at(s.value, ignored), end; !ignored && at != end;
         at.increment(ignored))
      if (fs::path(path).filename() == at->path().filename())
        refuse_overwriting(path, at->path().string());
  }
}

std::string described(const DataGuess& g) {
  std::string out;
  for (const std::string& note : g.notes) out += one_line(note) + "\n";
  out += fmt::format("training set: {}\n", g.train.description);
  if (!g.validation.empty()) out += fmt::format("validation set: {}\n", g.validation[0].value);
  if (!g.validation.empty() && !g.has_test()) return out;
  out += g.has_test() ? fmt::format("test set: {}\n", g.test->description)
         : splits_off_validation(g)
             ? "there is no test set: the spec splits off a tenth of the samples for validation\n"
             : "there is no test set, and there are too few samples to split some off: the spec "
               "trains without an evaluation\n";
  return out;
}

struct InitArguments {
  GuessQuery query;
  std::string out, header, missing, missing_targets, decimal;
  bool force = false;
};

void declare_init(Arguments& arguments, InitArguments& given) {
  arguments.about(
      "Writes a commented spec that trains a small net on your data: a CSV file, a folder of "
      "images "
      "(one\nfolder per class, or train/ and test/ with these), a folder of .npy or IDX files, a "
      "text file, or the name\nof a data set such as fashion_mnist.");
  arguments.required("DATA", given.query.path, {takes::file, entry_names("datasets")},
                     "a file, a folder or the name of a data set");
  arguments.text("-o,--out FILE", given.out, {takes::file},
                 "the spec; default: the name of the data with .yaml");
  arguments.text("--target NAME", given.query.target, {},
                 "the column of a CSV to predict, by name or number, or several: a,b,c; default: "
                 "the last");
  arguments.text("--header yes|no", given.header, {.words = {"yes", "no"}},
                 "whether the first line of a CSV names the columns; default: it looks so");
  arguments.text("--missing WORD", given.missing, {.words = {"drop", "mean", "class"}},
                 "drop: leave out lines of a CSV that lack a value; mean, the default: inputs get "
                 "the mean, and targets must have a value; class: a target such as None or NA is a "
                 "class of this name");
  arguments.text("--missing-targets WORD", given.missing_targets, {.words = {"drop"}},
                 "drop: leave out lines of a CSV whose target lacks a value, and only these");
  arguments.text("--decimal MARK", given.decimal, {.words = {".", ","}},
                 "the decimal mark of a CSV, . or ,; default: by its numbers");
  arguments.text("--exclude NAMES", given.query.exclude, {},
                 "columns of a CSV that are no inputs: a,b,c; default: indices, dates and texts");
  arguments.text("--categories NAMES", given.query.categories, {},
                 "columns of a CSV that are texts, one input per different text; default: those of "
                 "few texts");
  arguments.flag("--force", given.force, "overwrite the spec if it exists");
}

int run_init(InitArguments& given) {
  if (given.query.path.empty())
    fail(Fault::spec, "the name of the data is empty; name a file, a folder or a data set");
  if (!given.header.empty() && given.header != "yes" && given.header != "no")
    throw BadWords{fmt::format("init --header {}: write yes or no", given.header)};
  if (!given.missing.empty() && given.missing != "drop" && given.missing != "mean" &&
      given.missing != "class")
    throw BadWords{fmt::format("init --missing {}: write drop, mean or class", given.missing)};
  if (!given.missing_targets.empty() && given.missing_targets != "drop")
    throw BadWords{fmt::format("init --missing-targets {}: write drop", given.missing_targets)};
  if (!given.missing_targets.empty() && given.missing == "class")
    throw BadWords{
        "init --missing class takes missing targets as a class; leave out --missing-targets"};
  if (!given.decimal.empty() && given.decimal != "." && given.decimal != ",")
    throw BadWords{fmt::format("init --decimal {}: write . or ,", given.decimal)};
  if (!given.decimal.empty()) given.query.decimal = given.decimal[0];
  if (!given.header.empty())
    given.query.header =
        given.header == "yes" ? CsvFormat::HeaderLine::yes : CsvFormat::HeaderLine::no;
  given.query.drops_missing = given.missing == "drop";
  given.query.drops_missing_targets = !given.missing_targets.empty();
  given.query.fills_missing = given.missing == "mean";
  given.query.missing_is_class = given.missing == "class";
  DataGuess guess = guess_data(given.query);
  const std::string path = given.out.empty() ? word_of(guess.name) + ".yaml" : given.out;
  guess.name = word_of(given.out.empty() ? guess.name : fs::path(path).stem().string());
  std::error_code ignored;
  if (!given.force && fs::exists(fs::symlink_status(path, ignored)))
    fail(Fault::spec, "{} exists; use --force to overwrite it, or choose another file with --out",
         path);
  const std::string parent = fs::path(path).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  check_output(path, guess, given.query.path);
  const std::string text = init_spec(guess, folder, schema_for(folder));
  const std::string description = described(guess);
  guess = DataGuess();  // write_checked() reads the samples again
  write_checked(path, text);
  print_stdout("{}\nwrote {}; next:\n  dptrain check {}\n  dptrain {}\n", description, path, path,
               path);
  return 0;
}

}  // namespace

Command init() {
  return make_command("init",
                      "write a spec for a CSV file, images, arrays, text or a known data set",
                      declare_init, run_init);
}

}  // namespace dpt::commands
