#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/stdout.h"

namespace dpt {

Arguments::Arguments(const std::string& command, const std::string& about)
    : app_(std::make_unique<CLI::App>(about, "dptrain " + command)) {}

Arguments::~Arguments() = default;

void Arguments::text(const std::string& names, std::string& value, const std::string& help) {
  app_->add_option(names, value, help)->check([help](const std::string& given) {
    if (!given.empty()) return std::string();
    return fmt::format("'' is no value; leave it out, or give one ({})", help);
  });
}

void Arguments::texts(const std::string& names, std::vector<std::string>& values,
                      const std::string& help) {
  app_->add_option(names, values, help);
}

void Arguments::required(const std::string& names, std::string& value, const std::string& help) {
  app_->add_option(names, value, help)->required();
}

void Arguments::choice(const std::string& names, std::string& value,
                       const std::vector<std::string>& of, const std::string& help) {
  app_->add_option(names, value, help)->check(CLI::IsMember(of));
}

void Arguments::number(const std::string& names, int& value, int low, int high,
                       const std::string& help) {
  app_->add_option(names, value, help)->check(CLI::Range(low, high));
}

void Arguments::number(const std::string& names, double& value, double low, double high,
                       const std::string& help) {
  app_->add_option(names, value, help)->check(CLI::Range(low, high));
}

void Arguments::not_negative(const std::string& names, double& value, const std::string& help) {
  app_->add_option(names, value, help)->check(CLI::NonNegativeNumber);
}

void Arguments::hidden(const std::string& names, int& value) {
  app_->add_option(names, value)->group("");
}

void Arguments::flag(const std::string& names, bool& value, const std::string& help,
                     const std::string& instead_of) {
  auto* flag = app_->add_flag(names, value, help);
  if (!instead_of.empty()) flag->excludes(app_->get_option(instead_of));
}

void Arguments::parse(const std::vector<std::string>& words) {
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
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
