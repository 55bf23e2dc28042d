// What is fed with bytes from anywhere: one function for each kind of file that dptrain reads, and
// one for what it receives from other hosts.
// libFuzzer drives them (tools/fuzz.sh); a unit test runs the committed corpus through them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace dpt::fuzz {

struct Target {
  std::string_view name;  // of its folder in tests/fuzz/corpus/, too
  // Returns where the bytes are read, or refused as users are told (Error{data}, Error{rank},
  // complaints). Throws whatever else a reader threw, and std::logic_error where what was read is
  // not sound.
  void (*run)(std::span<const std::byte> bytes);
};

std::span<const Target> targets();

}  // namespace dpt::fuzz
