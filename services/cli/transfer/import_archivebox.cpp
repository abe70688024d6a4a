// holdfast import archivebox: a data directory of ArchiveBox 0.7 to 0.9 becomes crawls and sealed snapshots.

#include "lib/archivebox/index.hpp"
#include "lib/archivebox/layout.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/store/crawl.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/directories.hpp"
#include "services/cli/transfer/import_files.hpp"
#include "services/cli/transfer/importer.hpp"

#include <CLI/CLI.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace holdfast::cli {

namespace fs = std::filesystem;

namespace {

struct ArchiveBoxOptions {
  std::string directory;
  bool link{false}, dry_run{false}, pending{false};
};

bool is_final(const std::string& status) {
  return status == "succeeded" || status == "failed" || status == "skipped" || status == "noresults";
}

// Returns one result for each hook: the last that succeeded, else the last. Before version 0.9, ArchiveBox kept older
// ones, too.
std::vector<archivebox::Result> last_results(const archivebox::Snapshot& snapshot) {
  std::map<std::pair<std::string, std::string>, archivebox::Result> last;
  for (auto result : snapshot.results) {
    if (!is_final(result.status) || result.plugin.empty()) continue;
    if (result.hook.empty()) result.hook = result.plugin;
    auto& kept = last[{result.plugin, result.hook}];
    if (kept.status != "succeeded" || result.status == "succeeded") kept = std::move(result);
  }
  std::vector<archivebox::Result> results;
  for (auto& [name, result] : last)
    results.push_back(std::move(result));
  std::stable_sort(results.begin(), results.end(),
                   [](const auto& left, const auto& right) { return left.started_at < right.started_at; });
  return results;
}

archive::ResultView view_of(const archivebox::Result& result) {
  archive::ResultView view;
  view.plugin = view.title = result.plugin;
  view.hook = result.hook;
  view.status = result.status;
  view.output = result.output;
  if (result.status == "failed")
    view.error = !result.output.empty() ? result.output : !result.error.empty() ? result.error : "not recorded";
  const auto from = base::read_timestamp(result.started_at), to = base::read_timestamp(result.ended_at);
  if (to) view.ended_at = base::written_timestamp(*to);
  if (from && to && *to > *from) view.wall_time = std::chrono::duration_cast<std::chrono::milliseconds>(*to - *from);
  return view;
}

// Returns the time of the bookmark: its timestamp, unless another snapshot had it.
std::string bookmarked_at(const archivebox::Snapshot& snapshot) {
  const auto time = base::canonical_timestamp(snapshot.bookmarked_at);
  return time.empty() ? base::canonical_timestamp(snapshot.timestamp) : time;
}

std::string outcome_of(const std::vector<archivebox::Result>& results, bool has_outputs) {
  const auto count = [&](const char* status) {
    return std::count_if(results.begin(), results.end(), [&](const auto& result) { return result.status == status; });
  };
  if (results.empty()) return has_outputs ? "succeeded" : "failed";
  if (count("succeeded") == 0) return "failed";
  return count("failed") == 0 ? "succeeded" : "partial";
}

class ArchiveBoxImport {
public:
  ArchiveBoxImport(Context& context, const ArchiveBoxOptions& options)
      : context_(context), options_(options), top_(fs::canonical(options.directory)),
        scratch_("archivebox", options.dry_run ? fs::temp_directory_path() : context.settings().path("work_dir")),
        index_(top_, scratch_.path()), directories_(top_), importer_(import_target(context, options.dry_run)) {}

  // 1 if something could not be taken.
  int run() {
    const auto problem = [this](const std::string& where, const std::string& what) {
      ++seen_;
      importer_.tell_problem("index.sqlite3, " + where, what);
    };
    index_.each_snapshot(
        [this](const archivebox::Snapshot& snapshot) {
          take(snapshot);
          return !importer_.stopped();
        },
        problem);
    importer_.finish();
    add_waiting_urls();
    const auto pending_crawl = importer_.stopped() ? "" : add_pending();
    return importer_.report(context_.json(), seen_, Importer::Pending{pending_.size(), pending_crawl});
  }

private:
  // A page of version 0.7 belongs to no crawl: all of a collection become one.
  const IncomingCrawl& crawl_of(const archivebox::Snapshot& snapshot, base::Timestamp added) {
    const auto [found, is_new] = crawls_.try_emplace(snapshot.crawl_id);
    auto& crawl = found->second;
    if (!is_new) return crawl;
    const auto row = index_.crawl(snapshot.crawl_id);
    crawl.name = {"archivebox", snapshot.crawl_id.empty() ? top_.native() : "", "crawl " + snapshot.crawl_id};
    crawl.added = base::read_timestamp(row.added_at).value_or(added);
    crawl.facts = {{"label", row.label.empty() ? "ArchiveBox " + top_.filename().native() : row.label},
                   {"notes", row.notes},
                   {"tags", base::split(row.tags, ",")},
                   {"max_depth", std::clamp<std::int64_t>(row.max_depth, 0, 16)}};
    return crawl;
  }

