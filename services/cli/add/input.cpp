#include "services/cli/add/input.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/catalog/field.hpp"
#include "lib/formats/list.hpp"
#include "services/cli/terminal/output.hpp"

#include <nlohmann/json.hpp>

#include <libpsl.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::size_t kMostProblems = 10; // in the text of an error
constexpr std::size_t kMostNamed = 1000;  // for programs

// Collects lines that cannot be used, to report all at once.
class Problems {
public:
  void add(const std::string& where, const std::string& what, const std::string& field = {}) {
    if (++count_ <= kMostProblems) text_ += (text_.empty() ? "" : "\n") + (where.empty() ? what : where + ": " + what);
    if (count_ <= kMostNamed) urls_.emplace_back(field.empty() ? where : field, what);
  }

  std::size_t count() const { return count_; }
  std::string text() const {
    return count_ <= kMostProblems ? text_ : text_ + "\n... and " + std::to_string(count_ - kMostProblems) + " more";
  }
  // Throws UrlErrors if there were any.
  void raise(const std::string& hint) const {
    if (count_ > 0) throw catalog::UrlErrors(urls_, text(), hint);
  }

private:
  std::string text_;
  catalog::UrlErrors::Urls urls_;
  std::size_t count_{0};
};

// "https://example.org/a" for "example.org/a", as users type it: a name below a known domain. Anything else is as
// given.
std::string with_scheme(std::string text) {
  const auto host = std::string_view(text).substr(0, text.find_first_of(":/?#"));
  const auto dot = host.rfind('.');
  const bool plain = dot != std::string_view::npos && dot > 0 && text.find_first_of(" \t@<>\"'{}[],;") == text.npos &&
                     text.find("://") == text.npos;
  if (!plain) return text;
  const auto top = base::lower_case(host.substr(dot + 1));
  const auto* list = psl_builtin();
  const bool known =
      list != nullptr && psl_is_public_suffix2(list, top.c_str(), PSL_TYPE_ANY | PSL_TYPE_NO_STAR_RULE) != 0;
  return known ? "https://" + text : text;
}

class SeedReader {
public:
  explicit SeedReader(const ReadOptions& options) : allow_private_(options.allow_private), strict_(options.strict) {}

  void take_line(std::string_view text, const std::string& where, store::Seed seed) {
    if (const auto problem = take(text, std::move(seed)); !problem.empty()) lines_wrong_.add(where, problem);
  }
  // That was typed, or given by a program in a field.
  void take_url(std::string_view text, const std::string& field) {
    if (const auto problem = take(text, {}); !problem.empty()) typed_wrong_.add("", problem, field);
  }

  // An argument names a file that must exist, or is a URL.
  void take_argument(const std::string& text) {
    std::error_code ignored;
    if (std::filesystem::is_directory(text, ignored))
      typed_wrong_.add("", "\"" + text + "\" is a directory; give the files in it");
    else if (text.find(':') == std::string::npos)
      typed_wrong_.add("", "\"" + text + "\" is neither a file nor a URL"), take_host(text);
    else
      take_url(text, "");
  }

  void take_bytes(std::string_view bytes, const std::string& name, const std::string& parser) {
    formats::List list;
    try {
      list = formats::read_list(bytes, parser);
    } catch (const base::Error& error) {
      throw base::Error(error.error_class(), name + ": " + error.what(), error.hint());
    }
    if (list.index)
      throw base::Error(
          base::ErrorClass::refused, name + ": this is an index of sitemaps, it names no pages",
          "add its URL with --depth 2: its sitemaps, then their pages; or fetch the sitemaps, and add these files");
    if (!list.lines) return take_entries(std::move(list.entries), name);
    for (auto& entry : list.entries) {
      const auto where = name + ":" + entry.where;
      if (!entry.problem.empty())
        lines_wrong_.add(where, entry.problem);
      else
        take_line(entry.url, where, seed_of(entry));
    }
    if (list.prose > 0) note(name + ": some lines hold more than a URL; of these only the URLs were taken");
    if (list.comments > 0)
      note(name + ": lines that begin with # were skipped; URLs in them: " + std::to_string(list.comments));
  }

  ReadSeeds finish() {
    const std::string hint =
        (!meant_.empty() ? "did you mean holdfast add" + meant_ + "? "
                         : std::string(neither_ ? "URLs begin with https:// or http://; " : "")) +
        "nothing was added" +
        (private_refused_
             ? "; urls.allow_private (HOLDFAST_URLS_ALLOW_PRIVATE=true) allows addresses of your own network"
             : "");
    typed_wrong_.raise(hint);
    if (strict_ || seeds_.empty()) lines_wrong_.raise(hint);
    const auto left_out = lines_wrong_.count();
    if (fragments_ > 0)
      note("what follows # names a place in a page and was dropped" +
           (fragments_ > 1 ? ", in " + std::to_string(fragments_) + " URLs" : std::string()) +
           "; pages of their own (#/ and #!) are kept");
    return {std::move(seeds_), left_out, lines_wrong_.text() + (left_out > 0 && !notes_.empty() ? "\n" : "") + notes_};
  }

private:
  // Text in place of a URL may lack the scheme only.
  void take_host(const std::string& text) {
    neither_ = true;
    const auto whole = with_scheme(text);
    if (const auto url = base::try_parse_url(whole); url && whole != text) meant_ += " " + shell_word(url->text);
  }
  void note(const std::string& text) { notes_ += (notes_.empty() ? "" : "\n") + text; }
  // Returns what is wrong with it; empty: it was taken.
  std::string take(std::string_view text, store::Seed seed) {
    try {
      const auto url = base::parse_url(text);
      if (!allow_private_ && base::is_private_host(url.host)) {
        private_refused_ = true;
        return "\"" + std::string(text) + "\" is not on the public internet";
      }
      fragments_ += url.fragment_dropped;
      seed.url = url.text;
      seeds_.push_back(std::move(seed));
      return {};
    } catch (const base::Error& error) {
      return error.what();
    }
  }

