// holdfast import warc: WARC and WACZ files, or a directory of them, become a crawl of sealed snapshots, one for each
// page. A snapshot's WARC file holds the records of its page as they were.

#include "services/cli/transfer/import_warc.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/url.hpp"
#include "lib/wacz/reader.hpp"
#include "lib/warc/capture.hpp"
#include "lib/warc/pack.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/split.hpp"
#include "lib/warc/surt.hpp"
#include "services/capture/browser/page.hpp"
#include "services/capture/extract/readable.hpp"
#include "services/capture/replay/replay_source.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <set>

namespace holdfast::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLongestPageText = 4u << 20; // of a page
constexpr std::size_t kLongestTitle = 500, kLongestTag = 200;

struct WarcOptions {
  std::vector<std::string> files;
  bool dry_run{false};
};

// The result of the import itself: the files in the directory of this name.
void add_result(archive::SnapshotView& view, const fs::path& attempt, const std::string& plugin,
                const std::string& output) {
  archive::ResultView result;
  result.plugin = result.title = plugin;
  result.hook = "import";
  result.status = "succeeded";
  result.output = output;
  for (auto file : archive::scan_outputs(attempt / plugin).files) {
    file.path = plugin + "/" + file.path;
    result.files.push_back(std::move(file));
  }
  view.results.push_back(std::move(result));
}

class WarcImport {
public:
  // `again`: the positions of pages that run() has postponed; their file was reported.
  WarcImport(Importer& importer, const std::string& path, std::vector<std::size_t> again = {})
      : importer_(importer), path_(path), name_(archive::printable(fs::path(path).filename().native())),
        again_(std::move(again)) {}

  // `url`: of a saved page that does not name it.
  std::size_t run(base::Fd opened, const std::string& url) {
    read(std::move(opened), url);
    const auto& pages = splitter_.pages();
    if (pages.empty()) throw base::Error(base::ErrorClass::usage, path_ + " holds no page: no response can be read");
    crawl_.name = {"warc", digest_, "crawl"};
    crawl_.added = base::Timestamp::max();
    for (const auto& page : pages)
      if (const auto at = base::read_timestamp(page.date)) crawl_.added = std::min(crawl_.added, *at);
    crawl_.facts = {{"label", name_}, {"notes", "imported from " + name_}};
    if (archive_.saved) name_crawl_of_day();
    for (const auto i : again_)
      if (!importer_.stopped()) add(i);
    for (std::size_t i = 0; again_.empty() && i < pages.size() && !importer_.stopped(); ++i)
      if (pages[i].found && pages[i].revisit && !importer_.dry_run() && !original_of(capture_of(pages[i]), false))
        put_off_.push_back(i);
      else
        add(i);
    importer_.finish(); // the files are read then
    return pages.size();
  }

  // Pages of which another file may have the payload: they come after all files.
  std::vector<std::size_t> take_put_off() { return std::move(put_off_); }

private:
  // The record that has the payload of a revisit record; its file, if that is of the archive.
  struct Original {
    nlohmann::json record;
    base::Fd of_archive{};
  };

  void tell(const std::string& path, const std::string& problem) {
    if (again_.empty()) importer_.tell_problem(path, problem);
  }

  // Pages of a browser come one by one: those of a day and a user become one crawl.
  void name_crawl_of_day() {
    constexpr std::size_t kDay = 10;
    const auto day = base::written_timestamp(crawl_.added).substr(0, kDay);
    crawl_.name = {"browser", "", day + " " + importer_.by()};
    crawl_.added = base::read_timestamp(day).value_or(crawl_.added);
    crawl_.facts = {{"label", "Saved in a browser, " + day}};
  }

