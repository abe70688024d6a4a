#include "services/capture/extract/icon.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/formats/encoding.hpp"
#include "lib/formats/html.hpp"
#include "lib/formats/link.hpp"
#include "services/capture/hook.hpp"

namespace holdfast::capture {

namespace {

// An XML declaration, comments and a document type may stand in front of the root.
bool is_svg(std::string_view bytes) {
  constexpr std::size_t kWithin = 8192;
  const auto text = lower_case(bytes.substr(0, kWithin));
  std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  for (;;) {
    at = text.find_first_not_of(" \t\r\n", at);
    if (at == std::string::npos) return false;
    if (text.compare(at, 4, "<svg") == 0) return true;
    const bool comment = text.compare(at, 4, "<!--") == 0;
    if (!comment && text.compare(at, 5, "<?xml") != 0 && text.compare(at, 9, "<!doctype") != 0) return false;
    const auto end = text.find(comment ? "-->" : ">", at);
    if (end == std::string::npos) return false;
    at = end + (comment ? 3 : 1);
  }
}

} // namespace

std::string icon_kind(std::string_view bytes) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {{"image/x-icon", "ico"}, {"image/png", "png"},
                                                                      {"image/gif", "gif"},    {"image/jpeg", "jpg"},
                                                                      {"image/webp", "webp"},  {"image/avif", "avif"}};
  const auto type = formats::media_of_bytes(bytes);
  for (const auto& [known, kind] : kKinds)
    if (type == known) return std::string(kind);
  return is_svg(bytes) ? "svg" : "";
}

std::string data_of(std::string_view url) {
  const auto comma = url.find(',');
  if (comma == std::string_view::npos) return {};
  const bool coded = lower_case(url.substr(0, comma)).ends_with(";base64");
  auto bytes = base::percent_decode(url.substr(comma + 1));
  return coded ? base::base64_decode(bytes) : bytes;
}

std::vector<std::string> linked_icons(const std::string& html, const std::string& url) {
  std::string base = url;
  std::vector<std::string> icons, touch_icons;
  formats::scan_html(html, [&](const formats::Token& token) {
    if (token.kind != formats::Token::Kind::start) return true;
    const auto& href = token.attribute("href");
    if (token.text == "base" && !href.empty()) base = formats::join_url(url, href).value_or(url);
    if (token.text == "link" && !href.empty()) {
      const auto words = " " + lower_case(token.attribute("rel")) + " ";
      const bool data = lower_case(href.substr(0, 5)) == "data:";
      const auto icon = data ? std::optional(href) : formats::absolute_link(base, href);
      if (icon && words.find(" icon ") != std::string::npos)
        icons.push_back(*icon);
      else if (icon && words.find(" apple-touch-icon ") != std::string::npos)
        touch_icons.push_back(*icon);
    }
    return token.text != "body";
  });
  icons.insert(icons.end(), touch_icons.begin(), touch_icons.end());
  return icons;
}

} // namespace holdfast::capture