  bool has_outputs(const archivebox::Snapshot& snapshot, const std::optional<std::string>& directory) {
    if (!directory) return false;
    for (const auto& entry : FileTaker(top_ / *directory, {}, Taking::look, {}).entries())
      if (archivebox::place_of(entry.name, entry.type == S_IFDIR, snapshot).plugin != "archivebox") return true;
    return false;
  }

  // Puts the files of one page into the attempt, each plugin's into its directory.
  void fill(const archivebox::Snapshot& snapshot, const std::string& directory, const fs::path& attempt,
            archive::SnapshotView& view) {
    const auto taking = options_.dry_run ? Taking::look : options_.link ? Taking::link : Taking::copy;
    FileTaker taker(top_ / directory, attempt, taking, [this](const std::string& path, const std::string& problem) {
      importer_.tell_problem(fs::path(path).lexically_relative(top_).native(), problem);
    });
    for (const auto& entry : taker.entries()) {
      const auto place = archivebox::place_of(entry.name, entry.type == S_IFDIR, snapshot);
      auto files = taker.take(entry, place.name.empty() ? place.plugin : place.plugin + "/" + place.name);
      archive::ResultView* owner = nullptr; // the first that succeeded, else the first
      for (auto& result : view.results)
        if (result.plugin == place.plugin &&
            (owner == nullptr || (owner->status != "succeeded" && result.status == "succeeded")))
          owner = &result;
      if (owner != nullptr) std::move(files.begin(), files.end(), std::back_inserter(owner->files));
    }
    importer_.note_bytes(taker.bytes());
  }

  IncomingPage page_of(const archivebox::Snapshot& snapshot, const std::string& url, base::Timestamp added) {
    const auto results = last_results(snapshot);
    const auto directory = directories_.of(snapshot);
    IncomingPage page;
    page.name = {"archivebox", "", snapshot.id};
    page.crawl = crawl_of(snapshot, added);
    page.added = added;
    if (options_.link) page.bodies = archive::Bodies::shared;
    auto& view = page.view;
    view.url = url;
    view.title = snapshot.title;
    view.tags = snapshot.tags;
    view.depth = static_cast<int>(std::clamp<std::int64_t>(snapshot.depth, 0, 16));
    view.worker = "ArchiveBox";
    view.source = "archivebox:" + snapshot.timestamp;
    view.bookmarked_at = bookmarked_at(snapshot);
    auto started = base::Timestamp::max(), ended = base::Timestamp::min();
    for (const auto& result : results) {
      view.results.push_back(view_of(result));
      if (const auto at = base::read_timestamp(result.started_at)) started = std::min(started, *at);
      if (const auto at = base::read_timestamp(result.ended_at)) ended = std::max(ended, *at);
    }
    if (ended == base::Timestamp::min()) {
      auto at = base::read_timestamp(snapshot.downloaded_at);
      if (!at) at = base::read_timestamp(snapshot.updated_at);
      ended = at.value_or(added);
    }
    view.started_at = base::written_timestamp(std::min(started, ended));
    view.ended_at = base::written_timestamp(ended);
    view.outcome = outcome_of(results, has_outputs(snapshot, directory));
    page.fill = [this, snapshot, directory](const fs::path& attempt, archive::SnapshotView& filled) {
      if (directory)
        fill(snapshot, *directory, attempt, filled);
      else
        importer_.tell_problem("archive/" + snapshot.timestamp, "there is no such directory");
    };
    return page;
  }

