#include "comm/hosts/secret.h"

#include <fstream>
#include <map>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/lower_case.h"
#include "comm/hosts/handshake.h"
#include "data/folder.h"

namespace dpt {
namespace {

NetworkTrust trust_of(const std::map<std::string, std::string>& variables) {
  return trust_from_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const std::string& path) {
  try {
    trust_of({{"DPTRAIN_SECRET_FILE", path}});
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::spec);
    return e.what();
  }
  return "";
}

TEST_CASE("a secret is read from a file that only its owner can read") {
  const Folder folder;
  const std::string path = folder.file("secret");
  const auto write = [&](const std::string& text, mode_t mode) {
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
  };
  const std::string digits = "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef";
  write(digits + "\n", 0600);
  CHECK(trust_of({{"DPTRAIN_SECRET_FILE", path}}).secret == lower_case(digits));
  for (const mode_t mode : {0640, 0604, 0660, 0620}) {
    write(digits + "\n", mode);
    CHECK(refusal(path) ==
          fmt::format("DPTRAIN_SECRET_FILE={0}: other users can read or write it (its mode is "
                      "{1:04o}); run `chmod 600 {0}`",
                      path, mode));
  }
  CHECK(refusal(folder.path()).find("it is not a file") != std::string::npos);
  CHECK(refusal(path + "x") ==
        "DPTRAIN_SECRET_FILE=" + path +
            "x: No such file or directory; make one with `openssl rand -hex 32 > FILE && chmod 600 "
            "FILE` and give all hosts the same");
}

TEST_CASE("a secret is 64 hex digits") {
  const Folder folder;
  const std::string path = folder.file("secret"), digits(63, 'a');
  for (const std::string& text :
       {std::string(), digits, digits + "aa", digits + "g", digits + " a", " " + digits + "a",
        std::string("correct horse battery staple"), std::string(100'000, 'a')}) {
    std::ofstream(path) << text;
    chmod(path.c_str(), 0600);
    CHECK(refusal(path) == "DPTRAIN_SECRET_FILE=" + path +
                               ": it does not consist of 64 hexadecimal digits; make one with "
                               "`openssl rand -hex 32 > FILE && chmod 600 FILE` and give all hosts "
                               "the same");
  }
  for (const char* end : {"", "\n", " \r\n"}) {
    std::ofstream(path) << digits << "b" << end;
    CHECK(trust_of({{"DPTRAIN_SECRET_FILE", path}}).secret == digits + "b");
  }
}

TEST_CASE("without a secret only loopback is allowed, or a network that the user trusts") {
  const TcpAddress loopback = numeric_address("127.0.0.7", 1).value();
  const TcpAddress loopback6 = numeric_address("::1", 1).value();
  const TcpAddress network = numeric_address("10.0.0.2", 1).value();
  const NetworkTrust none = trust_of({});
  CHECK_NOTHROW(check_trust(none, loopback));
  CHECK_NOTHROW(check_trust(none, loopback6));
  CHECK_NOTHROW(check_trust(trust_of({{"DPTRAIN_TRUST_NETWORK", "1"}}), network));
  CHECK_NOTHROW(check_trust({.secret = "0123456789abcdef"}, network));
  for (const char* no : {"", "0", "yes"})
    CHECK_THROWS_AS(check_trust(trust_of({{"DPTRAIN_TRUST_NETWORK", no}}), network), Error);
  try {
    check_trust(none, network);
  } catch (const Error& e) {
    CHECK(std::string(e.what()) ==
          "the hosts of this run connect over the network, through 10.0.0.2, and have no secret to "
          "tell each other from strangers: set DPTRAIN_SECRET_FILE to a file that only you can "
          "read, with the same content on all hosts (`openssl rand -hex 32 > FILE && chmod 600 "
          "FILE`); or, if you trust everyone who can reach this network, set "
          "DPTRAIN_TRUST_NETWORK=1");
  }
}

TEST_CASE("proofs depend on secret, run, role, both nonces and the launch") {
  const Nonce a = random_nonce(), b = random_nonce();
  CHECK(a != b);
  using Role = Handshake::Role;
  const Handshake handshake("secret", "run");
  const Digest proof = handshake.digest(Role::response, a, b);
  CHECK(proof == Handshake("secret", "run").digest(Role::response, a, b));
  CHECK(proof != Handshake("other", "run").digest(Role::response, a, b));
  CHECK(proof != Handshake("secret", "other").digest(Role::response, a, b));
  CHECK(proof != handshake.digest(Role::proof, a, b));
  CHECK(proof != handshake.digest(Role::response, b, a));
  CHECK(proof != handshake.digest(Role::response, a, b, random_launch_id()));
  CHECK(handshake.digest(Role::from_host_0, a, b) != handshake.digest(Role::to_host_0, a, b));
}

}  // namespace
}  // namespace dpt
