#include "services/capture/extract/readers.hpp"

#include "lib/base/file.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/formats/html.hpp"
#include "lib/formats/link.hpp"
#include "services/capture/browser/page.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/extract/blocks.hpp"
#include "services/capture/extract/document.hpp"
#include "services/capture/extract/icon.hpp"
#include "services/capture/extract/links.hpp"
#include "services/capture/extract/readable.hpp"
#include "services/capture/fetch/fetch.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

namespace holdfast::capture {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLargestPlain = 4u << 20;
constexpr std::size_t kLargestFeed = 50u << 20; // of a sitemap, by its protocol
constexpr std::size_t kLongestLinkTitle = 300;
constexpr std::size_t kMostIcons = 4;

// `answer`: what was answered at last, as in page.json.
Result keep_headers(const Job& job, const Json& answer, const std::string& method = "GET") {
  Json kept = {{"url", job.url()}, {"final_url", answer.value("url", job.url())}, {"method", method}};
  for (const char* name : {"status", "reason", "content_type", "headers", "redirects"})
    kept[name] = answer.value(name, Json());
  job.write_json("headers.json", kept);
  auto text = "HTTP " + std::to_string(kept["status"].get<int>()) + " " + answer.value("reason", "");
  text.erase(text.find_last_not_of(' ') + 1);
  return {text,
          {{"status", kept["status"]}, {"final_url", kept["final_url"]}, {"redirects", kept["redirects"].size()}}};
}

// Returns the answer to the browser, if it has made the request.
std::optional<Result> headers_of_browser(Job& job) {
  const auto page = load_page_record(job);
  if (!page || (page->status == 0 && !page->ending)) return std::nullopt;
  page->report(job);
  if (page->status != 0) return keep_headers(job, job.sibling("browser/page.json"));
  job.write_json("headers.json",
                 {{"url", job.url()}, {"error", page->ending->reason}, {"redirects", page->redirect_list()}});
  throw *page->ending;
}

// Returns the answer to wget, if it has made the request.
std::optional<Result> headers_of_wget(Job& job) {
  const auto page = job.sibling("wget/page.json");
  if (page.value("status", 0) == 0 || page.value("headers", Json::object()).empty()) return std::nullopt;
  job.report_response(page.value("url", job.url()), page["status"], page.value("content_type", ""));
  return keep_headers(job, page);
}

// Sends HEAD, then GET if needed: many servers answer HEAD wrongly or not at all. The body of GET is not read.
std::pair<std::string, Response> ask(Job& job) {
  try {
    auto response = fetch(job, job.url(), {.head = true, .share = 0.5});
    const int status = response.status;
    if (status < 400 || status == 404 || status == 410 || status == 429 || status == 503) return {"HEAD", response};
  } catch (const Ending& ending) {
    if (ending.unreachable || ending.detail.is_null() || !ending.detail.value("redirects", Json::array()).empty())
      throw; // HEAD was answered; where it led is the trouble
  }
  return {"GET", fetch(job, job.url(), {})};
}

// The page's final URL and the icons it links, best first.
std::pair<std::string, std::vector<std::string>> icons_of_page(Job& job) {
  std::optional<Page> page;
  try {
    page = load_html(job, {"wget", "browser", "dom", "tab"});
  } catch (const Ending& ending) {
    if (ending.status != Status::noresults) throw;
    return {job.url(), {}};
  }
  return {page->url, linked_icons(page->text(), page->url)};
}

Result keep_icon(const Job& job, const std::string& kind, const std::string& bytes, const std::string& url) {
  const auto name = "favicon." + kind;
  job.write(name, bytes);
  return {name, {{"url", url}, {"size", bytes.size()}}};
}

// Returns where this worker keeps the answer for the URL of an icon, for the other pages of the crawl; empty: nowhere.
fs::path known_icon(const std::string& url) {
  constexpr std::size_t kLongestName = 200;
  const auto crawl = Job::setting("CRAWL_DIR");
  const auto name = base::percent_encode(url, [](char c) { return base::is_alpha(c) || base::is_digit(c); });
  return crawl.empty() || name.size() > kLongestName ? fs::path() : fs::path(crawl) / "favicon" / name;
}

void remember_icon(const fs::path& file, const std::string& bytes) {
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  const auto partial = file.string() + "." + std::to_string(::getpid());
  if (write_file(partial, [&](const auto& take) { take(bytes); }))
    fs::rename(partial, file, ignored);
  else
    fs::remove(partial, ignored);
}

// Empty: there is none. Pages of a site mostly share theirs, and it is fetched once.
std::string icon_at(Job& job, const std::string& url) {
  const auto known = known_icon(url);
  std::error_code error;
  if (!known.empty() && fs::is_regular_file(known, error)) return read_file(known, kLargestIcon);
  auto response = fetch(job, url, {.most_bytes = kLargestIcon, .accept = "image/*"});
  if (response.status != 200 || response.truncated) response.body.clear();
  const bool lasting = response.status == 200 || response.status == 404 || response.status == 410;
  if (!known.empty() && lasting) remember_icon(known, response.body);
  return std::move(response.body);
}

// "en-GB", or empty for what is no language tag.
std::string language_tag(std::string_view text) {
  auto language = lower_case(text);
  const bool is_tag = language.size() <= 35 &&
                      language.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string::npos;
  return is_tag ? language : "";
}

// The language that the page gives for itself; empty: none.
std::string language_of(const std::string& html) {
  std::string language;
  formats::scan_html(html, [&](const formats::Token& token) {
    if (token.kind != formats::Token::Kind::start) return true;
    if (token.text == "html") language = token.attribute("lang");
    return false;
  });
  return language_tag(language);
}

// The first one that the server gave.
std::string content_language(const Job& job) {
  for (const char* plugin : {"browser", "wget"}) {
    const auto headers = job.sibling(std::string(plugin) + "/page.json").value("headers", Json::object());
    const auto all = headers.value("content-language", "");
    if (!all.empty()) return std::string(base::trimmed(all.substr(0, all.find(','))));
  }
  return {};
}

// The beginning of a text, without a part of a word at its end.
std::string up_to_a_word(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  const auto end = text.find_last_of(" \t\r\n", most);
  return text.substr(0, end == std::string::npos ? most : end);
}

// Less the files of the browser while it still records: they are not what they will be.
std::vector<std::string> regular_files(const Job& job) {
  const auto page = load_page_record(job);
  const bool recording = page && !page->target.empty();
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(job.snapshot(), error), end; !error && it != end; it.increment(error)) {
    const auto path = it->path().lexically_relative(job.snapshot());
    if (it.depth() == 0 && (path == job.plugin() || (recording && path == "browser"))) it.disable_recursion_pending();
    if (it->is_symlink(error) || !it->is_regular_file(error)) continue;
    if (!base::is_runner_file(path.filename().string())) files.push_back(path.string());
  }
  // In the order of their parts, as they are listed by directory.
  std::sort(files.begin(), files.end(), [](const std::string& one, const std::string& other) {
    return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end(), [](char a, char b) {
      const auto rank = [](char letter) {
        return letter == '/' ? 0 : static_cast<int>(static_cast<unsigned char>(letter));
      };
      return rank(a) < rank(b);
    });
  });
  return files;
}

} // namespace

