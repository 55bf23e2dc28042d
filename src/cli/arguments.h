// Parses a command's arguments. Only arguments.cpp includes CLI11, whose header adds four seconds
// to the compilation of each file.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 names it so
class App;
}

namespace dpt {

// Thrown by Arguments::parse(): HelpShown after it printed --help, BadWords for invalid arguments.
struct HelpShown {};
struct BadWords {
  std::string text;
  std::string command{};  // whose --help explains the arguments; set by run_command_line()
};

// What values name, which is what shells complete; several are combined by |.
namespace takes {
enum Kind : unsigned {
  file = 1,
  spec = 2,      // a YAML file
  run = 4,       // see find_run()
  setting = 8,   // key=value of a spec
  key = 16,      // of a spec
  metric = 32,   // that a run of the spec records, or the best of it
  limit = 64,    // metric=value
  number = 128,  // that a run of the spec can print
  result = 256,  // of `dptrain eval`
};
}  // namespace takes

struct ArgumentValue {
  unsigned kinds = 0;  // 0: shells complete only `words`
  std::vector<std::string> words{};
  bool list = false;  // several values, separated by commas
};

// One argument of a command, for its help, the manual page and completion.
struct ArgumentText {
  std::string names;  // as add functions take them: "-v,--verbose", "--svg FILE", "SPEC"
  std::string help;
  ArgumentValue takes{};
  bool choice = false;              // it takes nothing but one of takes.words
  bool flag = false, many = false;  // many: stands alone any number of times

  bool stands_alone() const { return !names.starts_with('-'); }
  std::vector<std::string> dashed() const;  // {"-v", "--verbose"}; {"SPEC"} if it stands alone
  std::string value() const;                // "FILE"; empty: it takes none, or stands alone
};

// Declares a command's arguments and the variables that parse() fills. Names are "--long VALUE" or
// "-s,--long VALUE", "--long" for a flag, or a word without dashes for a positional argument. An
// omitted argument leaves its variable unchanged.
class Arguments {
 public:
  explicit Arguments(std::string_view command);
  ~Arguments();

  void about(std::string text) { about_ = std::move(text); }  // what the command does

  void text(const std::string& names, std::string& value, const ArgumentValue& takes,
            const std::string& help);
  void texts(const std::string& names, std::vector<std::string>& values, const ArgumentValue& takes,
             const std::string& help);
  void required(const std::string& names, std::string& value, const ArgumentValue& takes,
                const std::string& help = "");
  void choice(const std::string& names, std::string& value, const std::vector<std::string>& of,
              const std::string& help);
  // Accepts values from `low` to `high`.
  void number(const std::string& names, int& value, int low, int high, const std::string& help);
  void number(const std::string& names, double& value, double low, double high,
              const std::string& help);
  void not_negative(const std::string& names, double& value, const std::string& help);
  void hidden(const std::string& names, int& value);  // not in texts
  // `instead_of`: another flag that excludes this one.
  void flag(const std::string& names, bool& value, const std::string& help,
            const std::string& instead_of = "");
  void keep_words(std::vector<std::string>& words) { words_ = &words; }  // that parse() reads

  void parse(const std::vector<std::string>& words);
  const std::string& about() const { return about_; }
  const std::vector<ArgumentText>& list() const { return texts_; }

 private:
  std::string help() const;
  std::string advice(const std::vector<std::string>& words) const;

  std::string command_, about_;
  std::unique_ptr<CLI::App> app_;
  std::vector<ArgumentText> texts_;
  std::vector<std::string>* words_ = nullptr;
};

}  // namespace dpt
