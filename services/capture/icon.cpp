#include "services/capture/icon.hpp"

#include "services/capture/hook.hpp"

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

} // namespace holdfast::capture