Result save_headers(Job& job) {
  if (auto result = headers_of_browser(job)) return *result;
  if (auto result = headers_of_wget(job)) return *result;
  std::string method;
  Response response;
  try {
    std::tie(method, response) = ask(job);
  } catch (const Ending& ending) {
    Json about = {{"url", job.url()}, {"error", ending.reason}};
    if (ending.detail.is_object()) about.update(ending.detail);
    job.write_json("headers.json", about);
    throw;
  }
  const auto type = header_of(response.headers, "content-type");
  job.report_response(response.url, response.status, type);
  if (response.status == 429 || response.status == 503)
    job.report_rate_limit(host_in(response.url), response.status, header_of(response.headers, "retry-after"));
  return keep_headers(job,
                      {{"url", response.url},
                       {"status", response.status},
                       {"reason", response.reason},
                       {"content_type", type},
                       {"headers", joined(response.headers)},
                       {"redirects", response.redirects}},
                      method);
}

Result save_favicon(Job& job) {
  if (const auto page = load_page_record(job); page && !page->icon.empty()) {
    const auto bytes = read_file(job.snapshot() / "browser" / page->icon, kLargestIcon + 1, O_NOFOLLOW);
    const auto kind = bytes.size() > kLargestIcon ? "" : icon_kind(bytes);
    if (!kind.empty()) return keep_icon(job, kind, bytes, page->icon_url);
  }
  auto [base, candidates] = icons_of_page(job);
  candidates.resize(std::min(candidates.size(), kMostIcons));
  if (const auto usual = formats::join_url(base, "/favicon.ico")) candidates.push_back(*usual);
  for (const auto& url : candidates) {
    try {
      const bool inside = lower_case(std::string_view(url).substr(0, 5)) == "data:"; // the page itself
      if (!inside) refuse_private(job.url(), url);
      const auto bytes = inside ? data_of(url) : icon_at(job, url);
      if (const auto kind = icon_kind(bytes); !kind.empty())
        return keep_icon(job, kind, bytes, inside ? url.substr(0, url.find(',')) : url);
    } catch (const Ending& ending) {
      if (ending.status == Status::skipped) throw;
      continue; // the next candidate may do
    }
  }
  throw no_results("the site has no icon");
}

