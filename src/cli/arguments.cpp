#include "cli/arguments.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/stdout.h"

namespace dpt {
namespace {

// Makes the help show "--svg FILE" for the names "--svg FILE"; CLI11 alone would show the type
// TEXT.
template <class T>
CLI::Option* add(CLI::App& app, const std::string& names, T& value, const std::string& help) {
  const size_t end = names.find(' ');
  CLI::Option* option = app.add_option(names.substr(0, end), value, help);
  option->type_name("");
  if (end != names.npos) option->option_text(names.substr(end + 1));
  return option;
}

template <class T>
std::string with_range(const std::string& help, T low, T high) {
  return fmt::format("{}; {} to {}", help, low, high);
}

}  // namespace

std::vector<std::string> ArgumentText::dashed() const {
  std::vector<std::string> out;
  const std::string all = names.substr(0, names.find(' '));
  for (size_t begin = 0; begin <= all.size();) {
    const size_t end = std::min(all.find(',', begin), all.size());
    out.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::string ArgumentText::value() const {
  const size_t space = names.find(' ');
  return space == names.npos ? "" : names.substr(space + 1);
}

Arguments::Arguments(const std::string& command, const std::string& about)
    : app_(std::make_unique<CLI::App>(about, "dptrain " + command)) {}

Arguments::~Arguments() = default;

void Arguments::text(const std::string& names, std::string& value, const std::string& help) {
  texts_.push_back({.names = names, .help = help});
  add(*app_, names, value, help)->check([help](const std::string& given) {
    if (!given.empty()) return std::string();
    return fmt::format("the value is empty; pass a value ({}), or leave the argument out", help);
  });
}

void Arguments::texts(const std::string& names, std::vector<std::string>& values,
                      const std::string& help) {
  texts_.push_back({.names = names, .help = help, .many = true});
  add(*app_, names, values, help);
}

void Arguments::required(const std::string& names, std::string& value, const std::string& help) {
  texts_.push_back({.names = names, .help = help});
  add(*app_, names, value, help)->required();
}

void Arguments::choice(const std::string& names, std::string& value,
                       const std::vector<std::string>& of, const std::string& help) {
  texts_.push_back({.names = names, .help = help, .choices = of});
  add(*app_, names, value, fmt::format("{}: {}", help, fmt::join(of, ", ")))
      ->check(CLI::IsMember(of));
}

void Arguments::number(const std::string& names, int& value, int low, int high,
                       const std::string& help) {
  texts_.push_back({.names = names, .help = with_range(help, low, high)});
  add(*app_, names, value, texts_.back().help)->check(CLI::Range(low, high));
}

void Arguments::number(const std::string& names, double& value, double low, double high,
                       const std::string& help) {
  texts_.push_back({.names = names, .help = with_range(help, low, high)});
  add(*app_, names, value, texts_.back().help)->check(CLI::Range(low, high));
}

void Arguments::not_negative(const std::string& names, double& value, const std::string& help) {
  texts_.push_back({.names = names, .help = help});
  add(*app_, names, value, help)->check(CLI::NonNegativeNumber);
}

void Arguments::hidden(const std::string& names, int& value) {
  add(*app_, names, value, "")->group("");
}

void Arguments::flag(const std::string& names, bool& value, const std::string& help,
                     const std::string& instead_of) {
  texts_.push_back({.names = names, .help = help, .flag = true});
  auto* flag = app_->add_flag(names, value, help);
  if (!instead_of.empty()) flag->excludes(app_->get_option(instead_of));
}

void Arguments::parse(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == kListArguments)
    throw ArgumentList{app_->get_description(), texts_};
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // in the order that CLI11 takes
  try {
    app_->parse(reversed);
  } catch (const CLI::Success&) {
    print_stdout("{}", app_->help());
    throw HelpShown{};
  } catch (const CLI::ParseError& e) {
    throw BadWords{e.what()};
  }
}

}  // namespace dpt
