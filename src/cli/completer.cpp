#include "cli/completer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/command_texts.h"
#include "cli/printed_numbers.h"
#include "cli/run_argument.h"
#include "cli/spec_argument.h"
#include "cli/trained_run.h"
#include "spec/metric_name.h"
#include "train/run_numbers.h"

namespace dpt {
namespace {

struct Candidate {
  std::string word, help;
};

// Null: there is none.
const ArgumentText* option_named(const std::string& name, const std::vector<ArgumentText>& list) {
  for (const ArgumentText& a : list)
    if (!a.stands_alone() && std::ranges::count(a.dashed(), name) > 0) return &a;
  return nullptr;
}

// Which argument a word is that `place` words without dashes precede. Null: there is none.
const ArgumentText* argument_at(size_t place, const std::vector<ArgumentText>& list) {
  size_t at = 0;
  for (const ArgumentText& a : list)
    if (a.stands_alone() && (at++ == place || a.many)) return &a;
  return nullptr;
}

class Completer {
 public:
  // words: at least one; the last one is completed.
  explicit Completer(std::vector<std::string> words) : word_(std::move(words.back())) {
    words.pop_back();
    const bool first = words.empty();
    if (first || (words.size() == 1 && words[0] == "help"))
      for (const Command& c : command_table()) add(std::string(c.name), c.summary);
    if (!first && words[0] == "help") return;
    if (first) add("help", "the arguments of a command");
    if (first) add("--version", "print the version");
    auto command = command_table().begin();
    if (const auto named =
            std::ranges::find(command_table(), first ? "" : words[0], &Command::name);
        named != command_table().end()) {
      command = named;
      words.erase(words.begin());
    }
    Arguments arguments(command->name);
    command->declare(arguments);
    complete(arguments.list(), words);
  }

  const std::vector<Candidate>& candidates() const { return candidates_; }
  std::string_view files() const { return files_; }

 private:
  void complete(const std::vector<ArgumentText>& list, const std::vector<std::string>& words) {
    const ArgumentText* value_of = nullptr;  // the option whose value follows
    for (const std::string& word : words) {
      const ArgumentText* option = option_named(word, list);
      if (value_of == nullptr && !word.starts_with('-')) alone_.push_back(word);
      value_of = value_of == nullptr && option && !option->flag ? option : nullptr;
    }
    if (const ArgumentText* first = argument_at(0, list)) first_takes_ = first->takes.kinds;
    const size_t equals = word_.find('=');
    if (value_of == nullptr && !word_.starts_with('-')) {
      value_of = argument_at(alone_.size(), list);
    } else if (value_of == nullptr && equals != word_.npos) {
      value_of = option_named(word_.substr(0, equals), list);
      prefix_ = word_.substr(0, equals + 1);
    }
    if (value_of != nullptr) return add_values(value_of->takes);
    for (const ArgumentText& a : list)
      for (const std::string& name : a.dashed())
        if (word_.starts_with('-') && name.starts_with('-')) add(name, a.help);
    if (word_.starts_with('-')) add("--help", "print help");
  }

  void add(const std::string& word, std::string_view help = "") {
    std::string whole = prefix_ + word;
    if (whole.starts_with(word_) &&
        std::ranges::find(candidates_, whole, &Candidate::word) == candidates_.end())
      candidates_.push_back({std::move(whole), std::string(help)});
  }

  void add_values(const ArgumentValue& value) {
    if (const size_t comma = word_.rfind(','); value.list && comma != word_.npos)
      prefix_ = word_.substr(0, comma + 1);
    const std::string part = word_.substr(prefix_.size());
    for (const std::string& word : value.words) add(word);
    if (value.kinds & takes::key)
      for (const OverrideKey& key : override_keys(registries())) add(key.path);
    if (value.kinds & takes::setting) add_settings(part);
    if (value.kinds & (takes::metric | takes::limit | takes::number | takes::result))
      add_numbers(value.kinds);
    if (value.kinds & takes::run)
      for (const std::string& run : runs_named(part)) add(run);
    if (value.kinds & takes::spec) files_ = "specs";
    // A run's directory, if no name of a run fits.
    const bool elsewhere = value.kinds == takes::run && candidates_.empty();
    if (value.kinds & takes::file || elsewhere) files_ = "files";
  }

