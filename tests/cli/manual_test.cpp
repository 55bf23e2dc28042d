#include <regex>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/process.h"

namespace dpt {
namespace {

std::set<std::string> all_matches(const std::string& text, const char* expression) {
  std::set<std::string> found;
  const std::regex r(expression);
  for (std::sregex_iterator m(text.begin(), text.end(), r), end; m != end; ++m)
    found.insert((*m)[1]);
  return found;
}

std::set<std::string> commands() {
  return all_matches(dptrain({"--help"}).out, "\n  ([a-z][a-z-]*)  ");
}

// The names of a command's options as its help has them.
std::set<std::string> options_of(const std::string& command) {
  return all_matches(dptrain({command, "--help"}).out, "\n  (?:-[a-z], )?(--[a-z-]+)");
}

std::string without_escapes(const std::string& roff) {
  return std::regex_replace(std::regex_replace(roff, std::regex(R"(\\f[BIR])"), ""),
                            std::regex(R"(\\-)"), "-");
}

}  // namespace

TEST_CASE("the manual page and the completion name every command and option") {
  const std::string manual = without_escapes(dptrain({"manual"}).out);
  const std::string first = dptrain({"__complete", "fish", ""}).out;
  REQUIRE(commands().size() >= 21);
  for (const std::string& command : commands()) {
    CAPTURE(command);
    const size_t begin = manual.find("\n.SS " + command + "\n");
    REQUIRE(begin != manual.npos);
    const std::string section = manual.substr(begin, manual.find("\n.S", begin + 1) - begin);
    CHECK(has(first, "\n" + command + "\t"));
    const std::string options = dptrain({"__complete", "fish", command, "-"}).out;
    CHECK(options_of(command).contains("--help"));
    for (const std::string& option : options_of(command)) {
      CAPTURE(option);
      CHECK(has(options, "\n" + option + "\t"));
      if (option != "--help") CHECK(has(section, option));
    }
  }
  for (const char* part : {"DPTRAIN_DATA", "\n75\n", "share/dptrain/configs"})
    CHECK(has(manual, part));
}

TEST_CASE("completion knows the keys of overrides and their values") {
  const auto completed = [](const std::string& word) {
    return dptrain({"__complete", "zsh", "my.yaml", word}).out;
  };
  for (const char* key : {"epochs", "data.batch_size", "optimizer.lr", "data.dataset.path"})
    CHECK(has(completed(key), fmt::format("\n{}=\n", key)));
  CHECK(completed("data.shuffle=") == "words\ndata.shuffle=true\ndata.shuffle=false\n");
  CHECK(completed("parallel=d") == "words\nparallel=dp\nparallel=ddp\n");
  CHECK(completed("data.dataset.path=") == "files\n");
  CHECK(completed("--ro") == "words\n");  // bench's --row is hidden, and --rounds is not train's
}

TEST_CASE("bash replaces the part of a word behind its last break") {
  const auto completed = [](const std::string& line, const std::string& breaks = " \t\n\"'=:") {
    return dptrain({"__complete", "bash", "dptrain " + line, breaks}).out;
  };
  CHECK(completed("my.yaml parallel=lo") == "words\nlo\nlocal_sgd\n");
  CHECK(completed("my.yaml parallel=lo", " ") == "words\nparallel=lo\nparallel=local_sgd\n");
  CHECK(completed("'my file.yaml' parallel=lo") == "words\nlo\nlocal_sgd\n");
  CHECK(completed("my\\ file.yaml  'parallel=lo") == "words\nparallel=lo\nparallel=local_sgd\n");
  CHECK(completed("plan --svg=a\\ b") == "files\na b\n");
  CHECK(completed("") == completed("", " "));
}

TEST_CASE("completion asks for a shell it knows") {
  CHECK(has(dptrain({"completion"}).err, "SHELL is required: bash, zsh or fish"));
  const Finished tcsh = dptrain({"completion", "tcsh"});
  CHECK(tcsh.code == 2);
  CHECK(has(tcsh.err, "tcsh"));
}

}  // namespace dpt
