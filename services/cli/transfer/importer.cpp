#include "services/cli/transfer/importer.hpp"

#include "lib/archive/captures.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/archive/page_text.hpp"
#include "lib/archive/recover.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/text.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/terminal/output.hpp"

#include <unistd.h>

#include <iostream>

namespace holdfast::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPagesAtOnce = 50;
constexpr std::int64_t kFence = 1;
constexpr int kMostCopies = 1000; // of a URL in one crawl of the source

// Removed in any case; publish() has moved its results away already.
class Staging {
public:
  Staging(const fs::path& parent, std::string name) : parent_(fs::canonical(parent)), name_(std::move(name)) {
    if (::mkdirat(archive::open_directory(parent_).get(), name_.c_str(), 0755) != 0)
      archive::throw_errno(errno, "create the directory", path().native());
  }
  ~Staging() {
    try {
      archive::remove_tree_at(archive::open_directory(parent_).get(), name_, path().native());
    } catch (const base::Error&) { // the next import removes it
    }
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  fs::path path() const { return parent_ / name_; }

private:
  const fs::path parent_;
  const std::string name_;
};

bool is_of_everything(const base::Error& error) {
  using Class = base::ErrorClass;
  return error.error_class() != Class::input_output && error.error_class() != Class::refused &&
         error.error_class() != Class::bug;
}

} // namespace

ImportTarget import_target(Context& context, bool dry_run) {
  ImportTarget to;
  if (!dry_run || context.has_embedded_data() || !context.embedded())
    to.connection = [&context]() -> pg::Connection& { return context.connection(true); };
  to.archive = context.archive_root();
  to.work_dir = context.settings().path("work_dir");
  to.text_limit = context.settings().size("search.text_limit");
  to.by = user_name();
  to.shows_progress = ::isatty(STDERR_FILENO) != 0;
  to.problem = [json = context.json(), clears = to.shows_progress](const std::string& path,
                                                                   const std::string& problem) {
    if (clears) std::cerr << "\r\033[K";
    print_defect(json, "not_taken", path, problem);
  };
  to.dry_run = dry_run;
  if (!dry_run) {
    context.connection(true);
    to.presence = std::make_shared<Presence>(context, "command", "import");
  }
  return to;
}

Importer::Importer(ImportTarget target) : to_(std::move(target)) {
  if (to_.dry_run) return;
  auto& connection = to_.connection();
  root_ = archive::Root::open(to_.archive, store::collection_id(connection),
                              !store::call_for<bool>(connection, "archive_begun"));
}

bool Importer::stopped() const { return interrupted(); }

void Importer::tell_problem(const std::string& path, const std::string& problem) {
  ++counts_.problems;
  to_.problem(path, problem);
}

void Importer::add(IncomingPage page) {
  Waiting waiting;
  waiting.place.id = store::import_id(page.name, page.added);
  waiting.place.url = page.view.url;
  const auto url = base::parse_url(page.view.url);
  waiting.place.directory =
      archive::snapshot_directory(base::written_timestamp(page.added), base::host_directory(url), waiting.place.id)
          .native();
  waiting.page = std::move(page);
  waiting_.push_back(std::move(waiting));
  if (waiting_.size() == kPagesAtOnce) flush();
}

void Importer::finish() {
  flush();
  show_progress(true);
}

std::optional<std::pair<warc::Capture, base::Fd>> Importer::stored(const store::Payload& payload) {
  if (dry_run()) return std::nullopt;
  for (auto& capture : store::captures_stored(to_.connection(), {payload}, std::nullopt, 0)) {
    auto file = root_->open_file(capture.file);
    if (file) return std::pair{warc::Capture(std::move(capture)), std::move(file)};
  }
  return std::nullopt;
}

// Gives every page that is new a crawl that has no other page of its URL.
void Importer::find_places() {
  std::set<std::pair<std::string, std::string>> given; // crawl and URL, in this batch
  std::vector<Waiting*> open;
  for (auto& waiting : waiting_)
    open.push_back(&waiting);
  while (!open.empty()) {
    std::vector<store::ImportPage> places;
    for (auto* waiting : open) {
      do {
        auto name = waiting->page.crawl.name;
        if (waiting->copy > 1) name.key += "#" + std::to_string(waiting->copy);
        waiting->place.crawl_id = store::import_id(name, waiting->page.crawl.added);
      } while (!given.emplace(waiting->place.crawl_id, waiting->place.url).second && ++waiting->copy <= kMostCopies);
      places.push_back(waiting->place);
    }
    const auto answers = to_.connection ? store::import_check(to_.connection(), places)
                                        : std::vector(places.size(), store::ImportPlace::fresh);
    std::vector<Waiting*> again;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (answers[i] == store::ImportPlace::taken && ++open[i]->copy <= kMostCopies) again.push_back(open[i]);
      counts_.known += answers[i] == store::ImportPlace::known ? 1 : 0;
      counts_.removed += answers[i] == store::ImportPlace::removed ? 1 : 0;
      open[i]->fresh = answers[i] == store::ImportPlace::fresh;
      last_ = open[i]->place;
    }
    open = std::move(again);
  }
}