  static store::Seed seed_of(formats::Entry& entry) {
    return {"", std::move(entry.title), std::move(entry.tags), std::move(entry.bookmarked_at), std::move(entry.notes)};
  }

  void take_entries(std::vector<formats::Entry> entries, const std::string& name) {
    std::size_t left_out = 0;
    std::string example;
    for (auto& entry : entries) {
      if (take(entry.url, seed_of(entry)).empty() || ++left_out > 1) continue;
      example = entry.where + ": \"" + printable(entry.url.substr(0, 80)) + "\"";
    }
    if (left_out > 0)
      note(name + ": " + std::to_string(left_out) + " of " + std::to_string(entries.size()) +
           " entries are no public web pages and were left out (" + example + (left_out > 1 ? ", ..." : "") + ")");
  }

  bool allow_private_, strict_;
  std::vector<store::Seed> seeds_;
  Problems typed_wrong_, lines_wrong_;
  std::string notes_, meant_; // meant_: URLs that may have been meant
  std::size_t fragments_{0};  // that were dropped
  bool private_refused_{false}, neither_{false};
};

// The field of a JSON line that names what the line is about, by its type.
constexpr std::pair<std::string_view, const char*> kIdFields[] = {
    {"Crawl", "id"},        {"Snapshot", "id"},           {"Process", "id"},           {"ArchiveResult", "snapshot_id"},
    {"Why", "id"},          {"CrawlSession", "crawl_id"}, {"Scope", "crawl_id"},       {"Control", "target"},
    {"Event", "object_id"}, {"Defect", "snapshot_id"},    {"Archived", "snapshot_id"}, {"Description", "id"}};

// Empty: the line names nothing.
std::string id_in(std::string_view line) {
  if (line.front() != '{') return std::string(line);
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return {};
  for (const auto& [type, field] : kIdFields)
    if (base::text_at(json, "type") == type) return base::text_at(json, field);
  return {};
}

// Adds the scheme to each line of a text that lacks it alone.
std::string with_schemes(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    auto line = text.substr(at, end - at);
    const std::string typed(base::trimmed(line));
    if (const auto whole = with_scheme(typed); whole != typed) line = whole;
    out += line;
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

} // namespace

std::vector<std::string> read_ids(const std::vector<std::string>& given) {
  std::vector<std::string> ids;
  std::set<std::string> seen;
  const auto take = [&](const std::string& id) {
    if (seen.insert(id).second) ids.push_back(id);
  };
  Problems problems;
  for (const auto& argument : given) {
    if (argument != "-") {
      take(argument);
      continue;
    }
    std::string line;
    for (std::size_t number = 1; std::getline(std::cin, line); ++number) {
      const auto text = base::trimmed(line);
      if (text.empty() || text.front() == '#') continue;
      const auto id = id_in(text);
      if (id.empty())
        problems.add("standard input:" + std::to_string(number), "names no crawl, snapshot or worker");
      else
        take(id);
    }
    if (std::cin.bad()) throw base::Error(base::ErrorClass::input_output, "cannot read standard input");
  }
  problems.raise("nothing was done; holdfast list --json prints lines that can be read here");
  return ids;
}

ReadSeeds read_seeds(const std::vector<std::string>& inputs, const ReadOptions& options) {
  SeedReader reader(options);
  const auto take = [&](std::istream& stream, const std::string& name) {
    const std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (!stream || stream.bad()) throw base::Error(base::ErrorClass::input_output, "cannot read " + name);
    reader.take_bytes(bytes, name, options.parser);
  };
  for (const auto& input : inputs) {
    std::error_code ignored;
    if (input == "-") {
      take(std::cin, "standard input");
    } else if (std::filesystem::is_regular_file(input, ignored)) {
      std::ifstream file(input);
      take(file, input);
    } else {
      reader.take_argument(input);
    }
  }
  auto read = reader.finish();
  if (read.left_out > 0)
    std::cerr << "holdfast: " << read.left_out
              << (read.left_out == 1 ? " line cannot be used and was" : " lines cannot be used and were")
              << " left out (with --strict, nothing would be added):\n";
  if (!read.problems.empty()) std::cerr << (read.left_out > 0 ? "" : "holdfast: ") << read.problems << '\n';
  return read;
}

ReadSeeds read_request(const std::vector<std::string>& urls, const std::string& text, const std::string& file,
                       const ReadOptions& options) {
  SeedReader reader(options);
  for (std::size_t i = 0; i < urls.size(); ++i)
    reader.take_url(with_scheme(std::string(base::trimmed(urls[i]))), "urls/" + std::to_string(i));
  if (!text.empty()) reader.take_bytes(with_schemes(text), "text", options.parser);
  if (!file.empty()) reader.take_bytes(file, "file", options.parser);
  return reader.finish();
}

std::string host_name(const std::string& given) {
  const auto url = base::try_parse_url(given.find("://") == std::string::npos ? "http://" + given + "/" : given);
  if (!url)
    throw base::Error(base::ErrorClass::usage, "\"" + given + "\" is not a host name", "for example example.com");
  return url->host;
}

} // namespace holdfast::cli