Result save_title(Job& job) {
  const auto page = load_page(job);
  if (!page.is_drawing()) page.require_html();
  const auto title = page.is_drawing() ? drawing_title(page) : title_of(page.text());
  if (title.empty()) throw no_results("the page has no title");
  job.write("title.txt", title + "\n");
  return {title, {{"source", page.source}}};
}

Result save_text(Job& job) {
  const auto choice = Choice::from_settings();
  const auto page = load_page(job, {"read", "dom", "tab", "wget", "browser"});
  std::vector<Block> blocks, beside;
  std::string language;
  bool cut = false;
  if (page.is_plain_text()) {
    const auto text = page.text();
    cut = text.size() > kLargestPlain;
    const auto words = clean(up_to_a_word(text, kLargestPlain));
    blocks.push_back({"pre", words, true, false, false, words.size(), 0});
  } else if (page.is_html()) {
    blocks = readable_blocks(clean(page.text()));
    beside = blocks_beside(clean(page.text()));
    language = language_of(page.text());
  } else if (auto document = document_text(page)) {
    blocks = std::move(document->blocks);
    cut = document->cut;
  } else {
    if (page.type().ends_with("xml")) job.write("blocks.jsonl", page_blocks(page, {}, choice));
    throw no_results("not a page of text: " + (page.type().empty() ? "unknown type" : page.type()));
  }
  if (const auto by_place = page_blocks(page, blocks, choice); !by_place.empty()) {
    job.write("blocks.jsonl", by_place);
    if (const auto facts = facts_of(by_place, choice); !facts.is_null()) emit(facts);
  }
  if (language.empty()) language = language_tag(content_language(job));
  // Text is searched, so that it also has what stands beside the article.
  const auto content = blocks_as_text(blocks) + (beside.empty() ? "" : "\n" + blocks_as_text(beside));
  std::size_t words = 0;
  bool inside = false;
  for (const char letter : content) {
    const bool blank = letter == ' ' || (letter >= '\t' && letter <= '\r');
    if (!blank && !inside) ++words;
    inside = !blank;
  }
  if (words == 0) throw no_results("the page has no text");
  const auto heading = std::find_if(blocks.begin(), blocks.end(), [](const Block& block) { return block.tag == "h1"; });
  job.write("content.txt", content);
  job.write("content.html", blocks_as_html(blocks, heading == blocks.end() ? page.url : heading->text(), page.url));
  Json about = {{"words", words}, {"source", page.source}};
  if (!language.empty()) about["language"] = language;
  if (cut) about["cut"] = true;
  return {"content.txt", about};
}