  void read(base::Fd file, const std::string& url) {
    struct stat about {};
    const auto known = file && ::fstat(file.get(), &about) == 0;
    if (!known || !(S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)))
      throw base::Error(base::ErrorClass::usage, "cannot read " + path_ + ": " + base::errno_text(errno));
    std::uint64_t size = 0;
    const auto problem = [this](const std::string& entry, const std::string& what) { tell(entry, what); };
    if (S_ISDIR(about.st_mode)) {
      archive_ = wacz::read_directory(path_, problem);
      ::lseek(archive_.file.get(), 0, SEEK_SET);
      digest_ = archive::hash_rest(archive_.file.get(), path_, size);
    } else {
      digest_ = archive::hash_rest(file.get(), path_, size);
      archive_ = wacz::read_archive(std::move(file), size, path_, problem, url);
    }
    std::erase_if(archive_.pages, [&](const auto& page) {
      try { // a page that cannot be kept must not take the records after it
        base::parse_url(page.url);
        if (splitter_.add_page(page.url, page.date, page.id)) return false;
        tell(path_ + ": pages", page.url + " has no time: \"" + page.date + "\"");
        return !splitter_.add_page(page.url, "", page.id); // that of its record counts
      } catch (const base::Error& error) {
        tell(path_ + ": pages", page.url + ": " + error.what());
      }
      return true;
    });
    for (std::size_t i = 0; i < archive_.warcs.size(); ++i) {
      const auto& warc = archive_.warcs[i];
      splitter_.add_file(warc.file, warc.begin, warc.end, [&](const warc::Damaged& damage) {
        if (damage.used() == warc::Damaged::Used::in_part) cut_.emplace(i, damage.offset());
        tell(warc.name + " at " + std::to_string(damage.offset()), damage.what());
      });
    }
    splitter_.finish();
  }

  const wacz::ReadPage* listed(const warc::SplitPage& page) const {
    return page.listed < archive_.pages.size() ? &archive_.pages[page.listed] : nullptr;
  }

  void add(std::size_t number) {
    const auto& page = splitter_.pages()[number];
    const auto left_out = [&](const std::string& why) { importer_.tell_problem(path_ + ": " + page.url, why); };
    bool any = false;
    splitter_.each_part(number, [&](auto, auto, auto) { any = true; });
    if (!any) return left_out("none of its records is there");
    IncomingPage incoming;
    try {
      incoming.view.url = base::parse_url(page.url).text;
    } catch (const base::Error& error) {
      return left_out(error.what());
    }
    if (page.date.empty()) return left_out("has no time, and no record that has one");
    incoming.name = {"warc", digest_, page.date + " " + page.url};
    incoming.crawl = crawl_;
    incoming.added = base::read_timestamp(page.date).value_or(base::Timestamp{});
    auto& view = incoming.view;
    view.worker = "import";
    view.source = (archive_.saved ? "browser:" : "warc:") + name_;
    view.started_at = view.ended_at = base::written_timestamp(incoming.added);
    const bool whole = page.found && !archive_.cut && !page.truncated && !cut_.contains({page.file, page.offset});
    view.outcome = !whole ? "partial" : page.status >= capture::kFirstError ? "failed" : "succeeded";
    if (page.found && page.status >= 100 && page.status <= 999) view.facts["http_status"] = std::to_string(page.status);
    if (page.found && !page.mime.empty()) view.facts["mime"] = base::fact_value(page.mime);
    if (const auto* about = listed(page)) {
      view.title = capture::one_line(about->title, kLongestTitle);
      for (const auto& tag : about->tags)
        if (auto clean = capture::one_line(tag, kLongestTag); !clean.empty()) view.tags.push_back(std::move(clean));
      view.bookmarked_at = base::canonical_timestamp(about->bookmarked);
      incoming.notes = capture::clean(about->notes);
    }
    incoming.fill = [this, number](const fs::path& attempt, archive::SnapshotView& filled) {
      if (!attempt.empty()) fill(number, attempt, filled); // else it is only looked at
    };
    importer_.add(std::move(incoming));
  }

  // warc/records-1.warc.gz and so on: one file for each that the records come from.
  void fill(std::size_t number, const fs::path& attempt, archive::SnapshotView& view) {
    const auto& page = splitter_.pages()[number];
    fs::create_directory(attempt / "warc");
    std::map<std::size_t, base::Fd> files;
    std::size_t parts = 0;
    std::uint64_t bytes = 0;
    splitter_.each_part(number, [&](std::size_t from, std::uint64_t offset, std::uint64_t length) {
      const auto& source = archive_.warcs[from];
      const auto name =
          attempt / "warc" / ("records-" + std::to_string(from + 1) + (source.members ? ".warc.gz" : ".warc"));
      auto& to = files[from];
      if (!to) to.reset(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
      if (!to) archive::throw_errno(errno, "create", name.native());
      const auto put = [&](std::string_view piece) { archive::write_all(to.get(), piece, name.native()); };
      const auto cut = cut_.lower_bound({from, offset}); // the last of its group, if one is
      const auto end = cut != cut_.end() && *cut < std::pair(from, offset + length) ? cut->second : offset + length;
      archive::read_range(source.file, source.begin + offset, source.begin + end, source.name, put);
      if (end < offset + length) warc::mend(source.file, source.begin + end, source.end, source.members, put);
      ++parts;
      bytes += length;
    });
    files.clear();
    importer_.note_bytes(bytes);
    add_result(view, attempt, "warc", std::to_string(parts) + (parts == 1 ? " exchange" : " exchanges"));
    keep_files(attempt, view);
    keep_text(page, attempt, view);
  }

  // Files of a saved page, each in the directory of its plugin.
  void keep_files(const fs::path& attempt, archive::SnapshotView& view) {
    std::string last;
    for (const auto& [path, bytes] : archive_.files) {
      fs::create_directories((attempt / path).parent_path());
      std::ofstream(attempt / path, std::ios::binary) << bytes;
    }
    for (const auto& [path, bytes] : archive_.files)
      if (const auto plugin = path.substr(0, path.find('/')); plugin != std::exchange(last, plugin))
        add_result(view, attempt, plugin, fs::path(path).filename().native());
  }

  void each_capture(std::size_t warc, std::uint64_t from, const std::function<bool(warc::Capture)>& take) {
    const auto& [name, file, begin, end, members] = archive_.warcs[warc];
    const auto in_file = [&, at = begin + from](warc::Capture capture) {
      return capture.offset += at, take(std::move(capture));
    };
    warc::each_capture(file, begin + from, end, in_file, [](auto&) {}); // reported before
  }

  warc::Capture capture_of(const warc::SplitPage& page) {
    warc::Capture own;
    each_capture(page.file, page.offset, [&](warc::Capture capture) { return own = std::move(capture), false; });
    return own;
  }

  // By its digest, in these files or in the archive; else (`by_url`) the record of the URL that it names.
  std::optional<Original> original_of(const warc::Capture& revisit, bool by_url) {
    for (; read_ < archive_.warcs.size(); ++read_)
      each_capture(read_, 0, [&](warc::Capture capture) {
        if (capture.mime == "warc/revisit") return true;
        originals_.emplace(capture.key, std::pair(read_, capture));
        originals_.emplace(capture.digest, std::pair(read_, std::move(capture)));
        return true;
      });
    const auto in_files = [&](const std::string& name) -> std::optional<Original> {
      const auto found = originals_.find(name);
      if (found == originals_.end()) return std::nullopt;
      const auto& [warc, capture] = found->second;
      return Original{warc::replay_record(capture, archive_.warcs[warc].file)};
    };
    const auto& key = revisit.refers_to.empty() ? revisit.key : revisit.refers_to;
    if (auto same = in_files(revisit.digest)) return same;
    if (auto stored = importer_.stored({key, revisit.digest}))
      return Original{warc::replay_record(stored->first, stored->second.get()), std::move(stored->second)};
    return by_url ? in_files(key) : std::nullopt;
  }

  // text/content.txt, for the search: of the list of pages, or of the document.
  void keep_text(const warc::SplitPage& page, const fs::path& attempt, archive::SnapshotView& view) {
    std::string text;
    if (const auto* about = listed(page)) text = archive_.text_of(*about);
    const auto& mime = page.mime;
    const bool readable = mime.find("ml") != mime.npos || mime.starts_with("text/") || mime.find('/') == mime.npos;
    if (page.found && readable && (text.empty() || view.title.empty())) {
      auto own = capture_of(page);
      own.key = warc::url_key(page.url);
      auto records = nlohmann::json::array({warc::replay_record(own, archive_.warcs[page.file].file)});
      const auto original = page.revisit ? original_of(own, true) : std::nullopt;
      if (original) {
        records.front()["digest"] = original->record["digest"];
        records.push_back(original->record);
      }
      if (auto answer = capture::ReplaySource(records).answer({{"method", "GET"}, {"url", page.url}})) {
        const capture::Page shown{page.url, capture::header_of(answer->headers, "content-type"),
                                  std::move(answer->body), "warc"};
        const auto words = shown.text();
        const bool html = shown.is_html();
        if (view.title.empty() && html) view.title = capture::title_of(words);
        if (text.empty() && (html || shown.is_plain_text()))
          text = html ? capture::blocks_as_text(capture::readable_blocks(words)) : words;
      }
    }
    text = capture::clean(text.substr(0, kLongestPageText));
    if (text.empty()) return;
    fs::create_directory(attempt / "text");
    std::ofstream(attempt / "text/content.txt", std::ios::binary) << text;
    add_result(view, attempt, "text", "content.txt");
  }

  Importer& importer_;
  const std::string path_, name_;
  const std::vector<std::size_t> again_;
  std::vector<std::size_t> put_off_;
  std::string digest_;
  std::set<std::pair<std::size_t, std::uint64_t>> cut_; // records that are not whole: file and offset
  std::size_t read_{0}; // files, once a page is a revisit; then what they hold, by digest and by URL key:
  std::map<std::string, std::pair<std::size_t, warc::Capture>> originals_;
  wacz::WebArchive archive_;
  warc::Splitter splitter_;
  IncomingCrawl crawl_;
};

