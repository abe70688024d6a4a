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

html::Html tag_list(const std::vector<std::string>& tags) {
  html::List list;
  for (const auto& tag : tags)
    list.push_back({{"tag", tag}});
  return list.empty() ? html::Html() : html::fill(embedded::tags_html, {{"tags", std::move(list)}});
}

} // namespace holdfast::archive
