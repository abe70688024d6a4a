#pragma once
// Makes pages that another program has archived sealed snapshots of this collection: puts their files into the archive,
// then stores their rows, in batches. A page has the same id and directory in every run, so an interrupted import
// continues, and a second one adds new pages. Owned by the verb; main thread. Errors of one page are reported and
// counted; errors of the archive or the database are thrown.

#include "lib/archive/attempt.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/time.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/import.hpp"
#include "services/cli/context/presence.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace holdfast::cli {

struct IncomingCrawl {
  store::ImportName name;
  base::Timestamp added{};
  nlohmann::json facts; // label, notes, tags, max_depth
};

struct IncomingPage {
  store::ImportName name;
  IncomingCrawl crawl; // a second page of a URL goes into another crawl, "<key>#2"
  base::Timestamp added{};
  archive::SnapshotView view;                   // all but id, crawl_id, fence, bytes and files; the URL is canonical
  std::string notes{};                          // of users, which are not in the files
  archive::Bodies bodies{archive::Bodies::own}; // shared: `fill` makes hard links
  // Puts the files of the page into a directory that is empty, and lists those of each result in the view.
  std::function<void(const std::filesystem::path& attempt, archive::SnapshotView& view)> fill;
};

// Where pages go, and in whose name.
struct ImportTarget {
  std::function<pg::Connection&()> connection; // none: there is no collection yet
  std::filesystem::path archive, work_dir;
  std::size_t text_limit{0}; // of the search
  std::string by;
  // Something of the source that could not be taken, by path.
  std::function<void(const std::string& path, const std::string& problem)> problem;
  bool dry_run{false};                  // only counts; writes no file and no row
  bool shows_progress{false};           // on the terminal
  std::shared_ptr<Presence> presence{}; // not of a dry run
};
// Returns the target of a verb, which prints problems.
ImportTarget import_target(Context& context, bool dry_run);

class Importer {
public:
  explicit Importer(ImportTarget target);

  void add(IncomingPage page);
  void finish(); // stores what waits; then nothing more is added
  // Returns true if the user stops the import: published pages are stored, and no more begin.
  bool stopped() const;
  bool dry_run() const noexcept { return to_.dry_run; }
  const std::string& by() const noexcept { return to_.by; }

  // The record of an imported or captured page that answers for a URL with this payload, and its file. nullopt: the
  // archive has none, or it is a dry run.
  std::optional<std::pair<warc::Capture, base::Fd>> stored(const store::Payload& payload);

  void tell_problem(const std::string& path, const std::string& problem);
  void note_bytes(std::uint64_t bytes) { counts_.bytes += bytes; }

  struct Counts {
    std::size_t imported{0}, known{0}, removed{0}, problems{0};
    std::uint64_t bytes{0};
    std::set<std::string> crawls;
  };

  // Pages that the other program has not archived, and the crawl that they became; "": none.
  struct Pending {
    std::size_t pages{0};
    std::string crawl;
  };
  // Prints the summary, an object of type Import or a sentence. Returns the exit code: interrupted, or 1 if something
  // could not be taken. `found`: pages of the source.
  int report(bool json, std::size_t found, const std::optional<Pending>& pending = std::nullopt) const;
  const Counts& counts() const noexcept { return counts_; }
  // The page that was added last, also if it was there before.
  const store::ImportPage& last() const noexcept { return last_; }

private:
  struct Waiting {
    IncomingPage page;
    store::ImportPage place;
    int copy{1};
    bool fresh{false};
  };
  void flush();
  void find_places();
  nlohmann::json publish(Waiting& waiting);
  void keep_texts(const nlohmann::json& pages);
  void show_progress(bool last);

  const ImportTarget to_;
  std::optional<archive::Root> root_; // not of a dry run
  std::vector<Waiting> waiting_;
  store::ImportPage last_;
  Counts counts_;
};

} // namespace holdfast::cli
