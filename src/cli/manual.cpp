// dptrain manual: the manual page dptrain(1), for `man`.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/command_texts.h"

namespace dpt::commands {
namespace {

// Text as roff prints it: no line is a request, no character an escape, a dash is ASCII's.
std::string roff(std::string_view text) {
  std::string out;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    begins_line = c == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '~')
      out += "\\(ti";
    else if (c == '`')
      out += "\\(ga";
    else
      out += c;
  }
  return out;
}

// Prose, whose lines `man` fills: but those that begin with blanks stay as they are.
std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(' '))
      out += fmt::format(".br\n{}\n", roff(line));
    else
      out += roff(line) + "\n";
  }
  return out;
}

std::string synopsis(const Command& command, const std::vector<ArgumentText>& arguments) {
  std::string out = fmt::format("\\fBdptrain {}\\fR", roff(command.name));
  bool options = false;
  for (const ArgumentText& a : arguments) options = options || !a.stands_alone();
  if (options) out += " [\\fIoptions\\fR]";
  for (const ArgumentText& a : arguments) {
    if (!a.stands_alone()) continue;
    if (a.takes.kinds & takes::setting)
      out += " [\\fIkey\\fR=\\fIvalue\\fR ...]";
    else
      out += a.many ? fmt::format(" [\\fI{}\\fR ...]", roff(a.names))
                    : fmt::format(" \\fI{}\\fR", roff(a.names));
  }
  return out;
}

std::string argument_entry(const ArgumentText& a) {
  std::string names;
  for (const std::string& name : a.dashed())
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  if (a.stands_alone()) names = fmt::format("\\fI{}\\fR", roff(a.names));
  if (a.takes.kinds & takes::setting) names = "\\fIkey\\fR=\\fIvalue\\fR";
  if (!a.value().empty()) names += fmt::format(" \\fI{}\\fR", roff(a.value()));
  std::string help = a.help;
  if (a.choice) help += fmt::format(": {}", fmt::join(a.takes.words, ", "));
  return fmt::format(".TP\n{}\n{}\n", names, roff(help));
}

std::string command_section(const Command& command) {
  Arguments arguments(command.name);
  command.declare(arguments);
  std::string out = fmt::format(".SS {}\n{}\n.PP\n{}", roff(command.name),
                                synopsis(command, arguments.list()), paragraphs(arguments.about()));
  for (const ArgumentText& a : arguments.list()) out += argument_entry(a);
  return out;
}

std::string meanings(std::string_view title, std::span<const Meaning> of) {
  std::string out = fmt::format(".SH {}\n", title);
  for (const Meaning& m : of) out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", m.name, roff(m.text));
  return out;
}

std::string manual_page() {
  std::string out =
      ".TH DPTRAIN 1 \"\" \"dptrain " DPT_VERSION
      "\" \"User Commands\"\n"
      ".SH NAME\n"
      "dptrain \\- train neural networks described in one YAML file\n"
      ".SH SYNOPSIS\n"
      "\\fBdptrain\\fR \\fISPEC\\fR [\\fIkey\\fR=\\fIvalue\\fR ...]\n"
      ".br\n"
      "\\fBdptrain\\fR \\fICOMMAND\\fR [\\fIarguments\\fR]\n"
      ".br\n"
      "\\fBdptrain help\\fR \\fICOMMAND\\fR\n"
      ".br\n"
      "\\fBdptrain \\-\\-version\\fR\n"
      ".SH DESCRIPTION\n"
      "A spec is a YAML file that names data, layers, loss and optimizer. Without a command,\n"
      "dptrain trains what the spec describes: on one device, with data parallelism in one "
      "process\n"
      "(dp) or in several (ddp), or in a pipeline. An argument \\fIkey\\fR=\\fIvalue\\fR replaces "
      "a\n"
      "value of the spec. \\fBdptrain explain\\fR explains every key.\n"
      ".PP\n"
      "A spec \\fIconfigs/NAME.yaml\\fR that does not exist is read from the configs installed "
      "with\n"
      "dptrain, in \\fIshare/dptrain/configs\\fR of its prefix.\n"
      ".SH COMMANDS\n";
  for (const Command& c : command_table()) out += command_section(c);
  out += meanings("ENVIRONMENT", environment_variables());
  out += meanings("EXIT STATUS", exit_codes());
  out += ".SH EXAMPLES\n";
  for (const auto& [command, text] :
       {Meaning{"dptrain configs/ddp_toy.yaml devices=4", "Trains a toy model on four processes."},
        {"dptrain check my.yaml", "Reports all errors in a spec, with line and column."},
        {"dptrain bench my.yaml --compare dp,ddp", "Measures the speed-up over one device."}})
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(command), roff(text));
  return out;
}

void declare_manual(Arguments& arguments, NoArguments&) {
  arguments.about("Prints the manual page; read it with `dptrain manual | man -l -`.");
}

int run_manual(NoArguments&) {
  print_stdout("{}", manual_page());
  return 0;
}

}  // namespace

Command manual() {
  return make_command("manual", "print the manual page, for man", declare_manual, run_manual);
}

}  // namespace dpt::commands
