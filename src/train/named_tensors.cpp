#include "train/named_tensors.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dpt {
namespace {

// One tensor of a file and its memory.
struct Home {
  std::string name;
  TensorDesc desc;  // with the layout in memory
  std::byte* memory = nullptr;
  TensorDesc of_file() const { return {desc.dtype, desc.shape}; }
};

// Every program has parameters and buffers at the same place.
std::vector<Home> homes_of_model(const Session& s, const Buffers& buffers) {
  const auto& place = s.programs.begin()->second.place;
  std::vector<Home> out;
  for (ValueId v : s.graph.state())
    out.push_back(
        {s.graph[v].name, s.graph[v].desc,
         reinterpret_cast<std::byte*>(buffers.weights()) + place[static_cast<size_t>(v)].offset});
  return out;
}

std::vector<Home> homes_of_states(const Session& s, const StateOf& state) {
  std::vector<std::string> names =
      s.optimizer->states(s.spec.optimizer.settings, s.cycles_momentum());
  std::erase(names, "");
  std::vector<Home> out;
  for (size_t p = 0; p < s.graph.parameters.size(); ++p) {
    if (s.graph.gradients[p] == kNoValue) continue;  // frozen
    const Value& parameter = s.graph[s.graph.parameters[p]];
    for (size_t i = 0; i < names.size(); ++i)
      out.push_back(
          {parameter.name + "." + names[i], parameter.desc,
           reinterpret_cast<std::byte*>(state(static_cast<int>(i)) + s.layout.offset[p])});
  }
  return out;
}

NamedTensors tensors(const std::vector<Home>& homes) {
  NamedTensors out;
  for (const Home& h : homes) {
    const std::byte* data = h.memory;
    if (h.desc.layout != Layout::plain) {
      auto& copy =
          out.copies.emplace_back(h.desc.bytes());  // moved, its elements stay where they are
      copy_layout(h.desc.shape, size_of(h.desc.dtype), h.desc.layout, h.memory, Layout::plain,
                  copy.data());
      data = copy.data();
    }
    out.list.push_back({h.name, h.of_file(), data});
  }
  return out;
}

// "module." is what torch's DataParallel writes in front of every name.
const SafeTensors::Entry* find(const SafeTensors& file, const std::string& name) {
  const SafeTensors::Entry* e = file.find(name);
  return e ? e : file.find("module." + name);
}

void read(const std::string& path, const std::vector<Home>& homes, std::string_view whose,
          Fault fault, std::string_view remedy) {
  const SafeTensors file = SafeTensors::read(path);
  std::vector<std::string> wrong;
  for (const Home& h : homes) {
    const TensorDesc wanted = h.of_file();
    const SafeTensors::Entry* e = find(file, h.name);
    if (!e)
      wrong.push_back(fmt::format("it has no '{}'", h.name));
    else if (e->desc != wanted)
      wrong.push_back(fmt::format("its '{}' is {}{}, the {}'s is {}{}", h.name,
                                  name_of(e->desc.dtype), e->desc.shape.str(), whose,
                                  name_of(wanted.dtype), wanted.shape.str()));
    else
      copy_layout(h.desc.shape, size_of(h.desc.dtype), Layout::plain, e->data, h.desc.layout,
                  h.memory);
  }
  if (file.entries().size() > homes.size() && wrong.empty())
    wrong.push_back(fmt::format("it has {} tensors, the {} has {}", file.entries().size(), whose,
                                homes.size()));
  if (!wrong.empty())
    fail(fault, "{} does not fit the {}: {}{}", path, whose, fmt::join(wrong, "; "), remedy);
}

}  // namespace

NamedTensors model_tensors(const Session& s, const Buffers& buffers) {
  return tensors(homes_of_model(s, buffers));
}

NamedTensors state_tensors(const Session& s, const StateOf& state) {
  return tensors(homes_of_states(s, state));
}

void read_model(const Session& s, const std::string& path, const Buffers& buffers, Fault fault,
                std::string_view remedy) {
  read(path, homes_of_model(s, buffers), "model", fault, remedy);
}

void read_states(const Session& s, const std::string& path, const StateOf& state, Fault fault,
                 std::string_view remedy) {
  read(path, homes_of_states(s, state), "optimizer", fault, remedy);
}

}  // namespace dpt
