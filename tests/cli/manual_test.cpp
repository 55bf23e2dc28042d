#include <regex>
#include <set>

#include <doctest/doctest.h>

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

TEST_CASE("the manual page and the completions name every command and option") {
  const std::string manual = without_escapes(dptrain({"manual"}).out);
  REQUIRE(commands().size() >= 13);
  std::vector<std::string> scripts;
  for (const char* shell : {"bash", "zsh", "fish"})
    scripts.push_back(dptrain({"completion", shell}).out);
  for (const std::string& command : commands()) {
    CAPTURE(command);
    const size_t begin = manual.find("\n.SS " + command + "\n");
    REQUIRE(begin != manual.npos);
    const std::string section = manual.substr(begin, manual.find("\n.S", begin + 1) - begin);
    for (const std::string& script : scripts) CHECK(has(script, command));
    CHECK(options_of(command).contains("--help"));
    for (const std::string& option : options_of(command)) {
      CAPTURE(option);
      if (option == "--help") continue;
      CHECK(has(section, option));
      CHECK(has(scripts[0], option));
      CHECK(has(scripts[1], "'" + option + "["));
      CHECK(has(scripts[2], "__dptrain_is " + command + "' -l " + option.substr(2)));
    }
  }
  for (const char* part : {"DPTRAIN_DATA", "\n75\n", "share/dptrain/configs"})
    CHECK(has(manual, part));
}

TEST_CASE("completion knows the keys of overrides and their values") {
  const std::string bash = dptrain({"completion", "bash"}).out;
  for (const char* part :
       {" epochs= ", " data.batch_size= ", " optimizer.lr= ", " data.dataset.path= ",
        "    parallel) values='single dp ddp pipeline local_sgd' ;;\n",
        "    data.shuffle) values='true false' ;;\n"})
    CHECK_MESSAGE(has(bash, part), part);
  CHECK_FALSE(has(bash, "--row "));
}

TEST_CASE("completion asks for a shell it knows") {
  CHECK(has(dptrain({"completion"}).err, "SHELL is required: bash, zsh or fish"));
  const Finished tcsh = dptrain({"completion", "tcsh"});
  CHECK(tcsh.code == 2);
  CHECK(has(tcsh.err, "tcsh"));
}

}  // namespace dpt