  void take(const archivebox::Snapshot& snapshot) {
    ++seen_;
    const auto where = "archive/" + snapshot.timestamp;
    base::Url url;
    try {
      url = base::parse_url(snapshot.url);
    } catch (const base::Error& error) {
      return importer_.tell_problem(where, error.what());
    }
    urls_.insert(url.text);
    auto added = base::read_timestamp(snapshot.added_at);
    if (!added) added = base::read_timestamp(snapshot.timestamp);
    if (!added) return importer_.tell_problem(where, "it has no time: \"" + snapshot.added_at + "\"");
    const bool is_open = snapshot.status == "queued" || snapshot.status == "started" || snapshot.status == "paused";
    const bool is_done = !last_results(snapshot).empty() || has_outputs(snapshot, directories_.of(snapshot)) ||
                         snapshot.status == "sealed";
    if (is_open || !is_done)
      pending_.push_back({url.text, snapshot.title, snapshot.tags, bookmarked_at(snapshot)});
    else
      importer_.add(page_of(snapshot, url.text, *added));
  }

  // Seeds of crawls that have not ended, unless they became pages.
  void add_waiting_urls() {
    for (const auto& seed : pending_)
      urls_.insert(seed.url);
    for (const auto& line : index_.waiting_urls())
      if (const auto url = base::try_parse_url(line); url && urls_.insert(url->text).second)
        pending_.push_back({url->text, "", {}, ""});
  }

  // Adds the pages that ArchiveBox has not archived yet, as a crawl that is paused. Its id is made from its URLs, so
  // that it is added once.
  std::string add_pending() {
    if (!options_.pending || options_.dry_run || pending_.empty()) return "";
    std::string key = "pending";
    for (const auto& seed : pending_)
      key += "\n" + seed.url;
    store::NewCrawl crawl;
    crawl.id = store::import_id({"archivebox", top_.native(), key}, {});
    crawl["label"] = "ArchiveBox " + top_.filename().native() + ", not archived yet";
    crawl["created_by"] = user_name();
    crawl["only_new"] = true;
    crawl.paused_why = "imported from ArchiveBox";
    store::crawl_add(context_.connection(), crawl, pending_);
    return crawl.id;
  }

  Context& context_;
  const ArchiveBoxOptions options_;
  const fs::path top_;
  const TemporaryDirectory scratch_;
  const archivebox::Index index_;
  const archivebox::Directories directories_;
  Importer importer_;
  std::map<std::string, IncomingCrawl> crawls_;
  std::vector<store::Seed> pending_;
  std::set<std::string> urls_; // of all pages
  std::size_t seen_{0};
};

} // namespace

Action import_verb(CLI::App& command) {
  Group group(command);
  group.verb(
      "archivebox", "A data directory of ArchiveBox 0.7, 0.8 or 0.9. It may be repeated: adds what is new",
      "holdfast import archivebox --dry-run ~/archivebox\n"
      "holdfast import archivebox --link ~/archivebox",
      [](CLI::App& archivebox) {
        const auto options = std::make_shared<ArchiveBoxOptions>();
        archivebox.add_option("directory", options->directory, "The directory that holds index.sqlite3")
            ->required()
            ->check(CLI::ExistingDirectory);
        auto* const link = archivebox.add_flag(
            "--link", options->link,
            "Hard links instead of copies. Use it only if ArchiveBox no longer writes there: both then share files");
        archivebox
            .add_flag("--copy{false}", options->link, "Copies; they share blocks if the file system can (default)")
            ->excludes(link);
        archivebox.add_flag("--dry-run", options->dry_run, "Only count, and name what cannot be taken");
        archivebox.add_flag("--pending", options->pending,
                            "Also add the pages that ArchiveBox has not archived, as a paused crawl");
        return [options](Context& context) { return ArchiveBoxImport(context, *options).run(); };
      });
  group.verb("warc", "WARC and WACZ files. Each page in them becomes a snapshot of its time",
             "holdfast import warc crawl.wacz\n"
             "holdfast import warc --dry-run crawl.warc.gz",
             import_warc_verb);
  group.verb("page",
             "Pages saved in a browser: MHTML files, and HTML of SingleFile. Each becomes a snapshot of its time",
             "holdfast import page article.mhtml\n"
             "holdfast import page ~/Downloads/saved",
             import_page_verb);
  return group.action();
}

} // namespace holdfast::cli
