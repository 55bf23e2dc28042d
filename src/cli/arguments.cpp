#include "cli/arguments.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/stdout.h"
#include "base/wrap.h"
#include "cli/command_texts.h"
#include "cli/help_text.h"
#include "spec/source.h"

namespace dpt {
namespace {

template <class T>
CLI::Option* add(CLI::App& app, const std::string& names, T& value) {
  std::string known = names.substr(0, names.find(' '));
  std::ranges::replace(known, '=', '_');  // KEY=VALUE
  return app.add_option(known, value);
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

Arguments::Arguments(std::string_view command)
    : command_(command), app_(std::make_unique<CLI::App>()) {}

Arguments::~Arguments() = default;

void Arguments::text(const std::string& names, std::string& value, const ArgumentValue& takes,
                     const std::string& help) {
  texts_.push_back({.names = names, .help = help, .takes = takes});
  add(*app_, names, value)->check([help](const std::string& given) {
    if (!given.empty()) return std::string();
    return fmt::format("the value is empty; pass a value ({}), or leave the argument out", help);
  });
}

void Arguments::texts(const std::string& names, std::vector<std::string>& values,
                      const ArgumentValue& takes, const std::string& help) {
  texts_.push_back({.names = names, .help = help, .takes = takes, .many = true});
  add(*app_, names, values);
}

void Arguments::required(const std::string& names, std::string& value, const ArgumentValue& takes,
                         const std::string& help) {
  texts_.push_back({.names = names, .help = help, .takes = takes});
  add(*app_, names, value)->required();
}

void Arguments::choice(const std::string& names, std::string& value,
                       const std::vector<std::string>& of, const std::string& help) {
  texts_.push_back({.names = names, .help = help, .takes = {.words = of}, .choice = true});
  add(*app_, names, value)->check(CLI::IsMember(of));
}

void Arguments::number(const std::string& names, int& value, int low, int high,
                       const std::string& help) {
  texts_.push_back({.names = names, .help = with_range(help, low, high)});
  add(*app_, names, value)->check(CLI::Range(low, high));
}

void Arguments::number(const std::string& names, double& value, double low, double high,
                       const std::string& help) {
  texts_.push_back({.names = names, .help = with_range(help, low, high)});
  add(*app_, names, value)->check(CLI::Range(low, high));
}

void Arguments::not_negative(const std::string& names, double& value, const std::string& help) {
  texts_.push_back({.names = names, .help = help});
  add(*app_, names, value)->check(CLI::NonNegativeNumber);
}

void Arguments::hidden(const std::string& names, int& value) { add(*app_, names, value); }

void Arguments::flag(const std::string& names, bool& value, const std::string& help,
                     const std::string& instead_of) {
  texts_.push_back({.names = names, .help = help, .flag = true});
  auto* flag = app_->add_flag(names, value);
  if (!instead_of.empty()) flag->excludes(app_->get_option(instead_of));
}

std::string Arguments::help() const {
  const size_t width = help_width();
  std::string usage = "dptrain " + command_;
  HelpEntries words, options = {{"-h, --help", "print this help and exit"}};
  for (const ArgumentText& a : texts_) {
    std::string name, text = a.help;
    for (const std::string& n : a.dashed()) name += (name.empty() ? "" : ", ") + n;
    if (!a.value().empty()) name += " " + a.value();
    if (a.choice) text += fmt::format(": {}", fmt::join(a.takes.words, ", "));
    if (a.stands_alone()) usage += fmt::format(" [{}{}]", name, a.many ? " ..." : "");
    (a.stands_alone() ? words : options).emplace_back(std::move(name), std::move(text));
  }
  std::string out =
      wrapped("Usage: " + usage + " [OPTIONS]", width) + "\n" + paragraph_text(about_, width);
  if (!words.empty()) out += "\nArguments:\n" + entries_text(words, width);
  return out + "\nOptions:\n" + entries_text(options, width);
}

// Suggests what the user meant by an option that the command does not have.
std::string Arguments::advice(const std::vector<std::string>& words) const {
  std::vector<std::string> all = {"--help"};
  bool takes_keys = false;
  for (const ArgumentText& a : texts_) {
    takes_keys = takes_keys || (a.takes.kinds & takes::setting) != 0;
    if (!a.stands_alone())
      for (std::string& name : a.dashed()) all.push_back(std::move(name));
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    if (!name.starts_with("--") || std::ranges::find(all, name) != all.end()) continue;
    const bool own_value = name.size() < words[i].size();
    const bool next = i + 1 < words.size() && !words[i + 1].starts_with('-');
    const std::string value = own_value ? words[i].substr(name.size() + 1)
                              : next    ? words[i + 1]
                                        : "VALUE";
    const std::string key = takes_keys ? spec_key_named(name.substr(2)) : "";
    if (!key.empty())
      return fmt::format("unknown option '{}'; {} is a key of the spec: {}={}", name, key, key,
                         value);
    const std::string_view near = nearest(name, {all.begin(), all.end()});
    return fmt::format("unknown option '{}'{}", name,
                       near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  }
  return "";
}

void Arguments::parse(const std::vector<std::string>& words) {
  if (words_) *words_ = words;
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // in the order that CLI11 takes
  try {
    app_->parse(reversed);
  } catch (const CLI::Success&) {
    print_stdout("{}", help());
    throw HelpShown{};
  } catch (const CLI::ExtrasError& e) {
    const std::string text = advice(words);
    throw BadWords{text.empty() ? e.what() : text};
  } catch (const CLI::ParseError& e) {
    throw BadWords{e.what()};
  }
}

}  // namespace dpt
