#include "services/cli/transfer/export_still.hpp"

#include "lib/base/sha256.hpp"
#include "lib/base/text/text.hpp"
#include "lib/wacz/writer.hpp"
#include "services/serve/http_message.hpp"
#include "services/serve/records.hpp"

#include <sys/stat.h>

#include <array>
#include <string_view>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::size_t kMostFiles = 5000; // of a snapshot
constexpr std::string_view kEncoded = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%-._~!*'()";

// Browsers take these types from a disk only by the ends of their names.
std::string name_end(const std::string& type) {
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kEnds{
      {{"text/css", ".css"}, {"image/svg+xml", ".svg"}, {"text/html", ".html"}, {"application/xhtml+xml", ".xhtml"}}};
  for (const auto& [begin, end] : kEnds)
    if (type.starts_with(begin)) return end;
  return "";
}

} // namespace

std::string ExportedStill::file_of(const std::string& url) {
  if (const auto known = names_.find(url); known != names_.end()) return known->second;
  auto& name = names_[url]; // empty while it is read: style sheets may import each other
  if (names_.size() > kMostFiles) return name;
  const auto body = serve::read_record(connection_, [this](const std::string& file) { return root_.open_file(file); },
                                       {snapshot_, url});
  if (!body) return name;
  name = base::sha256_hex(url).substr(0, 16) + name_end(body->type);
  const auto result = name; // the map may grow meanwhile
  const auto to = path_ + "/" + kAsItWas + "/r/" + result;
  if (body->file) {
    struct stat about {};
    if (::fstat(body->file.get(), &about) != 0) return result;
    bytes_ += static_cast<std::uint64_t>(about.st_size);
    to_.add(to, body->file.get(), static_cast<std::uint64_t>(about.st_size), true);
    return result;
  }
  const auto bytes = body->type.starts_with("text/css") ? with_files(body->bytes) : body->bytes;
  const auto file = wacz::temporary_file();
  wacz::write_all(file.get(), bytes);
  bytes_ += bytes.size();
  to_.add(to, file.get(), bytes.size(), true);
  return result;
}

std::string ExportedStill::with_files(const std::string& document) {
  std::string out;
  std::size_t done = 0;
  constexpr std::string_view kColon = "%3A";
  for (auto colon = document.find(kColon); colon != std::string::npos; colon = document.find(kColon, colon + 1)) {
    const auto at = document.find_last_not_of("htpscid", colon - 1) + 1; // npos + 1 is 0
    const auto rest = std::string_view(document).substr(at);
    if (at < done ||
        !(rest.starts_with("http%3A%2F%2F") || rest.starts_with("https%3A%2F%2F") || rest.starts_with("cid%3A")))
      continue;
    const auto before = std::string_view(document).substr(0, at);
    if (!before.ends_with("r/") && !before.ends_with('"')) continue; // in a document; in a style sheet
    const auto end = std::min(document.find_first_not_of(kEncoded, at), document.size());
    std::string url;
    if (!serve::percent_decode(rest.substr(0, end - at), false, url)) continue;
    const auto name = file_of(url);
    out.append(document, done, at - done).append(name.empty() ? "none" : name);
    done = end;
  }
  return out.append(document, done);
}

} // namespace holdfast::cli
