#include "lib/archive/page_frame.hpp"

#include "lib/archive/embedded.hpp"
#include "lib/html/parts.hpp"

namespace holdfast::archive {

std::string page_frame(std::string_view title, std::string_view icon, const html::Html& body) {
  return html::fill(embedded::page_html, {{"title", title},
                                          {"icon", icon},
                                          {"style", html::page_style()},
                                          {"sprite", html::icon_sprite()},
                                          {"body", body}})
      .text();
}

void add_facts(html::Facts& list, const base::Facts& facts) {
  const auto number = [&](const char* name) { return base::fact_number(facts, name); };
  if (const auto status = number("http_status"); status > 0)
    list.add("Response", html::with_sub("HTTP " + std::to_string(status), base::fact_text(facts, "mime")));
  if (const auto all = number("resources"); all > 0) {
    const auto missing = number("resources_missing");
    list.add("Resources",
             html::with_sub(std::to_string(all), missing == 0 ? "all recorded" : std::to_string(missing) + " missing"));
  }
}

html::Html tag_list(const std::vector<std::string>& tags) {
  html::List list;
  for (const auto& tag : tags)
    list.push_back({{"tag", tag}});
  return list.empty() ? html::Html() : html::fill(embedded::tags_html, {{"tags", std::move(list)}});
}

} // namespace holdfast::archive
