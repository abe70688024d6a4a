#include "services/capture/icon.hpp"

#include "lib/formats/html.hpp"
#include "services/capture/hook.hpp"
#include "services/capture/link.hpp"

namespace holdfast::capture {

namespace {

// An XML declaration, comments and a document type may stand in front of the root.
bool is_svg(std::string_view bytes) {
  constexpr std::size_t kWithin = 8192;
  const auto text = lower(bytes.substr(0, kWithin));
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
  using namespace std::string_view_literals;
  if (bytes.size() >= 3 && bytes.starts_with("\0\0"sv) && (bytes[2] == 1 || bytes[2] == 2)) return "ico";
  if (bytes.starts_with("\x89PNG\r\n\x1a\n"sv)) return "png";
  if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) return "gif";
  if (bytes.starts_with("\xff\xd8\xff")) return "jpg";
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) return "webp";
  return is_svg(bytes) ? "svg" : "";
}

std::vector<std::string> linked_icons(const std::string& html, const std::string& url) {
  std::string base = url;
  std::vector<std::string> icons, touch_icons;
  formats::scan_html(html, [&](const formats::Token& token) {
    if (token.kind != formats::Token::Kind::start) return true;
    const auto& href = token.attribute("href");
    if (token.text == "base" && !href.empty()) base = join_url(url, href).value_or(url);
    if (token.text == "link" && !href.empty()) {
      const auto words = " " + lower(token.attribute("rel")) + " ";
      const auto icon = absolute_link(base, href);
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
