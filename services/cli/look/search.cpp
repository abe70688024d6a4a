#include "lib/catalog/search.hpp"

#include "lib/archive/page_text.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/context/presence.hpp"
#include "services/cli/look/list.hpp"
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
  std::map<std::string, std::string> filters; // as typed; empty: not given
  std::string cursor;
  int limit{20};
  bool all{false}, rebuild{false};
};

constexpr int kTextsAtOnce = 500;

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

void print_hit(const Collection::Json& hit) {
  const auto text = [&](const char* name) { return base::text_at(hit, name); };
  std::cout << printable(text(text("title").empty() ? "url" : "title")) << '\n'
            << "  " << printable(text("url")) << '\n';
  if (const auto excerpt = text("excerpt"); !excerpt.empty()) std::cout << "  " << printable(excerpt) << '\n';
  std::cout << "  " << text("id") << "  " << text("outcome") << " on " << local_time(text("sealed_at")) << "\n\n";
}

int search(Context& context, const SearchOptions& options) {
  if (options.rebuild) return rebuild(context, options.all);
  if (options.words.empty())
    throw base::Error(base::ErrorClass::usage, "nothing to search for: give words", "holdfast search solar wind");
  nlohmann::json given{{"q", base::join(options.words, " ")}, {"limit", options.limit}, {"all", options.all}};
  for (const auto& [name, typed] : options.filters)
    if (!typed.empty()) given[name] = filter_value(context, catalog::list_of("snapshots"), name, typed);
  if (!options.cursor.empty()) given["cursor"] = options.cursor;
  const auto hits = context.collection().search(given);
  if (context.json()) {
    for (const auto& hit : hits)
      print_record("Snapshot", hit);
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
  const auto& snapshots = catalog::list_of("snapshots");
  for (const auto& field : catalog::search_fields())
    if (const std::string name(field.name); snapshots.knows(name))
      command.add_option("--" + name, options->filters[name],
                         std::string(field.what) + std::string(catalog::filter_of(name).examples));
  command.add_flag("--all", options->all, "Every capture of a URL, not only the newest; with --rebuild: every page");
  command.add_option("--cursor", options->cursor,
                     "Continue after the row with this cursor (a field of the JSON output)");
  command.add_option("-n,--limit", options->limit, "At most this many (20)")->check(number<int>(1, 200));
  command.add_flag("--rebuild", options->rebuild, "Index the text of pages that are not in the index");
  return [options](Context& context) { return search(context, *options); };
}

} // namespace holdfast::cli
