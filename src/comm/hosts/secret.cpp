#include "comm/hosts/secret.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/fail.h"
#include "base/lower_case.h"

namespace dpt {
namespace {

constexpr size_t kDigits = 64;  // of 32 bytes

constexpr std::string_view kMakeOne =
    "make one with `openssl rand -hex 32 > FILE && chmod 600 FILE` and give all hosts the same";

[[noreturn]] void refuse(const std::string& path, std::string_view why, std::string_view remedy) {
  fail(Fault::spec, "DPTRAIN_SECRET_FILE={}: {}; {}", path, why, remedy);
}

std::string read_secret(const std::string& path) {
  // O_NONBLOCK: a FIFO must not hold the run up.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0)
    refuse(path, std::generic_category().message(errno), kMakeOne);
  if (!S_ISREG(info.st_mode)) refuse(path, "it is not a file", kMakeOne);
  if (info.st_uid != geteuid() && info.st_uid != 0)
    refuse(path, "it belongs to another user", "name a file of your own");
  if ((info.st_mode & 077) != 0)
    refuse(
        path,
        fmt::format("other users can read or write it (its mode is {:04o})", info.st_mode & 07777),
        fmt::format("run `chmod 600 {}`", path));
  constexpr size_t kMostWhiteSpace = 64;
  std::array<char, kDigits + kMostWhiteSpace + 1> buffer{};
  const ssize_t n = read(file.get(), buffer.data(), buffer.size());
  if (n < 0) refuse(path, std::generic_category().message(errno), kMakeOne);
  std::string out(buffer.data(), static_cast<size_t>(n));
  out.erase(out.find_last_not_of(" \t\r\n") + 1);
  if (std::cmp_equal(n, buffer.size()) || out.size() != kDigits ||
      out.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
    refuse(path, fmt::format("it does not consist of {} hexadecimal digits", kDigits), kMakeOne);
  return lower_case(out);
}

}  // namespace

NetworkTrust trust_from_environment(const Environment& get) {
  const auto text = [&](const char* name) {
    const char* const value = get(name);
    return std::string(value == nullptr ? "" : value);
  };
  NetworkTrust out;
  if (const std::string path = text("DPTRAIN_SECRET_FILE"); !path.empty())
    out.secret = read_secret(path);
  out.trusts_network = text("DPTRAIN_TRUST_NETWORK") == "1";
  return out;
}

NetworkTrust trust_from_environment() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
  return trust_from_environment([](const char* name) { return std::getenv(name); });
}

void check_trust(const NetworkTrust& trust, const TcpAddress& address) {
  if (!trust.secret.empty() || trust.trusts_network || address.is_loopback()) return;
  fail(
      Fault::spec,
      "the hosts of this run connect over the network, through {}, and have no secret to tell each "
      "other from strangers: set DPTRAIN_SECRET_FILE to a file that only you can read, with the "
      "same content on all hosts (`openssl rand -hex 32 > FILE && chmod 600 FILE`); or, if you "
      "trust everyone who can reach this network, set DPTRAIN_TRUST_NETWORK=1",
      address.host());
}

}  // namespace dpt