base::Fd opened(const std::string& path) {
  base::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw base::Error(base::ErrorClass::usage, "cannot read " + path + ": " + base::errno_text(errno));
  return file;
}

} // namespace

std::size_t import_archive(Importer& importer, base::Fd file, const std::string& name, const std::string& url) {
  return WarcImport(importer, name).run(std::move(file), url);
}

int import_archives(Context& context, const std::vector<std::string>& files, bool dry_run, const std::string& url) {
  Importer importer(import_target(context, dry_run));
  std::size_t pages = 0;
  std::vector<std::pair<std::string, std::vector<std::size_t>>> put_off;
  const auto run = [&](const std::string& path, std::vector<std::size_t> again) {
    if (importer.stopped()) return;
    try {
      const bool first = again.empty();
      WarcImport file(importer, path, std::move(again));
      const auto found = file.run(opened(path), url);
      if (first) pages += found;
      if (auto some = file.take_put_off(); !some.empty()) put_off.emplace_back(path, std::move(some));
    } catch (const base::Error& error) {
      using Class = base::ErrorClass;
      const auto kind = error.error_class();
      const bool of_file = kind == Class::usage || kind == Class::refused || kind == Class::input_output;
      if (files.size() == 1 || !of_file) throw;
      importer.tell_problem(path, error.what());
    }
  };
  for (const auto& path : files)
    run(path, {});
  for (auto& [path, some] : std::exchange(put_off, {}))
    run(path, std::move(some));
  return importer.report(context.json(), pages);
}

Action import_warc_verb(CLI::App& command) {
  const auto options = std::make_shared<WarcOptions>();
  command
      .add_option("files", options->files,
                  "WARC files (.warc, .warc.gz), WACZ files, and directories and zip files of them")
      ->required()
      ->check(CLI::ExistingPath);
  command.add_flag("--dry-run", options->dry_run, "Only count, and name what cannot be read");
  return [options](Context& context) { return import_archives(context, options->files, options->dry_run); };
}

} // namespace holdfast::cli
