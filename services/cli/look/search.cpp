#include "lib/archive/page_text.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/text.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/collection.hpp"
#include "services/cli/context/presence.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>

namespace holdfast::cli {

namespace {

struct SearchOptions {
  std::vector<std::string> words;
  std::string host, tag, crawl, outcome, since, until, cursor;
  int limit{20};
  bool all{false}, rebuild{false};
};

constexpr int kTextsAtOnce = 500;

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// Stores the text of a page. Returns false if it has no text now, because its file cannot be read.
bool keep_text(Context& context, const archive::Root& root, const store::TextMissing& page, std::size_t limit) {
  try {
    const auto text = archive::page_text(root, page.directory, limit);
    return store::text_keep(context.connection(), page.lease, text);
  } catch (const base::Error& error) {
    if (error.error_class() != base::ErrorClass::input_output) throw;
    std::cerr << error.what() << '\n';
    return false;
  }
}

// From the files of the archive.
int rebuild(Context& context, bool all) {
  auto& connection = context.connection();
  const auto root = archive::Root::open(context.archive_root(), store::collection_id(connection), false);
  const Presence presence(context, "command", "search --rebuild");
  const auto limit = context.settings().size("search.text_limit");
  if (all) store::call(connection, "texts_drop");
  std::size_t count = 0;
  std::optional<std::string> after;
  for (;;) {
    const auto missing = store::texts_missing(connection, after, kTextsAtOnce);
    for (const auto& page : missing)
      if (keep_text(context, root, page, limit)) ++count;
    if (missing.size() < kTextsAtOnce) break;
    after = missing.back().lease.snapshot_id;
  }
  std::cerr << "text of " << count << (count == 1 ? " page" : " pages") << " added\n";
  return base::kExitSuccess;
}

void print_hit(const store::SearchHit& hit) {
  std::cout << printable(hit.name()) << '\n' << "  " << printable(hit.url) << '\n';
  if (!hit.excerpt.empty()) std::cout << "  " << printable(hit.excerpt) << '\n';
  std::cout << "  " << hit.id << "  " << hit.outcome << " on " << local_time(hit.sealed_at) << "\n\n";
}

int search(Context& context, const SearchOptions& options) {
  if (options.rebuild) return rebuild(context, options.all);
  if (options.words.empty())
    throw base::Error(base::ErrorClass::usage, "nothing to search for: give words", "holdfast search solar wind");
  auto& collection = context.collection();
  store::SearchQuery query;
  query.words = base::join(options.words, " ");
  if (!options.host.empty()) query.host = host_name(options.host);
  query.tag = unless_empty(options.tag);
  if (!options.crawl.empty()) query.crawl_id = collection.find(options.crawl).crawl_id;
  query.outcome = unless_empty(options.outcome);
  if (!options.since.empty()) query.since = time_before(options.since);
  if (!options.until.empty()) query.until = time_before(options.until);
  query.cursor = unless_empty(options.cursor);
  query.limit = options.limit;
  query.all = options.all;
  const auto hits = collection.search(query);
  if (context.json()) {
    std::vector<std::string> records;
    for (const auto& hit : hits)
      records.push_back(hit.json);
    print_records(records, "Snapshot");
    return base::kExitSuccess;
  }
  for (const auto& hit : hits)
    print_hit(hit);
  if (hits.empty()) std::cout << "nothing found\n";
  return base::kExitSuccess;
}

} // namespace

Action search_verb(CLI::App& command) {
  const auto options = std::make_shared<SearchOptions>();
  command.add_option("words", options->words, "Words, \"a phrase\", or, -not, begin*");
  command.add_option("--host", options->host, "Only pages of this host");
  command.add_option("--tag", options->tag, "Only with this tag");
  command.add_option("--crawl", options->crawl, "Only of this crawl");
  command.add_option("--outcome", options->outcome, "Only with this outcome");
  command.add_option("--since", options->since, "Only archived since: 2h, 7d, 2026-11-22, \"2026-11-22 14:00\"");
  command.add_option("--until", options->until, "Only archived before");
  command.add_flag("--all", options->all, "Every capture of a URL, not only the newest; with --rebuild: every page");
  command.add_option("--cursor", options->cursor,
                     "Continue after the row with this cursor (a field of the JSON output)");
  command.add_option("-n,--limit", options->limit, "At most this many (20)")->check(number<int>(1, 200));
  command.add_flag("--rebuild", options->rebuild, "Index the text of pages that are not in the index");
  return [options](Context& context) { return search(context, *options); };
}

} // namespace holdfast::cli
