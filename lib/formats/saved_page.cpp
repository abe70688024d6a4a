#include "lib/formats/saved_page.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/encoding.hpp"

#include <algorithm>
#include <map>

namespace holdfast::formats {

namespace {

constexpr std::size_t kMostParts = 20'000, kLongestHead = 64u << 10, kLongestBoundary = 200, kLongestValue = 8000;
constexpr int kDeepestPart = 3;
constexpr std::string_view kSingleFile = "Page saved with SingleFile", kLegacy = "Archive processed by SingleFile";

// Takes the lines up to an empty one off the text. Fields of a head that is too long are left out.
PartFields take_head(std::string_view& text) {
  PartFields fields;
  std::string* last = nullptr;
  for (std::size_t read = 0; !text.empty();) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) break;
    read += line.size();
    if (read > kLongestHead) {
      last = nullptr;
    } else if (line[0] == ' ' || line[0] == '\t') {
      if (last != nullptr) last->append(" ").append(base::trimmed(line));
    } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
      const auto [field, is_new] = fields.try_emplace(base::lower_case(base::trimmed(line.substr(0, colon))),
                                                      base::trimmed(line.substr(colon + 1)));
      last = is_new ? &field->second : nullptr;
    }
  }
  return fields;
}

std::string decoded(std::string_view body, const std::string& encoding) {
  const auto name = base::lower_case(encoding);
  if (name == "base64") return base::base64_decode(body);
  return name == "quoted-printable" ? quoted_printable(body) : std::string(body);
}

class MhtmlReader {
public:
  SavedPage read(std::string_view text) {
    const auto head = take_head(text);
    page_.url = part_field(head, "snapshot-content-location");
    page_.date = part_field(head, "date");
    take_part(head, text, 0);
    const auto is_document = [](const auto& part) {
      const auto type = base::lower_case(part.type);
      return type.starts_with("text/html") || type.starts_with("application/xhtml+xml");
    };
    auto root = std::find_if(page_.parts.begin(), page_.parts.end(), [&](const auto& part) {
      return is_document(part) && (page_.url.empty() || part.url == page_.url);
    });
    if (root == page_.parts.end()) root = std::find_if(page_.parts.begin(), page_.parts.end(), is_document);
    if (root == page_.parts.end()) throw base::Error(base::ErrorClass::usage, "the MHTML file has no document of HTML");
    std::rotate(page_.parts.begin(), root, root + 1);
    if (page_.url.empty()) page_.url = page_.parts.front().url;
    return std::move(page_);
  }

private:
  void take_part(const PartFields& head, std::string_view body, int depth) {
    const auto type = part_field(head, "content-type");
    if (base::lower_case(type).starts_with("multipart/")) {
      if (depth == kDeepestPart || part_parameter(type, "boundary=").empty())
        page_.problem = "a part with parts cannot be read";
      else if (!each_part(body, type,
                          [&](const auto& of_part, auto part) {
                            take_part(of_part, part, depth + 1);
                            return page_.parts.size() <= kMostParts;
                          }) &&
               page_.problem.empty())
        page_.problem = "it is cut: it has no end";
      return;
    }
    if (page_.parts.size() == kMostParts) {
      page_.problem = "it has more than " + std::to_string(kMostParts) + " parts; the others are left out";
      return;
    }
    auto url = part_field(head, "content-location");
    auto id = part_field(head, "content-id");
    if (id.starts_with('<') && id.ends_with('>')) id = id.substr(1, id.size() - 2);
    if (!id.empty()) id = "cid:" + id;
    if (url.empty()) url = id;
    page_.parts.push_back({url, id, type, decoded(body, part_field(head, "content-transfer-encoding"))});
  }

  SavedPage page_;
};

// The comment of SingleFile: its name, then " url: ..." and " saved date: ...", each on a line.
std::string line_after(std::string_view comment, std::string_view name) {
  const auto at = comment.find(name);
  if (at == std::string_view::npos) return {};
  const auto rest = comment.substr(at + name.size());
  return std::string(base::trimmed(rest.substr(0, std::min(rest.find('\n'), kLongestValue))));
}

} // namespace

std::string part_field(const PartFields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? "" : found->second.substr(0, kLongestValue);
}

std::string part_parameter(std::string_view field, std::string_view name) {
  const auto lower = base::lower_case(field);
  auto at = lower.find(name);
  while (at != lower.npos && at > 0 && std::string_view("; \t").find(lower[at - 1]) == std::string_view::npos)
    at = lower.find(name, at + 1); // filename=
  if (at == lower.npos) return {};
  field.remove_prefix(at + name.size());
  if (field.starts_with('"')) return std::string(field.substr(1, field.find('"', 1) - 1));
  return std::string(field.substr(0, field.find_first_of("; \t\r\n")));
}

bool each_part(std::string_view text, std::string_view type,
               const std::function<bool(const PartFields&, std::string_view)>& take) {
  const auto boundary = part_parameter(type, "boundary="), mark = "--" + boundary;
  if (boundary.empty() || boundary.size() > kLongestBoundary) return false;
  const auto next_mark = [&](std::size_t from) {
    for (auto at = text.find(mark, from); at != std::string_view::npos; at = text.find(mark, at + mark.size())) {
      const auto behind = text.substr(at + mark.size()).substr(0, 2);
      if ((at == 0 || text[at - 1] == '\n') && (behind.empty() || behind == "--" || base::is_blank(behind[0])))
        return at;
    }
    return std::string_view::npos;
  };
  for (auto at = next_mark(0); at != std::string_view::npos;) {
    auto begin = at + mark.size();
    if (text.substr(begin).starts_with("--")) return true;
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
    at = next_mark(begin);
    auto part = text.substr(begin, at == std::string_view::npos ? at : at - begin);
    if (at != std::string_view::npos) { // the line end belongs to the mark
      if (part.ends_with('\n')) part.remove_suffix(1);
      if (part.ends_with('\r')) part.remove_suffix(1);
    }
    const auto head = take_head(part);
    if (!take(head, part)) return true;
  }
  return false;
}

SavedKind saved_kind(std::string_view head) {
  head = head.substr(0, kSavedHead);
  if (const auto comment = head.find("<!--"); comment != std::string_view::npos)
    for (const auto name : {kSingleFile, kLegacy})
      if (head.find(name, comment) != std::string_view::npos) return SavedKind::html;
  const auto lower = base::lower_case(head);
  const bool fields = lower.find("mime-version:") != std::string::npos || lower.starts_with("from:");
  return fields && lower.find("multipart/related") != std::string::npos ? SavedKind::mhtml : SavedKind::none;
}

SavedPage read_saved_page(std::string_view bytes) {
  if (saved_kind(bytes) == SavedKind::mhtml) return MhtmlReader().read(bytes);
  SavedPage page;
  if (saved_kind(bytes) == SavedKind::html) {
    const auto begin = bytes.find("<!--");
    const auto comment = bytes.substr(begin, bytes.find("-->", begin) - begin);
    page.url = line_after(comment, "\n url: ");
    page.date = line_after(comment, "\n saved date: ");
  }
  page.parts.push_back({page.url, "", page.url.empty() ? "text/html" : "text/html; charset=utf-8", std::string(bytes)});
  return page;
}

} // namespace holdfast::formats
