// dptrain runs DIR...: prints one table for many runs.
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/files.h"
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/terminal_text.h"
#include "report/runs_table.h"
#include "session/session.h"

namespace dpt::commands {
namespace {

namespace fs = std::filesystem;

// The run's path; relative to the directory if only one was given ("." for the directory itself).
std::string name_of(const std::string& run, const std::string& directory, bool only) {
  if (!only) return run;
  if (run == directory) return ".";
  return run.substr(directory.ends_with('/') ? directory.size() : directory.size() + 1);
}

// NAME stands for runs/NAME.
std::string directory_of(const std::string& given) {
  std::error_code error;
  const std::string named = "runs/" + given;
  return !fs::exists(given, error) && fs::is_directory(named, error) ? named : given;
}

std::vector<RunRow> read_runs(const std::vector<std::string>& directories) {
  std::vector<RunRow> out;
  std::set<std::string> seen;  // one directory may contain another
  for (const std::string& directory : directories)
    for (const std::string& run : find_runs(directory)) {
      std::error_code error;
      const std::string path = fs::canonical(run, error).string();
      if (!error && !seen.insert(path).second) continue;
      out.push_back({name_of(run, directory, directories.size() == 1), summarize_run(run)});
    }
  return out;
}

struct RunsArguments {
  std::vector<std::string> directories;
  bool csv = false, json = false;
  std::string sort, svg, x;
};

void declare_runs(Arguments& arguments, RunsArguments& given) {
  arguments.about(
      "Prints a table of the runs in and below the directories: the keys of the spec that differ "
      "between\nthem, epochs done, losses and accuracies (of the last and of the best epoch), "
      "seconds of training,\nsamples per second, and whether a run is finished, stopped, running "
      "or "
      "failed.");
  arguments.texts("DIR", given.directories, {takes::run},
                  "directories with runs, such as runs/NAME, or NAME for runs/NAME; default: runs");
  arguments.text("--sort KEY", given.sort, {takes::number | takes::key},
                 "a key or result to sort by: optimizer.sgd.lr, loss, best.test.accuracy, ...; the "
                 "best come first");
  arguments.flag("--json", given.json, "print JSON instead of the table");
  arguments.flag("--csv", given.csv, "print CSV instead of the table", "--json");
  arguments.text("--svg FILE", given.svg, {takes::file},
                 "a file for a picture of loss, accuracy and samples per second by --x");
  arguments.text("--x KEY", given.x, {takes::key},
                 "the key of the picture's horizontal axis: data.batch_size");
}

int run_runs(RunsArguments& given) {
  if (given.svg.empty() != given.x.empty())
    throw BadWords{
        "--svg FILE and --x KEY must be given together: runs runs/NAME --svg sweep.svg --x "
        "data.batch_size"};
  if (given.directories.empty()) given.directories = {"runs"};
  for (std::string& directory : given.directories) directory = directory_of(directory);
  std::vector<RunRow> rows = read_runs(given.directories);
  if (rows.empty())
    fail(Fault::data,
         "{}{} no run: no directory with a spec.resolved.yaml or a metrics.jsonl; runs without "
         "out=DIR are in runs/NAME",
         given.directories[0], given.directories.size() == 1 ? " holds" : " and the others hold");
  given.sort = key_named(key_of_main_value(result_named(given.sort, rows), registries()), rows);
  given.x = key_named(key_of_main_value(given.x, registries()), rows);
  RunsTable table = make_runs_table(std::move(rows), {given.sort, given.x});
  if (!given.sort.empty()) sort_rows(table, given.sort);
  if (given.json)
    print_stdout("{}", runs_json(table));
  else if (given.csv)
    print_stdout("{}", runs_csv(table));
  else
    print_stdout("{}", runs_text(table, text_width()));
  if (!given.svg.empty())
    write_text(given.svg, runs_svg(table, given.x), "; choose another file with --svg");
  return 0;
}

}  // namespace

Command runs() {
  return make_command("runs", "print a table of many runs", declare_runs, run_runs);
}

}  // namespace dpt::commands
