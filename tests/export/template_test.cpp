#include "export/template.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace dpt {
namespace {

std::string refusal(std::string_view text, const TemplateValues& values) {
  try {
    return "filled: " + fill(text, values);
  } catch (const Error& e) {
    const std::string what = e.what();
    return what.substr(what.find(": ") == what.npos ? 0 : what.find(": ") + 2);
  }
}

TEST_CASE("values are put in place") {
  CHECK(fill("a = {{x}}, {{y}}\n", {{"x", "1"}, {"y", 2}}) == "a = 1, 2\n");
  CHECK(fill("{{x}}{{x}}", {{"x", "ab"}}) == "abab");
  CHECK(fill("", {}) == "");
}

TEST_CASE("braces of Python are no tags") {
  const char* const text =
      "f'{{\"step\": {step}, \"loss\": {loss:.9g}}}' {{}} {{ x }} {{1}} {{X}}\n";
  CHECK(fill(text, {}) == text);
}

TEST_CASE("lines of a value are indented as its tag") {
  CHECK(fill("if x:\n    {{lines}}\nend\n", {{"lines", "a\n\n  b\n"}}) ==
        "if x:\n    a\n\n      b\nend\n");
  CHECK(fill("    m = {{call}}\n", {{"call", "f(\n    1,\n)"}}) ==
        "    m = f(\n        1,\n    )\n");
  CHECK(fill("a\n    {{lines}}\nb\n", {{"lines", ""}}) == "a\nb\n");
  CHECK(fill("{{lines}}\nb\n", {{"lines", "\n\na"}}) == "\n\na\nb\n");
}

TEST_CASE("sections are written if their value holds") {
  const char* const text =
      "a\n"
      "  {{#on}}\n"
      "  b{{^on}}never{{/on}}\n"
      "  {{/on}}\n"
      "{{^on}}\n"
      "c\n"
      "{{/on}}\n"
      "f({{#on}}x, {{/on}}y)\n";
  CHECK(fill(text, {{"on", true}}) == "a\n  b\nf(x, y)\n");
  CHECK(fill(text, {{"on", false}}) == "a\nc\nf(y)\n");
  CHECK(fill("{{#x}}\nx = {{x}}\n{{/x}}\n", {{"x", "3"}}) == "x = 3\n");
  CHECK(fill("{{#x}}\nx = {{x}}\n{{/x}}\n", {{"x", ""}}) == "");
}

TEST_CASE("sections lie within sections") {
  const char* const text = "{{#a}}\n{{#b}}\nboth\n{{/b}}\n{{^b}}\na\n{{/b}}\n{{/a}}\n";
  CHECK(fill(text, {{"a", true}, {"b", true}}) == "both\n");
  CHECK(fill(text, {{"a", true}, {"b", false}}) == "a\n");
  CHECK(fill(text, {{"a", false}, {"b", true}}) == "");
  CHECK(fill(text, {{"a", false}, {"b", false}}) == "");
}

TEST_CASE("a value that is missing or not named is an error") {
  CHECK(refusal("{{x}}\n", {}).ends_with("the template's 'x' has no value"));
  CHECK(refusal("{{#a}}\n{{x}}\n{{/a}}\n", {{"a", false}})
            .ends_with("the template's 'x' has no value"));
  CHECK(refusal("a\n", {{"x", "1"}}).ends_with("the template does not name 'x'"));
  CHECK(refusal("{{x}}\n", {{"x", true}}).ends_with("the template's 'x' is a flag"));
}

TEST_CASE("sections that do not match are errors") {
  CHECK(refusal("{{#a}}\n", {{"a", true}}).ends_with("a section of the template is not closed"));
  CHECK(refusal("{{/a}}\n", {{"a", true}})
            .ends_with("the template's section 'a' is closed where it is not open"));
  CHECK(refusal("{{#a}}{{#b}}{{/a}}{{/b}}", {{"a", true}, {"b", true}})
            .ends_with("the template's section 'a' is closed where it is not open"));
}

TEST_CASE("templates are found by their names") {
  CHECK(torch_template("program").find("as a PyTorch program") != std::string_view::npos);
  CHECK_THROWS_AS(torch_template("nothing"), Error);
}

}  // namespace
}  // namespace dpt