Result save_outlinks(Job& job) {
  // Links of the page as the server sent it and as the browser left it: scripts add some and remove others.
  std::vector<Page> copies;
  const bool entries_only = Job::setting("OUTLINKS_ONLY") == "entries";
  for (const char* plugin : {"wget", "browser", "read", "dom", "tab"}) {
    if (plugin == std::string_view("tab") && !copies.empty() && copies.back().source == "dom") break;
    try {
      if (auto page = saved_page(job, plugin, entries_only ? kLargestFeed : kLargestPage))
        copies.push_back(std::move(*page));
    } catch (const Ending&) {
    }
  }
  if (copies.empty()) copies.push_back(load_page(job));
  const auto encoding = copies.front().encoding();
  for (auto& copy : copies)
    if (copy.source == "dom" || copy.source == "tab") copy.written_in = encoding; // they are UTF-8 themselves
  const auto most = static_cast<std::size_t>(Job::number("OUTLINKS_MAX", 10000));
  std::vector<Json> records;
  std::map<std::string, std::size_t> known; // by URL: its place
  std::set<std::string> too_long;
  bool cut = false, is_list = false;
  for (const auto& page : copies) {
    const auto itself = formats::absolute_link(page.url, page.url);
    const auto take = [&](const Link& link) {
      if (link.url == itself || link.url == job.url()) return true;
      if (link.url.size() > base::kLongestUrl) {
        too_long.insert(link.url);
        return true;
      }
      const auto before = known.find(link.url);
      if (before == known.end() && records.size() >= most) return !(cut = true);
      const auto title = one_line(std::string_view(link.title).substr(0, 10000), kLongestLinkTitle);
      if (before != known.end() &&
          title.size() <= records[before->second]["title"].get_ref<const std::string&>().size())
        return true;
      Json record = {{"type", "Snapshot"}, {"url", clean(link.url)}, {"title", title}};
      if (!link.tags.empty()) record["tags"] = clean(link.tags);
      if (!link.bookmarked_at.empty()) record["bookmarked_at"] = clean(link.bookmarked_at);
      if (before == known.end()) {
        known.emplace(link.url, records.size());
        records.push_back(std::move(record));
      } else {
        records[before->second] = std::move(record);
      }
      return true;
    };
    if (!entries_only)
      find_links(page, take);
    else if ((is_list = find_entries(page, take)))
      break;
  }
  if (is_list) emit({{"type", "Facts"}, {"entries", records.size()}});
  const auto left_out = too_long.empty() ? ""
                                         : "; " + std::to_string(too_long.size()) + " longer than " +
                                               std::to_string(base::kLongestUrl) + " bytes left out";
  if (records.empty()) throw no_results((entries_only ? "no entries of a feed" : "no links") + left_out);
  std::string lines;
  for (const auto& record : records)
    lines += json_text(record) + "\n";
  job.write("urls.jsonl", lines);
  auto text = std::to_string(records.size()) + (records.size() == 1 ? " link" : " links");
  if (cut) text += ", the first of more (OUTLINKS_MAX=" + std::to_string(most) + ")";
  return {text + left_out, {{"links", records.size()}, {"too_long", too_long.size()}}};
}

// {root_hash, total_size, files: [{path, size, sha256}]}; root_hash is the SHA-256 of the lines "<sha256>  <path>" in
// the order of the paths, what `sha256sum` would print.
Result save_hashes(Job& job) {
  Json files = Json::array();
  std::uint64_t total = 0;
  base::Sha256 root;
  std::string piece(1u << 18, '\0');
  for (const auto& path : regular_files(job)) {
    const int descriptor = ::open((job.snapshot() / path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0) continue; // gone meanwhile: a background hook's temporary file
    base::Sha256 digest;
    std::uint64_t size = 0;
    for (;;) {
      const auto count = ::read(descriptor, piece.data(), piece.size());
      if (count <= 0) break;
      digest.update(std::string_view(piece).substr(0, static_cast<std::size_t>(count)));
      size += static_cast<std::uint64_t>(count);
    }
    ::close(descriptor);
    const auto sum = digest.finish();
    const auto name = clean(path);
    root.update(sum + "  " + name + "\n");
    files.push_back({{"path", name}, {"size", size}, {"sha256", sum}});
    total += size;
  }
  if (files.empty()) throw no_results("no other plugin has left a file");
  const auto root_hash = root.finish();
  const auto count = files.size();
  job.write_json("hashes.json", {{"root_hash", root_hash}, {"total_size", total}, {"files", std::move(files)}});
  return {root_hash, {{"files", count}, {"total_size", total}}};
}

} // namespace holdfast::capture
