#include "report/html.h"

#include <fmt/format.h>

#include "report/svg.h"

namespace dpt::html {
namespace {

// Colors that are distinguishable with color blindness (Paul Tol's "bright"), lighter on dark.
constexpr std::string_view kColors = R"(:root{color-scheme:light dark;
--back:#fff;--fore:#1d2126;--soft:#5b636d;--line:#d9dde2;--box:#f5f6f8;--heat:68,119,170;
--c0:#3a6ea5;--c1:#d65f3d;--c2:#1f7a3a;--c3:#8b2a6b;--c4:#8a7a10;--c5:#1d8aa8;--c6:#c23b52;
--c7:#6b6b6b}
@media (prefers-color-scheme:dark){:root{
--back:#14171a;--fore:#e6e8eb;--soft:#9aa3ad;--line:#343a41;--box:#1d2125;--heat:45,95,160;
--c0:#6aa5e0;--c1:#f08a68;--c2:#5cc27c;--c3:#d67ab8;--c4:#d6c455;--c5:#62c5de;--c6:#f07a8c;
--c7:#a8a8a8}}
)";

// Of what line charts consist of.
constexpr std::string_view kCharts = R"(
.grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}
.curve{fill:none;stroke-width:2;stroke-linejoin:round}.thin{stroke-width:1;opacity:.75}
)";

// Letters of charts grow where the charts shrink with the screen. Pictures that were drawn for
// white paper are inverted on dark screens, and scroll where they would become too small to read.
constexpr std::string_view kStyle = R"(*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:76rem;background:var(--back);color:var(--fore);
font:15px/1.45 system-ui,sans-serif}
h1{font-size:1.5rem;margin:.2rem 0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:1.6rem 0 .6rem}
p{margin:.4rem 0}.soft{color:var(--soft);overflow-wrap:anywhere}
.state{display:inline-block;padding:0 .55em;border:1px solid var(--soft);border-radius:1em;
font-size:.85rem;font-weight:normal;vertical-align:middle}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.25rem,1fr));gap:.6rem}
.tile{background:var(--box);border-radius:.4rem;padding:.5rem .55rem}.tile b{display:block;
font-size:1.3rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr));gap:1rem}
figure{margin:0;min-width:0}figcaption{font-weight:600;margin-bottom:.15rem}
.legend{display:flex;flex-wrap:wrap;gap:.1rem .9rem;font-size:.85rem;color:var(--soft)}
.legend svg{width:1.6em;height:.7em;margin-right:.3em}
svg{display:block;width:100%;height:auto}.legend svg{display:inline-block}
figure text{fill:var(--soft);font:13px system-ui,sans-serif}
@media (max-width:30rem){figure text{font-size:15px}}
.wide{overflow-x:auto}.drawn{margin:.6rem 0}.drawn svg{min-width:44rem;max-width:60rem}
@media (prefers-color-scheme:dark){.drawn svg{filter:invert(.92) hue-rotate(180deg)}}
table{border-collapse:collapse;font-size:.9rem}
th,td{padding:.2rem .7rem .2rem 0;text-align:left;vertical-align:top;white-space:nowrap}
td{border-top:1px solid var(--line)}.right{text-align:right;font-variant-numeric:tabular-nums}
.facts td{white-space:normal;overflow-wrap:anywhere}.facts td:first-child{color:var(--soft);
white-space:nowrap}
.heat th,.heat td{padding:.25rem .4rem;text-align:right;border:1px solid var(--back)}
.bar{display:flex;height:1.3rem;border-radius:.3rem;overflow:hidden;background:var(--box)}
.bar i{display:block}
pre{background:var(--box);border-radius:.4rem;padding:.7rem;overflow-x:auto;font-size:.8rem;
line-height:1.35}
summary{cursor:pointer;font-weight:600;margin:.4rem 0}code{overflow-wrap:anywhere}
@media (max-width:30rem){.facts td:first-child{white-space:normal;min-width:6rem}}
)";

std::string colors() {
  std::string out;
  for (int i = 0; i < 8; ++i)
    out += fmt::format(
        ".c{0}{{stroke:var(--c{0})}}.f{0}{{fill:var(--c{0})}}.b{0}{{background:"
        "var(--c{0})}}\n",
        i);
  return out;
}

}  // namespace

std::string picture(const std::string& svg, std::string_view alt) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out =
      fmt::format("<div class=\"wide\"><img alt=\"{}\" src=\"data:image/svg+xml,", text(alt));
  for (const char c : svg) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                       (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '.' || byte == '_';
    if (plain)
      out += c;
    else
      ((out += '%') += kDigits[byte >> 4]) += kDigits[byte & 15];
  }
  return out + "\"></div>\n";
}

std::string chart_style() {
  return fmt::format(
      "{}{}{}text{{fill:var(--soft);font:13px system-ui,sans-serif}}.back{{fill:var(--back)}}"
      ".title{{fill:var(--fore);font-weight:600}}\n",
      kColors, kCharts, colors());
}

std::string text(std::string_view content) {
  std::string out;
  for (const char c : svg::escaped(content)) {
    if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += c;
  }
  return out;
}

std::string page(std::string_view title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>{}</title>\n<style>\n{}{}{}{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      text(title), kColors, kStyle, kCharts, colors(), body);
}

std::string section(std::string_view title, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", text(title), content);
}

std::string folded(std::string_view title, std::string_view content) {
  return fmt::format("<details>\n<summary>{}</summary>\n<pre>{}</pre>\n</details>\n", text(title),
                     text(content));
}

std::string table(const Table& rows, size_t right) {
  std::string out = "<div class=\"wide\"><table>\n";
  for (const auto& row : rows) {
    const std::string_view cell = &row == rows.data() ? "th" : "td";
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      out += fmt::format("<{0}{1}>{2}</{0}>", cell, i >= right ? " class=\"right\"" : "",
                         text(row[i]));
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string color_class(size_t n) { return fmt::format("c{}", n % 8); }

}  // namespace dpt::html
