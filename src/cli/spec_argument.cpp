#include "cli/spec_argument.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/installation.h"
#include "base/refuse_overwriting.h"
#include "base/stderr.h"
#include "train/run_directories.h"

namespace dpt {
namespace {

void refuse_named(const std::string& output, const Node& n) {
  if (n.kind == Node::Kind::scalar) refuse_overwriting(output, n.text);
  for (const Node& item : n.items) refuse_named(output, item);
  for (const Node::Entry& entry : n.entries) refuse_named(output, entry.value);
}

}  // namespace

void SpecArgument::add_to(Arguments& arguments, const std::string& help, unsigned also,
                          unsigned more) {
  arguments.text("SPEC", path, {takes::spec | also}, help);
  arguments.texts(
      "KEY=VALUE", overrides, {takes::setting | more},
      "key=value, replaces a value of the file: epochs=3 data.batch_size=256 optimizer.lr=0.1");
}

std::string find_spec(const std::string& path) {
  std::error_code error;
  if (!path.starts_with("configs/") || std::filesystem::exists(path, error)) return path;
  const std::string installed = installed_file(path);
  if (installed.empty()) return path;
  print_stderr("{} does not exist; reading {}\n", path, installed);
  return installed;
}

LoadedSpec load(const SpecArgument& argument) {
  if (argument.path.empty())
    throw BadSpec{
        "dptrain: no spec was given; try `dptrain configs/fmnist_ddp.yaml`, or `dptrain "
        "--help`\n"};
  LoadedSpec out;
  Diagnostics d;
  out.spec = load_spec(find_spec(argument.path), argument.overrides, registries(), out.files, d,
                       &out.tree);
  if (!d.ok()) throw BadSpec{d.render()};
  return out;
}

void refuse_overwriting(const std::string& output, const LoadedSpec& loaded) {
  std::error_code error;
  if (!std::filesystem::exists(output, error)) return;
  for (const auto& file : loaded.files) refuse_overwriting(output, file->path);
  refuse_named(output, loaded.tree);
}

bool assume_batch_size(Spec& spec) {
  constexpr int64_t kAssumed = 32;
  if (!std::exchange(spec.data.auto_batch, false)) return false;
  spec.data.batch_size_per_replica = kAssumed;
  return true;
}

std::unique_ptr<const Session> open_session(const LoadedSpec& loaded, const SessionQuery& query) {
  Diagnostics d;
  Spec spec = loaded.spec;
  if (assume_batch_size(spec))
    print_stderr(
        "data.batch_size: auto is chosen when training starts; this command assumes {} per "
        "replica\n",
        *spec.data.batch_size_per_replica);
  std::unique_ptr<const Session> session = make_session(std::move(spec), query, d);
  if (!session) throw BadSpec{d.render()};
  return session;
}

std::string run_folder(const Spec& spec) {
  return spec.out.empty() ? "runs/" + spec.name : spec.out;
}

std::string named_run(const std::string& directory) {
  std::string run = newest_run(directory);
  if (run.starts_with(directory + "/") && run != directory)
    print_stderr("{}: its newest run is {}\n", directory, run);
  return run;
}

}  // namespace dpt
