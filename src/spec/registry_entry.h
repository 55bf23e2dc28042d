// What everything that a spec can name has in common: layers, losses, optimizers, schedules, data
// sets, transforms, modes. Other components derive from RegistryEntry and add what they need.
#pragma once

#include <any>
#include <string_view>
#include <vector>

#include "spec/keys.h"

namespace dpt {

// What the reference page says beside summary and keys.
struct Usage {
  std::string_view torch{};    // the same in PyTorch: "torch.nn.ReLU"; empty: PyTorch has none
  std::string_view example{};  // lines of a spec that use the name and each of its keys

  // As programs that import nn and optim write it: "nn.ReLU".
  constexpr std::string_view callee() const { return torch.substr(torch.find('.') + 1); }
};

struct RegistryEntry {
  std::string_view name;
  std::string_view summary;
  std::any (*decode)(const Node& settings, const Owner& owner, Diagnostics& d);
  std::vector<KeyDoc> (*describe)();
  Usage usage{};
};

// REQUIRES: Config has `static KeyTable<Config> keys()`, and may have `static constexpr Usage
// kUsage`.
template <class Config>
RegistryEntry registry_entry(std::string_view name, std::string_view summary, Usage usage = {}) {
  if constexpr (requires { Config::kUsage; })
    if (usage.example.empty()) usage = Config::kUsage;
  return {name, summary,
          [](const Node& s, const Owner& o, Diagnostics& d) -> std::any {
            return Config::keys().decode(s, o, d);
          },
          [] { return Config::keys().describe(); }, usage};
}

// A registry entry that the spec named, with its settings. The component that owns the registry
// casts both to their actual types.
struct Choice {
  const RegistryEntry* what = nullptr;
  std::any settings;
  Span where;
  explicit operator bool() const { return what != nullptr; }
};

}  // namespace dpt
