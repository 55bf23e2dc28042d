// The contents of the control channel's messages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "comm/hosts/frame.h"
#include "comm/hosts/host_map.h"
#include "comm/team.h"

namespace dpt {

// What must be equal on all hosts before they load data. Host 0 compares.
struct HostIdentity {
  std::string version;  // version(): "dptrain 1.5.0 (git ...)"
  std::string spec;     // hash of the resolved spec
  bool reproducible = false;
  std::string instructions;  // "AVX-512"; compared only if reproducible
  std::string onednn;        // its version; compared only if reproducible
  // Why this host cannot take part, one line; empty: it can.
  std::string failure;
};

// A host introduces itself to host 0.
struct HostHello {
  int first_rank = 0, ranks = 1;
  int world = 1;  // number of ranks on all hosts
  int host = -1;  // index, as the launcher says; -1: it does not
  std::string name;
  std::string address;  // numeric, of the interface in use
  HostIdentity identity;
};

// A sign of life of a host, with what its leader is doing.
struct Beat {
  Progress progress;
  int waits_for = -1;  // the host for whose data it waits, with nothing else to do; -1: none
  uint64_t moved = 0;  // changes whenever data has come or gone
};

// Limits in bytes.
inline constexpr size_t kLongestHello = 4096;
inline constexpr size_t kLongestRefusal = 1024;
inline constexpr size_t kLongestGathered = 65536;  // a string of one host
inline constexpr size_t kBeatBytes = 32;
size_t longest_welcome(int hosts);
size_t longest_gathered(int hosts);  // the strings of all hosts

// The decoders throw Error{rank} for bytes that no encoder writes. What they return is within the
// limits; whether it makes sense is for the caller to decide.
std::vector<std::byte> encode(const HostHello& hello);
HostHello decode_hello(std::span<const std::byte> payload);
// The part of a hello that is the same in all versions of dptrain: all up to identity.version.
HostHello decode_start_of_hello(std::span<const std::byte> payload);

std::vector<std::byte> encode(const HostMap& map);
// most: the number of ranks of the run, which is the greatest number of hosts.
HostMap decode_welcome(std::span<const std::byte> payload, int most);

std::vector<std::byte> encode(const Beat& beat);
Beat decode_beat(std::span<const std::byte> payload);

std::vector<std::byte> encode(std::span<const std::string> strings);
std::vector<std::string> decode_gathered(std::span<const std::byte> payload, int hosts);

// refused, abort, gather: the text is the payload, cut off at `most` bytes.
std::vector<std::byte> encode_text(std::string_view text, size_t most);
std::string decode_text(std::span<const std::byte> payload);

}  // namespace dpt