  void add_settings(const std::string& part) {
    const size_t equals = part.find('=');
    for (const OverrideKey& key : override_keys(registries())) {
      if (equals == part.npos) add(key.path + "=");
      if (key.path != part.substr(0, equals)) continue;
      for (const std::string& value : key.values) add(fmt::format("{}={}", key.path, value));
      if (key.names_file && equals != part.npos) files_ = "files";
    }
  }

  void add_numbers(unsigned kinds) {
    Spec spec = spec_of_line();
    if (kinds & takes::result) spec.evaluate.on = true;  // as `dptrain eval` does
    for (const std::string& metric : metrics_of(spec)) {
      if (kinds & takes::metric) add(metric);
      if (kinds & takes::limit) add(metric + "=");
      if (kinds & takes::result) add(std::string(without_set(metric)));
    }
    if (kinds & (takes::metric | takes::number))
      for (const std::string& name : printable_names(spec))
        if (kinds & takes::number || name.starts_with(kBestPrefix)) add(name);
  }

  // The spec that the line names, or whose run it names. If it cannot be read: one that has all
  // metrics.
  Spec spec_of_line() {
    SpecArgument argument{.path = alone_.empty() ? "" : alone_[0], .overrides = {}};
    for (const std::string& word : alone_)
      if (&word != &alone_[0] && word.find('=') != word.npos) argument.overrides.push_back(word);
    try {
      if (first_takes_ & takes::run && (alone_.empty() || names_run(argument.path)))
        argument.path = find_run(argument.path) + "/spec.resolved.yaml";
      loaded_ = load(argument);
      return loaded_.spec;
    } catch (const BadSpec&) {
    } catch (const Error&) {
    }
    Spec all;
    all.evaluate.on = true;
    for (const std::string_view metric : kNumberMetrics)
      all.evaluate.metrics.push_back({.value = std::string(metric), .where = {}});
    return all;
  }

  std::string word_, prefix_;  // prefix_: the part of the word that is complete
  std::vector<std::string> alone_;
  unsigned first_takes_ = 0;  // what the first argument without dashes takes
  LoadedSpec loaded_;
  std::vector<Candidate> candidates_;
  std::string_view files_ = "words";
};

// A line as bash splits it.
struct BashLine {
  std::vector<std::string> words = {""};
  size_t kept = 0;      // characters of the last word that a completion does not replace
  bool quoted = false;  // a quotation mark is open
};

BashLine split(std::string_view line, std::string_view breaks) {
  BashLine out;
  char quote = 0;
  bool blank = false;  // the word before has ended
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      blank = true;
      out.kept = 0;
      continue;
    }
    if (std::exchange(blank, false)) out.words.emplace_back();
    std::string& word = out.words.back();
    const bool mark = c == '"' || c == '\'';
    if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      word += line[++i];
    } else if (mark && (quote == 0 || quote == c)) {
      quote = quote == 0 ? c : '\0';
      out.kept = word.size();
    } else {
      word += c;
      if (quote == 0 && breaks.find(c) != breaks.npos) out.kept = word.size();
    }
  }
  if (blank) out.words.emplace_back();
  out.quoted = quote != 0;
  return out;
}

std::string escaped(std::string_view word) {
  constexpr std::string_view kSpecial = " \t\n\\'\"`$&|;<>()*?[]{}!#";
  std::string out;
  for (const char c : word) {
    if (kSpecial.find(c) != kSpecial.npos) out += '\\';
    out += c;
  }
  return out;
}

std::string for_bash(std::string_view before_cursor, std::string_view breaks) {
  BashLine line = split(before_cursor, breaks);
  if (line.words.size() < 2) return "words\n\n";  // the program's name
  const Completer completer({line.words.begin() + 1, line.words.end()});
  std::string out = fmt::format("{}\n{}\n", completer.files(), line.words.back().substr(line.kept));
  for (const Candidate& c : completer.candidates()) {
    const std::string rest = c.word.substr(line.kept);
    out += (line.quoted || completer.files() != "words" ? rest : escaped(rest)) + "\n";
  }
  return out;
}

}  // namespace

std::string completions(const std::vector<std::string>& words) {
  if (words.size() < 2) throw BadWords{"__complete: expected a shell and words", "completion"};
  if (words[0] == "bash") return for_bash(words[1], words.back());
  const Completer completer({words.begin() + 1, words.end()});
  std::string out = fmt::format("{}\n", completer.files());
  for (const Candidate& c : completer.candidates())
    out += c.help.empty() ? c.word + "\n" : fmt::format("{}\t{}\n", c.word, c.help);
  return out;
}

}  // namespace dpt
