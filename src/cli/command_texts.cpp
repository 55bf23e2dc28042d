#include "cli/command_texts.h"

#include <algorithm>

#include "session/session.h"
#include "spec/language.h"

namespace dpt {
namespace {

constexpr Meaning kEnvironment[] = {
    {"DPTRAIN_DATA", "the folder of the built-in data sets (mnist, cifar10, ...)"},
    {"DPTRAIN_MASTER", "host:port at which the first of several machines waits for the others"},
    {"DPTRAIN_SECRET_FILE", "the file with the secret by which machines of a run know each other"},
    {"DPTRAIN_TRUST_NETWORK", "1: several machines may train without a secret"},
    {"DPTRAIN_NO_CACHE", "if set, unpacked data sets are not cached in ~/.cache/dptrain"},
    {"DPTRAIN_CUDA_MODULE", "the file libdptrain_cuda.so"},
    {"DPTRAIN_CUDA_PATH", "the folders of CUDA's libraries, separated by colons"},
    {"DPTRAIN_GLOO_MODULE", "the file libdptrain_gloo.so"},
    {"DPTRAIN_MPI_MODULE", "the file libdptrain_openmpi.so or libdptrain_mpich.so"},
    {"DPTRAIN_LOG_PLANS", "on GPUs: a file to which each operation's algorithm is appended"},
    {"DPTRAIN_OUTLIVE_LAUNCHER", "1: ranks keep running when torchrun, srun or mpirun ends"},
};

constexpr Meaning kExitCodes[] = {
    {"0", "done"},          {"1", "failed"},   {"2", "the spec or the command line is wrong"},
    {"3", "device"},        {"4", "data"},     {"5", "memory"},
    {"6", "a rank failed"}, {"7", "diverged"}, {"75", "SIGUSR1"},
    {"130", "Ctrl-C"},
};

class Keys {
 public:
  explicit Keys(const Registries& registries) : registries_(registries) {}

  void add(const std::string& above, const std::vector<KeyDoc>& keys) {
    for (const KeyDoc& k : keys) add(above, k);
  }

  std::vector<OverrideKey> take() { return std::move(keys_); }

 private:
  void add(const std::string& above, const KeyDoc& k) {
    if (k.registry == "layers" || k.registry == "blocks") return;
    const std::string path = above + std::string(k.name);
    OverrideKey& own = key(path);
    own.names_file = own.names_file || k.type == KeyKind::path;
    for (const std::string_view c : k.choices) add_value(own, c);
    if (k.type == KeyKind::boolean)
      for (const char* truth : {"true", "false"}) add_value(own, truth);
    if (!k.registry.empty())
      for (const RegistryEntry* word : registry_of(registries_, k.registry))
        add_value(own, word->name);
    if (k.many) return;  // a list: its entries have numbers
    add(path + ".", k.keys);
    if (k.registry.empty()) return;
    for (const RegistryEntry* word : registry_of(registries_, k.registry))
      add(path + ".", word->describe());
  }

  OverrideKey& key(const std::string& path) {
    const auto found = std::ranges::find(keys_, path, &OverrideKey::path);
    return found != keys_.end() ? *found : keys_.emplace_back(OverrideKey{path});
  }

  // Only what is a word for a shell: not `|`, a delimiter.
  static void add_value(OverrideKey& key, std::string_view value) {
    if (value.find_first_of(";,| ") != value.npos) return;
    if (std::ranges::find(key.values, value) == key.values.end()) key.values.emplace_back(value);
  }

  const Registries& registries_;
  std::vector<OverrideKey> keys_;
};

}  // namespace

std::span<const Meaning> environment_variables() { return kEnvironment; }
std::span<const Meaning> exit_codes() { return kExitCodes; }

std::vector<OverrideKey> override_keys(const Registries& registries) {
  Keys keys(registries);
  keys.add("", top_keys(registries).describe());
  return keys.take();
}

std::vector<std::string> entry_names(std::string_view registry) {
  std::vector<std::string> out;
  const Registries all = registries();
  for (const RegistryEntry* entry : registry_of(all, registry)) out.emplace_back(entry->name);
  return out;
}

std::string spec_key_named(const std::string& name) {
  std::string key = name, out;
  std::ranges::replace(key, '-', '_');
  for (const OverrideKey& k : override_keys(registries()))
    if ((k.path == key || k.path.ends_with("." + key)) &&
        (out.empty() || k.path.size() < out.size()))
      out = k.path;
  return out;
}

}  // namespace dpt
