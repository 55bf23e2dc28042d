// dptrain report RUN...: writes a page about a run, or about several.
#include "report/report.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/refuse_overwriting.h"
#include "base/status_line.h"
#include "base/stdout.h"
#include "base/units.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/run_argument.h"
#include "report/reported_run.h"
#include "report/run_report.h"
#include "report/runs_table.h"

namespace dpt::commands {
namespace {

constexpr const char* kBench = "bench.json";
constexpr size_t kMostBenchBytes = 64 * kMiB;

// Whether the directory is that of a benchmark, and of no run.
bool is_bench(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path + "/" + kBench, error) &&
         !std::filesystem::exists(path + "/metrics.jsonl", error);
}

void write_bench_page(const std::string& path, const std::string& out) {
  std::error_code error;
  const std::string picture = path + "/bench.svg";
  Disk disk;
  write_file(
      disk, out,
      bench_page(
          read_file(path + "/" + kBench, kMostBenchBytes),
          std::filesystem::exists(picture, error) ? read_file(picture, kMostBenchBytes) : ""));
}

// Throws Error{spec} if the output would replace a file of the run: only pages and pictures there
// may be overwritten.
void check_output(const std::string& output, const std::string& run, std::string_view ending) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(run, error), end; !error && at != end;
       at.increment(error))
    if (at->path().extension() != ending) refuse_overwriting(output, at->path().string());
}

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out, svg;
};

void declare_report(Arguments& arguments, ReportArguments& given) {
  arguments.about(
      "Writes a page about a run: results, curves, confusion matrix, where time went, plan, spec "
      "and\nenvironment. Of several runs: their curves in the same charts, a table of results, the "
      "keys of the\nspecs that differ, and which of them ended in the same bits. The page is one "
      "file without scripts.");
  arguments.texts("RUN", given.runs, {takes::run},
                  "run directories, or runs/NAME for its newest run; default: the newest run below "
                  "runs");
  arguments.text("-o,--out FILE", given.out, {takes::file},
                 "file to write; default: report.html in the run directory, or in the working "
                 "directory for several runs");
  arguments.text("--svg FILE", given.svg, {takes::file},
                 "also write a picture of the losses and metrics");
}

int run_report_command(ReportArguments& given) {
  if (given.runs.empty()) given.runs.emplace_back();
  std::vector<ReportedRun> runs;
  for (const std::string& word : given.runs) {
    const std::string path = find_run(word, kBench);
    if (is_bench(path)) {
      if (given.runs.size() > 1 || !given.svg.empty())
        fail(Fault::spec,
             "{} is a benchmark, which has a page of its own: name it alone, without --svg; its "
             "picture is {}/bench.svg",
             path, path);
      if (given.out.empty()) given.out = path + "/report.html";
      check_output(given.out, path, ".html");
      write_bench_page(path, given.out);
      print_stdout("report: {}\n", given.out);
      return 0;
    }
    runs.push_back(read_reported(path, path));
  }
  if (given.out.empty())
    given.out = runs.size() == 1 ? runs[0].summary.path + "/report.html" : "report.html";
  for (const ReportedRun& run : runs) {
    check_output(given.out, run.summary.path, ".html");
    if (!given.svg.empty()) check_output(given.svg, run.summary.path, ".svg");
  }
  Disk disk;
  write_file(disk, given.out, runs.size() == 1 ? run_report(runs[0]) : runs_report(runs));
  if (!given.svg.empty()) {
    const std::string picture = runs.size() == 1 ? curves_svg(runs[0]) : curves_svg(runs);
    if (picture.empty()) fail(Fault::data, "there is no loss or metric to draw yet");
    write_file(disk, given.svg, picture);
  }
  if (runs.size() > 1) {
    std::vector<RunRow> rows;
    for (const ReportedRun& run : runs) rows.push_back({run.name, run.summary});
    print_stdout("{}{}",
                 runs_text(make_runs_table(std::move(rows), {}),
                           static_cast<size_t>(terminal_columns(STDOUT_FILENO, 0))),
                 weights_text(runs));
  }
  print_stdout("report: {}\n", given.out);
  if (!given.svg.empty()) print_stdout("picture: {}\n", given.svg);
  return 0;
}

}  // namespace

Command report() {
  return make_command("report", "write a page about a run, or several side by side", declare_report,
                      run_report_command);
}

}  // namespace dpt::commands
