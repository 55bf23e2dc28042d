#include "export/template.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"

namespace dpt {
namespace {

struct Tag {
  size_t begin = 0, end = 0;  // in the searched text
  char kind = '=';            // '#', '^', '/'; '=': a value
  std::string_view name;
};

std::optional<Tag> find_tag(std::string_view text, size_t from) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_", kKinds = "#^/";
  for (size_t at = text.find("{{", from); at != text.npos; at = text.find("{{", at + 1)) {
    size_t begin = at + 2;
    const bool section = begin < text.size() && kKinds.find(text[begin]) != kKinds.npos;
    const char kind = section ? text[begin++] : '=';
    const size_t end = std::min(text.find_first_not_of(kLetters, begin), text.size());
    if (end > begin && text.substr(end).starts_with("}}"))
      return Tag{
          .begin = at, .end = end + 2, .kind = kind, .name = text.substr(begin, end - begin)};
  }
  return {};
}

std::string_view without_end(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

class Filler {
 public:
  explicit Filler(const TemplateValues& values) : values_(values) {}

  std::string run(std::string_view text) {
    while (!text.empty()) {
      const size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
      line(text.substr(0, length));
      text.remove_prefix(length);
    }
    require(open_.empty(), "a section of the template is not closed");
    for (const auto& [name, value] : values_)
      require(named_.contains(name), fmt::format("the template does not name '{}'", name));
    return std::move(out_);
  }

 private:
  struct Section {
    std::string_view name;
    bool written = false;
  };

  bool written() const { return open_.empty() || open_.back().written; }

  const TemplateValue& value(std::string_view name) {
    const auto found = values_.find(name);
    require(found != values_.end(), fmt::format("the template's '{}' has no value", name));
    named_.emplace(name);
    return found->second;
  }

  const std::string& text(std::string_view name) {
    const std::string* const found = value(name).text();
    require(found, fmt::format("the template's '{}' is a flag", name));
    return *found;
  }

  void line(std::string_view line) {
    const size_t margin = std::min(line.find_first_not_of(' '), line.size());
    const auto tag = find_tag(line, margin);
    const bool alone = tag && tag->begin == margin && tag->end == without_end(line).size();
    if (alone && tag->kind == '=') {
      const std::string& lines = text(tag->name);
      if (written() && !lines.empty()) out_ += indent(without_end(lines), margin) + "\n";
    } else if (alone) {
      section(*tag);
    } else {
      pieces(line, margin);
    }
  }

  void pieces(std::string_view line, size_t margin) {
    size_t at = 0;
    for (auto tag = find_tag(line, 0); tag; tag = find_tag(line, at)) {
      if (written()) out_ += line.substr(at, tag->begin - at);
      at = tag->end;
      if (tag->kind != '=') {
        section(*tag);
        continue;
      }
      // Its further lines are indented as this one.
      const std::string& value = text(tag->name);
      if (written()) out_ += indent(value, margin).substr(value.empty() ? 0 : margin);
    }
    if (written()) out_ += line.substr(at);
  }

  void section(const Tag& tag) {
    if (tag.kind == '/') {
      require(!open_.empty() && open_.back().name == tag.name,
              fmt::format("the template's section '{}' is closed where it is not open", tag.name));
      open_.pop_back();
      return;
    }
    const bool holds = value(tag.name).holds() == (tag.kind == '#');
    open_.push_back({.name = tag.name, .written = written() && holds});
  }

  const TemplateValues& values_;
  std::set<std::string, std::less<>> named_;
  std::vector<Section> open_;
  std::string out_;
};

}  // namespace

std::string fill(std::string_view text, const TemplateValues& values) {
  return Filler(values).run(text);
}

std::string indent(std::string_view text, size_t columns) {
  std::string out;
  bool fresh = true;
  for (const char c : text) {
    if (fresh && c != '\n') out.append(columns, ' ');
    out += c;
    fresh = c == '\n';
  }
  return out;
}

}  // namespace dpt
