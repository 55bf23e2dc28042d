// dptrain init DATA: writes a commented spec that trains a small net on the user's data.
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/installation.h"
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

// Throws if the spec cannot be trained, and removes it: a spec that init leaves behind is right.
void check_written(const std::string& path) {
  try {
    const LoadedSpec loaded = load({.path = path, .overrides = {}});
    (void)open_session(loaded, {.runs = false, .sizes_only = true});
  } catch (const BadSpec& e) {
    std::error_code ignored;
    fs::remove(path, ignored);
    throw BadSpec{e.text +
                  "dptrain: no spec was written: the net that init chose does not fit this "
                  "data; write the spec as docs/specs.md shows\n"};
  } catch (...) {
    std::error_code ignored;
    fs::remove(path, ignored);
    throw;
  }
}

std::string described(const DataGuess& g) {
  std::string out;
  for (const std::string& note : g.notes) out += note + "\n";
  out += fmt::format("training set: {}\n", g.train.description);
  if (!g.validation.empty()) out += fmt::format("validation set: {}\n", g.validation);
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
  std::string out, header, missing;
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
  arguments.text("--missing drop", given.missing, {.words = {"drop", "mean"}},
                 "leave out lines of a CSV that lack a value; default: inputs get the mean, and "
                 "targets must have one");
  arguments.flag("--force", given.force, "overwrite the spec if it exists");
}

int run_init(InitArguments& given) {
  if (given.query.path.empty())
    fail(Fault::spec, "the name of the data is empty; name a file, a folder or a data set");
  if (!given.header.empty() && given.header != "yes" && given.header != "no")
    throw BadWords{fmt::format("init --header {}: write yes or no", given.header)};
  if (!given.missing.empty() && given.missing != "drop" && given.missing != "mean")
    throw BadWords{fmt::format("init --missing {}: write drop or mean", given.missing)};
  if (!given.header.empty())
    given.query.header =
        given.header == "yes" ? CsvFormat::HeaderLine::yes : CsvFormat::HeaderLine::no;
  given.query.drops_missing = given.missing == "drop";
  DataGuess guess = guess_data(given.query);
  guess.name = word_of(guess.name);
  const std::string path = given.out.empty() ? guess.name + ".yaml" : given.out;
  std::error_code ignored;
  if (!given.force && fs::exists(fs::symlink_status(path, ignored)))
    fail(Fault::spec, "{} exists; use --force to overwrite it, or choose another file with --out",
         path);
  const std::string parent = fs::path(path).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  write_text(path, init_spec(guess, folder, schema_for(folder)), "; name another file with --out");
  const std::string description = described(guess);
  guess = DataGuess();  // check_written() reads the samples again
  check_written(path);
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
