#include "train/run_spec.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/fail.h"
#include "data/folder.h"
#include "train/redirect.h"
#include "train/run.h"
#include "train/run_directories.h"

namespace dpt {
namespace {

int train(const std::string& path, const std::vector<std::string>& overrides, const RunIn& where,
          const OpenGpu& gpu) {
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  Node tree;
  Spec spec = load_spec(path, overrides, registries(), files, d, &tree);
  std::unique_ptr<const Session> session;
  SessionQuery query{.runs = !gpu};
  if (gpu) query.gpus = cuda::GpuSurvey{.count = kFakeGpus};
  if (d.ok()) session = make_session(std::move(spec), query, d);
  if (!d.ok()) {
    fmt::print(stderr, "{}", d.render());
    return 2;
  }
  try {
    RunRequest request{.location = {.folder = where.folder + (where.numbered ? "/runs" : "/run"),
                                    .numbered = where.numbered,
                                    .resume = where.resume,
                                    .resolved_spec = to_yaml(tree)},
                       .disk = where.disk,
                       .stuck_gpu_s = where.stuck_gpu_s,
                       .watchdog_s = where.watchdog_s};
    if (gpu) request.open_gpu = gpu;
    return run(*session, request);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.report());
    return static_cast<int>(e.fault());
  }
}

std::vector<double> numbers_after(const std::string& metrics, const std::string& first) {
  std::vector<double> out;
  std::istringstream in(metrics);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("{\"" + first + "\""))
      out.push_back(std::strtod(line.c_str() + line.find("\"loss\": ") + 8, nullptr));
  return out;
}

}  // namespace

std::vector<double> Ran::losses() const { return numbers_after(metrics, "epoch"); }
std::vector<double> Ran::step_losses() const { return numbers_after(metrics, "step"); }

Ran run_spec_in(const RunIn& where, const std::string& yaml,
                const std::vector<std::string>& overrides, const OpenGpu& gpu) {
  const std::string& folder = where.folder;
  std::ofstream(folder + "/t.yaml") << yaml;
  Ran ran;
  {
    const Redirect out(STDOUT_FILENO, folder + "/out"), err(STDERR_FILENO, folder + "/err");
    ran.code = train(folder + "/t.yaml", overrides, where, gpu);
  }
  ran.out = read_file(folder + "/out");
  ran.err = read_file(folder + "/err");
  const std::string run = where.numbered ? newest_run(folder + "/runs") : folder + "/run";
  ran.weights = read_file(run + "/model.safetensors");
  ran.metrics = read_file(run + "/metrics.jsonl");
  return ran;
}

Ran run_spec(const std::string& yaml, const std::vector<std::string>& overrides, const OpenGpu& gpu,
             double stuck_gpu_s) {
  const Folder folder;
  std::vector<std::string> words = {"save=false"};
  words.insert(words.end(), overrides.begin(), overrides.end());
  return run_spec_in({.folder = folder.path(), .stuck_gpu_s = stuck_gpu_s}, yaml, words, gpu);
}

std::unique_ptr<const Session> session_of(const std::string& yaml,
                                          const std::vector<std::string>& overrides,
                                          bool fake_gpus) {
  const Folder folder;
  folder.write("t.yaml", yaml);
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  Spec spec = load_spec(folder.file("t.yaml"), overrides, registries(), files, d, nullptr);
  auto session =
      d.ok() ? make_session(std::move(spec),
                            {.gpus = fake_gpus ? std::optional(cuda::GpuSurvey{.count = kFakeGpus})
                                               : std::nullopt},
                            d)
             : nullptr;
  REQUIRE_MESSAGE(session, d.render());
  return session;
}

std::string errors_of_session(const std::string& yaml, const std::vector<std::string>& overrides,
                              const SessionQuery& query, std::unique_ptr<const Session>& out) {
  const Folder folder;
  folder.write("t.yaml", yaml);
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  Spec spec = load_spec(folder.file("t.yaml"), overrides, registries(), files, d, nullptr);
  if (d.ok()) out = make_session(std::move(spec), query, d);
  return d.ok() ? "" : d.render();
}

void same(const Ran& a, const Ran& b) {
  CHECK_MESSAGE(a.code == 0, a.err);
  CHECK_MESSAGE(b.code == 0, b.err);
  CHECK(!a.weights.empty());
  CHECK(data_of(a.weights) == data_of(b.weights));
  CHECK(a.step_losses() == b.step_losses());
  CHECK(a.losses() == b.losses());
}

std::string data_of(const std::string& safetensors) {
  uint64_t header = 0;
  require(safetensors.size() > sizeof header, "a safetensors file");
  std::memcpy(&header, safetensors.data(), sizeof header);
  return safetensors.substr(sizeof header + header);
}

}  // namespace dpt