// Puts one page into the archive. Returns the argument of import_pages().
nlohmann::json Importer::publish(Waiting& waiting) {
  auto& view = waiting.page.view;
  view.id = waiting.place.id;
  view.crawl_id = waiting.place.crawl_id;
  view.fence = kFence;
  const fs::path directory = waiting.place.directory;
  const bool bucket = root_->bucket() != nullptr;
  const fs::path parent = bucket ? to_.work_dir / "import" : root_->path() / directory;
  if (bucket)
    fs::create_directories(parent);
  else
    archive::make_directories(root_->path(), directory);
  archive::remove_partials(*root_, directory);
  archive::Published published;
  archive::Captures captures;
  {
    // A directory beside its final place, under the name of an unfinished publication: only a rename remains.
    const Staging staging(parent, ".a" + std::to_string(kFence) + ".partial-" + base::random_hex32());
    waiting.page.fill(staging.path(), view);
    if (waiting.page.bodies == archive::Bodies::own || bucket)
      for (const auto& path : archive::tidy(*root_, staging.path(), directory, kFence))
        tell_problem((directory / path).native(), "its path is too long");
    captures = archive::read_captures(staging.path());
    published = archive::publish(*root_, staging.path(), directory, view, nullptr, waiting.page.bodies);
  }
  for (const auto& problem : captures.problems)
    tell_problem(published.directory.native(), problem);
  std::string problem;
  auto page = archive::Files(*root_).read_snapshot(waiting.place.directory, problem);
  if (!page) throw base::Error(base::ErrorClass::bug, waiting.place.directory + ": " + problem);
  if (!waiting.page.notes.empty()) (*page)["notes"] = waiting.page.notes;
  (*page)["captures"] = nlohmann::json::parse(archive::captures_json(captures));
  auto facts = waiting.page.crawl.facts;
  facts["created_at"] = base::written_timestamp(waiting.page.crawl.added);
  facts["created_by"] = to_.by;
  (*page)["crawl"] = std::move(facts);
  return *page;
}

void Importer::keep_texts(const nlohmann::json& pages) {
  for (const auto& page : pages) {
    const store::Lease lease{page["id"], page["crawl_id"], kFence};
    const auto text = archive::page_text(*root_, page["directory"].get<std::string>(), to_.text_limit);
    store::text_keep(to_.connection(), lease, text);
  }
}

void Importer::flush() {
  if (waiting_.empty()) return;
  find_places();
  auto pages = nlohmann::json::array();
  for (auto& waiting : waiting_) {
    if (!waiting.fresh) continue;
    if (stopped()) break;
    if (dry_run()) {
      ++counts_.imported;
      counts_.crawls.insert(waiting.place.crawl_id);
      waiting.page.fill({}, waiting.page.view);
      continue;
    }
    try {
      pages.push_back(publish(waiting));
    } catch (const base::Error& error) {
      if (is_of_everything(error)) throw;
      tell_problem(waiting.page.view.source, error.what());
    }
    show_progress(false);
  }
  if (!pages.empty()) {
    const auto answers = store::import_pages(to_.connection(), pages);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i] != store::ImportPlace::fresh) continue; // another import was quicker
      ++counts_.imported;
      counts_.crawls.insert(pages[i]["crawl_id"].get<std::string>());
    }
    keep_texts(pages);
  }
  waiting_.clear();
  show_progress(false);
}

int Importer::report(bool json, std::size_t found, const std::optional<Pending>& pending) const {
  if (json) {
    nlohmann::ordered_json object = {{"dry_run", dry_run()},
                                     {"found", found},
                                     {"imported", counts_.imported},
                                     {"known", counts_.known},
                                     {"removed", counts_.removed}};
    if (pending) object["pending"] = pending->pages;
    object.update({{"problems", counts_.problems}, {"crawls", counts_.crawls.size()}, {"bytes", counts_.bytes}});
    if (pending && !pending->crawl.empty()) object["pending_crawl"] = pending->crawl;
    print_record("Import", object);
  } else {
    std::cout << found << " pages found: " << counts_.imported << (dry_run() ? " would be imported, " : " imported, ")
              << counts_.known << " known, ";
    if (pending) std::cout << pending->pages << " not archived by ArchiveBox, ";
    std::cout << counts_.problems << " problems; " << base::format_size(counts_.bytes) << '\n';
    if (pending && !pending->crawl.empty())
      std::cout << "  next: holdfast resume " << pending->crawl << " archives what ArchiveBox has not\n";
    else if (pending && pending->pages > 0)
      std::cout << "  next: --pending adds what ArchiveBox has not archived as a crawl, paused\n";
  }
  std::cout << std::flush;
  if (stopped()) return base::kExitInterrupted;
  return counts_.problems == 0 ? base::kExitSuccess : base::kExitFailedWork;
}

void Importer::show_progress(bool last) {
  if (!to_.shows_progress) return;
  std::cerr << "\r\033[K" << counts_.imported << " imported, " << counts_.known << " known, "
            << base::format_size(counts_.bytes) << (last ? "\n" : "") << std::flush;
}

} // namespace holdfast::cli
