#pragma once
// A page that a browser has saved as one file: MHTML (Chromium, Internet Explorer, UnMHT) or the HTML of SingleFile.
// Files may be broken or hostile: the cost is linear, and the number and depth of parts are bounded. Pure functions;
// any thread.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::formats {

struct SavedPart {
  std::string url;  // Content-Location, else `id`; may be empty
  std::string id;   // "cid:..." of its Content-ID; empty: it has none
  std::string type; // Content-Type
  std::string body; // without its transfer encoding
};

struct SavedPage {
  std::string url, date;        // as written there; empty: not known
  std::vector<SavedPart> parts; // the document first
  std::string problem;          // what of the file is not there; empty: it is whole
};

// Parts of a text of the type "multipart/...; boundary=x", as mail and forms have them. Fields of a head are by their
// names in lower case, the first of each; continued lines are joined.
using PartFields = std::map<std::string, std::string, std::less<>>;
std::string part_field(const PartFields& fields, std::string_view name); // empty: none
// The parameter of a field: name="x" or name=x, for "name=".
std::string part_parameter(std::string_view field, std::string_view name);
// Calls take(head, body) for each; false ends it. Returns false if the text has no end, or `type` no boundary.
bool each_part(std::string_view text, std::string_view type,
               const std::function<bool(const PartFields&, std::string_view)>& take);

enum class SavedKind { none, mhtml, html };
constexpr std::size_t kSavedHead = 8u << 10; // bytes that decide

// Returns the kind of a file by its first bytes. html: with the comment of SingleFile.
SavedKind saved_kind(std::string_view head);

// Reads such a file. HTML without the comment of SingleFile is a page of unknown address. Throws Error(usage) for an
// MHTML file without a document.
SavedPage read_saved_page(std::string_view bytes);

// The page as it stood (services/serve/records.hpp), made of a document as a browser saved it: without scripts, forms
// and what else acts or loads, with "r/URL" for the address of each part.
struct StillPage {
  std::string html;
  std::vector<std::string> frames; // frame-1.html and so on, beside it
};
StillPage still_page(const SavedPage& page);

// Replaces the addresses in a style sheet by `to` and the address, encoded. `base`: the URL of the style sheet.
std::string with_records(std::string_view css, const std::string& base, std::string_view to = "");

} // namespace holdfast::formats
