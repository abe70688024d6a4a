#include "services/capture/browser/page.hpp"

#include "lib/formats/encoding.hpp"
#include "lib/formats/html.hpp"
#include "lib/warc/coding.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/fetch/fetch.hpp"

#include <filesystem>

namespace holdfast::capture {

namespace fs = std::filesystem;

namespace {

// Decompresses a body. Some servers compress whatever the client accepts, and wget may keep it so. A browser's copy is
// decoded already.
std::string decompressed(std::string bytes, const std::string& coding, std::size_t most = kLargestPage) {
  const bool packed = bytes.starts_with("\x1f\x8b");
  auto plain = warc::decode_body(bytes, packed ? "gzip" : coding, most);
  return plain.whole || (packed && !plain.bytes.empty()) ? plain.bytes : bytes;
}

bool is_xml(const std::string& type) { return type.ends_with("/xml") || type.ends_with("+xml"); }

} // namespace

std::string Page::type() const {
  return bytes.empty() ? media_type(content_type) : formats::sniffed_type(content_type, bytes);
}

std::string Page::text() const {
  auto text = formats::decode_page(bytes, content_type);
  return is_html() && is_xml(type()) ? formats::xml_as_html(text) : text;
}

std::string Page::encoding() const {
  return written_in.empty() ? formats::page_encoding(bytes, content_type) : written_in;
}

bool Page::is_plain_text() const {
  const auto kind = type();
  if (kind == "application/json" || kind.ends_with("+json")) return true;
  return kind.starts_with("text/") && kind != "text/html" && kind != "text/xml";
}

bool Page::is_html() const {
  const auto kind = type();
  if (kind == "text/html" || kind == "application/xhtml+xml") return true;
  const auto start = std::string_view(bytes).substr(0, 2000);
  const auto root = start.find("<html");
  return is_xml(kind) && root != start.npos && start.find("http://www.w3.org/1999/xhtml", root) != start.npos;
}

std::optional<Page> saved_page(Job& job, const std::string& plugin, std::size_t most) {
  if (plugin == "tab") return page_of_tab(job);
  const auto about = job.sibling((plugin == "read" ? "browser" : plugin) + "/page.json");
  const int status = about.value("status", 0);
  if (status >= kFirstError) throw failed("HTTP " + std::to_string(status));
  const auto name = about.value(plugin == "read" ? "read" : "path", "");
  Page page{about.value("url", job.url()),
            plugin == "read" ? "text/html; charset=utf-8" : about.value("content_type", ""), "", plugin};
  // The bytes have more than the page in which Chromium's viewer shows them.
  if (const auto record = load_page_record(job);
      plugin == "dom" && record && Page{"", record->content_type, "", ""}.is_plain_text())
    return std::nullopt;
  if (name.empty()) {
    // Other types than pages of a browser: the type is known, and there is nothing to read in it.
    const bool other = plugin == "browser" && status != 0 && !page.content_type.empty();
    return other && about.contains("ending") ? std::optional(page) : std::nullopt;
  }
  std::error_code error;
  const auto directory = fs::weakly_canonical(job.snapshot() / (plugin == "read" ? "browser" : plugin), error);
  const auto path = fs::weakly_canonical(directory / name, error);
  if (!path.string().starts_with(directory.string() + "/") || !fs::is_regular_file(path, error)) return std::nullopt;
  page.file = path.string();
  page.bytes =
      decompressed(read_file(path, most), about.value("headers", Json::object()).value("content-encoding", ""), most);
  return page;
}

Page load_page(Job& job, std::initializer_list<const char*> prefer) {
  std::optional<Ending> refused;
  for (const char* plugin : prefer) {
    try {
      if (auto page = saved_page(job, plugin)) return std::move(*page);
    } catch (const Ending& ending) { // a site may refuse one client and serve another
      refused = ending;
    }
  }
  if (refused) throw *refused;
  FetchOptions options;
  options.most_bytes = kLargestPage;
  options.accept = "text/html,application/xhtml+xml,*/*;q=0.5";
  auto response = fetch(job, job.url(), options);
  const auto type = header_of(response.headers, "content-type");
  job.report_response(response.url, response.status, type);
  if (response.status == 429 || response.status == 503)
    job.report_rate_limit(host_in(response.url), response.status, header_of(response.headers, "retry-after"));
  if (response.status >= kFirstError) throw failed("HTTP " + std::to_string(response.status));
  return {response.url, type, decompressed(std::move(response.body), header_of(response.headers, "content-encoding")),
          "fetch"};
}

void Page::require_html() const {
  if (!is_html()) throw no_results("not an HTML page: " + (type().empty() ? "unknown type" : type()));
}

Page load_html(Job& job, std::initializer_list<const char*> prefer) {
  auto page = load_page(job, prefer);
  page.require_html();
  return page;
}

} // namespace holdfast::capture
