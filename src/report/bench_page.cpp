// The page about a benchmark, from the files that it wrote.
#include <fmt/format.h>

#include "base/fail.h"
#include "base/units.h"
#include "formats/json.h"
#include "report/html.h"
#include "report/numbers.h"
#include "report/report.h"

namespace dpt {
namespace {

std::string text_at(const Json& row, std::string_view key) {
  const Json* const found = row.find(key);
  return found && found->text() ? *found->text() : "";
}

double number_at(const Json& row, std::string_view key) {
  const Json* const found = row.find(key);
  return found ? found->number().value_or(0) : 0;
}

html::Table results(const Json::Array& rows) {
  html::Table out = {{"mode", "precision", "devices", "batch", "samples/s", "speed-up",
                      "efficiency", "compute", "communication", "waiting", "memory"}};
  for (const Json& r : rows) {
    const auto share = [&](const char* key) { return percent_text(number_at(r, key)); };
    out.push_back({text_at(r, "mode"), text_at(r, "precision"),
                   fmt::format("{:.0f}", number_at(r, "devices")),
                   fmt::format("{:.0f}", number_at(r, "batch_size")),
                   number_text(number_at(r, "samples_per_second")),
                   ratio_text(number_at(r, "speedup")), share("efficiency"), share("compute_share"),
                   share("communication_share"), share("waiting_share"),
                   number_text(number_at(r, "memory_peak_bytes") / kMiB) + " MiB"});
  }
  return out;
}

}  // namespace

std::string bench_page(std::string_view json, const std::string& svg) {
  const auto root = Json::parse(json);
  const Json* const rows = root ? root->find("rows") : nullptr;
  if (!rows || rows->items().empty())
    fail(Fault::data, "bench.json has no rows; run `dptrain bench` again");
  const Json& first = rows->items()[0];
  const std::string name = text_at(first, "spec");
  std::string body =
      fmt::format("<h1>{}</h1>\n<p>Measured by dptrain bench: each device has {}.</p>\n",
                  html::text(name), html::text(text_at(first, "device_has")));
  for (const char* key : {"machine", "data"})
    body += fmt::format("<p class=\"soft\">{}: {}</p>\n", key, html::text(text_at(first, key)));
  constexpr size_t kFirstNumber = 2;
  body += html::section("Results", html::table(results(rows->items()), kFirstNumber));
  std::string reasons;
  for (const Json& r : rows->items())
    if (const std::string text = text_at(r, "reason"); !text.empty())
      reasons += fmt::format("<p>{}</p>\n", html::text(text));
  body += html::section("Reasons", reasons);
  if (!svg.empty()) body += html::section("Picture", html::picture(svg, "the rows as a picture"));
  return html::page(name + " (bench)", body);
}

}  // namespace dpt
