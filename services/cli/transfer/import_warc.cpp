// holdfast import warc: WARC and WACZ files that were made elsewhere become a crawl of sealed snapshots, one for each
// page. A snapshot's WARC file holds the records of its page as they were.

#include "services/cli/transfer/import_warc.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/base/error.hpp"
#include "lib/base/read_at.hpp"
#include "lib/base/url.hpp"
#include "lib/formats/html.hpp"
#include "lib/wacz/reader.hpp"
#include "lib/wacz/sorted_lines.hpp"
#include "lib/warc/arc.hpp"
#include "lib/warc/capture.hpp"
#include "lib/warc/pack.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/split.hpp"
#include "lib/warc/surt.hpp"
#include "services/capture/browser/page.hpp"
#include "services/capture/extract/readable.hpp"
#include "services/capture/replay/replay_source.hpp"
#include "services/cli/terminal/output.hpp"
#include "services/cli/transfer/importer.hpp"

#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <memory>
#include <set>

namespace holdfast::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLongestPageText = 4u << 20; // of a page
constexpr std::size_t kLongestTitle = 500;

struct WarcOptions {
  std::vector<std::string> files;
  bool dry_run{false};
};

// A WARC file that is read: its own, or one of a WACZ file.
struct Source {
  std::string name; // for messages
  base::Fd file;
  std::uint64_t size{0};
  bool compressed{false};
};

bool is_zip(int file) {
  std::array<char, 4> head{};
  return base::read_at(file, head.data(), head.size(), 0) == 4 && std::string_view(head.data(), 4) == "PK\3\4";
}

void copy_range(int from, std::uint64_t offset, std::uint64_t length, int to, const std::string& path) {
  const auto got = base::each_piece(from, offset, offset + length,
                                    [&](std::string_view piece) { archive::write_all(to, piece, path); });
  if (got < static_cast<std::int64_t>(length))
    throw base::Error(base::ErrorClass::input_output, path + " became shorter while it was read",
                      "import it again when nothing writes to it");
}

std::string title_in(const std::string& html) {
  std::string title;
  bool inside = false;
  formats::scan_html(html, [&](const formats::Token& token) {
    using Kind = formats::Token::Kind;
    if (token.kind != Kind::text && token.text == "title") {
      if (token.kind == Kind::end) return false;
      inside = true;
    } else if (inside && token.kind == Kind::text) {
      title += token.text;
    }
    return title.size() < kLongestTitle;
  });
  return capture::one_line(title, kLongestTitle);
}

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

// One file that the user names.
class WarcImport {
public:
  // `again`: the places of pages that run() has put off; their file was told of.
  WarcImport(Importer& importer, const std::string& path, std::vector<std::size_t> again = {});
  std::size_t run(); // returns the number of pages
  // Pages of which another file may have the payload: they come after all files.
  std::vector<std::size_t> take_put_off() { return std::move(put_off_); }

private:
  // The record that has the payload of a revisit record; its file, if that is of the archive.
  struct Original {
    nlohmann::json record;
    base::Fd of_archive{};
  };
  void read();
  void take_source(Source source);
  void tell(const std::string& path, const std::string& problem);
  std::optional<Original> original_of(const warc::SplitPage& page, bool by_url);
  void add(std::size_t number);
  void fill(std::size_t number, const fs::path& attempt, archive::SnapshotView& view);
  void keep_text(const warc::SplitPage& page, const nlohmann::json& record, const fs::path& attempt,
                 archive::SnapshotView& view);
  const wacz::ReadPage* listed(const warc::SplitPage& page) const;

  Importer& importer_;
  const std::string path_, name_;
  const std::vector<std::size_t> again_;
  std::vector<std::size_t> put_off_;
  std::string digest_;
  std::vector<Source> sources_;
  std::set<std::pair<std::size_t, std::uint64_t>> cut_; // records that are not whole: source and offset
  std::size_t read_{0}; // sources, once a page is a revisit; then what they hold, by digest and by URL key:
  std::map<std::string, std::pair<std::size_t, warc::Capture>> originals_;
  wacz::ReadWacz wacz_;
  std::vector<std::size_t> listed_; // pages of the list, by page
  warc::Splitter splitter_;
  IncomingCrawl crawl_;
};

WarcImport::WarcImport(Importer& importer, const std::string& path, std::vector<std::size_t> again)
    : importer_(importer), path_(path), name_(archive::printable(fs::path(path).filename().native())),
      again_(std::move(again)) {}

void WarcImport::tell(const std::string& path, const std::string& problem) {
  if (again_.empty()) importer_.tell_problem(path, problem);
}

void WarcImport::read() {
  base::Fd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))
    throw base::Error(base::ErrorClass::usage, "cannot read " + path_ + ": " + base::errno_text(errno));
  std::uint64_t size = 0;
  digest_ = archive::hash_rest(file.get(), path_, size);
  if (is_zip(file.get())) {
    const auto problem = [this](const std::string& entry, const std::string& what) {
      tell(path_ + ": " + entry, what);
    };
    wacz_ = wacz::read_wacz(file.get(), path_, problem);
    for (auto& warc : wacz_.warcs)
      take_source({path_ + ": " + warc.name, std::move(warc.file), warc.size, false});
    for (std::size_t i = 0; i < wacz_.pages.size(); ++i) {
      const auto& page = wacz_.pages[i];
      try { // a page that cannot be kept must not take the records after it
        base::parse_url(page.url);
        if (splitter_.add_page(page.url, page.date, page.id))
          listed_.push_back(i);
        else
          problem("pages", page.url + " has no time: \"" + page.date + "\"");
      } catch (const base::Error& error) {
        problem("pages", page.url + ": " + error.what());
      }
    }
  } else {
    take_source({path_, std::move(file), size, false});
  }
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const auto& source = sources_[i];
    splitter_.add_file(source.file.get(), source.size, [&](const warc::Damaged& damage) {
      if (damage.is_cut()) cut_.emplace(i, damage.offset());
      tell(source.name + " at " + std::to_string(damage.offset()), damage.what());
    });
  }
  splitter_.finish();
}

// What has no record of its own in the file, because it was compressed as a whole or is an ARC file, is unpacked first.
void WarcImport::take_source(Source source) {
  const auto problem = [&](const std::string& entry, const std::string& what) { tell(entry, what); };
  const auto become = [&](wacz::ReadWacz::Warc other) {
    source.file = std::move(other.file);
    source.size = other.size;
  };
  const auto is_arc = [&] { return warc::is_arc(source.file.get(), source.size); };
  source.compressed = warc::Reader::has_members(source.file.get(), source.size) && !is_arc();
  if (!source.compressed)
    if (auto unpacked = wacz::unpack(source.file.get(), source.name, problem)) become(*std::move(unpacked));
  if (is_arc()) {
    wacz::ReadWacz::Warc warc{source.name, wacz::temporary_file(), 0};
    const auto put = [&](std::string_view bytes) {
      wacz::write_all(warc.file.get(), bytes);
      warc.size += bytes.size();
    };
    warc::arc_to_warc(source.file.get(), source.size, put, [&](std::uint64_t at, const std::string& what) {
      problem(source.name + " at " + std::to_string(at), what);
    });
    become(std::move(warc));
  }
  sources_.push_back(std::move(source));
}

const wacz::ReadPage* WarcImport::listed(const warc::SplitPage& page) const {
  return page.listed < listed_.size() ? &wacz_.pages[listed_[page.listed]] : nullptr;
}

std::size_t WarcImport::run() {
  read();
  const auto& pages = splitter_.pages();
  if (pages.empty()) throw base::Error(base::ErrorClass::usage, path_ + " holds no page: no response can be read");
  crawl_.name = {"warc", digest_, "crawl"};
  crawl_.added = base::Timestamp::max();
  for (const auto& page : pages)
    if (const auto at = base::read_timestamp(page.date)) crawl_.added = std::min(crawl_.added, *at);
  crawl_.facts = {{"label", name_}, {"notes", "imported from " + name_}};
  for (const auto i : again_)
    if (!importer_.stopped()) add(i);
  for (std::size_t i = 0; again_.empty() && i < pages.size() && !importer_.stopped(); ++i)
    if (pages[i].found && pages[i].revisit && !importer_.dry_run() && !original_of(pages[i], false))
      put_off_.push_back(i);
    else
      add(i);
  importer_.finish(); // the files are read then
  return pages.size();
}

void WarcImport::add(std::size_t number) {
  const auto& page = splitter_.pages()[number];
  bool any = false;
  splitter_.each_part(number, [&](auto, auto, auto) { any = true; });
  if (!any) return importer_.tell_problem(path_ + ": " + page.url, "none of its records is there");
  IncomingPage incoming;
  try {
    incoming.view.url = base::parse_url(page.url).text;
  } catch (const base::Error& error) {
    return importer_.tell_problem(path_ + ": " + page.url, error.what());
  }
  if (page.date.empty())
    return importer_.tell_problem(path_ + ": " + page.url, "has no time, and no record that has one");
  incoming.name = {"warc", digest_, page.date + " " + page.url};
  incoming.crawl = crawl_;
  incoming.added = base::read_timestamp(page.date).value_or(base::Timestamp{});
  auto& view = incoming.view;
  view.worker = "import";
  view.source = "warc:" + name_;
  view.started_at = view.ended_at = base::written_timestamp(incoming.added);
  const bool whole = page.found && !page.truncated && !cut_.contains({page.file, page.offset});
  view.outcome = !whole ? "partial" : page.status >= capture::kFirstError ? "failed" : "succeeded";
  if (page.found && page.status >= 100 && page.status <= 999) view.http_status = page.status;
  if (page.found) view.mime = page.mime;
  if (const auto* about = listed(page)) view.title = capture::one_line(about->title, kLongestTitle);
  incoming.fill = [this, number](const fs::path& attempt, archive::SnapshotView& filled) {
    if (!attempt.empty()) fill(number, attempt, filled); // else it is only looked at
  };
  importer_.add(std::move(incoming));
}

// warc/records-1.warc.gz and so on: one file for each that the records come from.
void WarcImport::fill(std::size_t number, const fs::path& attempt, archive::SnapshotView& view) {
  const auto& page = splitter_.pages()[number];
  fs::create_directory(attempt / "warc");
  std::map<std::size_t, base::Fd> files;
  nlohmann::json record; // of the page itself
  std::size_t parts = 0;
  std::uint64_t bytes = 0;
  splitter_.each_part(number, [&](std::size_t from, std::uint64_t offset, std::uint64_t length) {
    const auto& source = sources_[from];
    const auto name =
        attempt / "warc" / ("records-" + std::to_string(from + 1) + (source.compressed ? ".warc.gz" : ".warc"));
    auto& to = files[from];
    if (!to) to.reset(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!to) archive::throw_errno(errno, "create", name.native());
    const auto at = static_cast<std::uint64_t>(::lseek(to.get(), 0, SEEK_CUR));
    const auto cut = cut_.lower_bound({from, offset}); // the last of its group, if one is
    const auto end = cut != cut_.end() && *cut < std::pair(from, offset + length) ? cut->second : offset + length;
    copy_range(source.file.get(), offset, end - offset, to.get(), source.name);
    if (end < offset + length)
      warc::mend(source.file.get(), end, source.size, source.compressed,
                 [&](std::string_view text) { archive::write_all(to.get(), text, source.name); });
    if (page.found && page.file == from && page.offset >= offset && page.offset < offset + length) {
      warc::Capture own;
      own.key = warc::url_key(page.url);
      own.mime = page.revisit ? "warc/revisit" : "";
      own.offset = at + page.offset - offset;
      own.length = static_cast<std::uint64_t>(::lseek(to.get(), 0, SEEK_CUR)) - own.offset;
      record = capture::replay_record(own, name.native());
    }
    ++parts;
    bytes += length;
  });
  files.clear();
  importer_.note_bytes(bytes);
  add_result(view, attempt, "warc", std::to_string(parts) + (parts == 1 ? " exchange" : " exchanges"));
  keep_text(page, record, attempt, view);
}

// By its digest, in these files or in the archive; else (`by_url`) the record of the URL that it names.
std::optional<WarcImport::Original> WarcImport::original_of(const warc::SplitPage& page, bool by_url) {
  const auto each = [&](std::size_t source, std::uint64_t from, const std::function<bool(warc::Capture)>& take) {
    warc::each_capture(sources_[source].file.get(), from, sources_[source].size, take, [](auto&) {}); // was told
  };
  warc::Capture revisit;
  each(page.file, page.offset, [&](warc::Capture capture) { return revisit = std::move(capture), false; });
  for (; read_ < sources_.size(); ++read_)
    each(read_, 0, [&](warc::Capture capture) {
      if (capture.mime == "warc/revisit") return true;
      originals_.emplace(capture.key, std::pair(read_, capture));
      originals_.emplace(capture.digest, std::pair(read_, std::move(capture)));
      return true;
    });
  const auto in_files = [&](const std::string& name) -> std::optional<Original> {
    const auto found = originals_.find(name);
    if (found == originals_.end()) return std::nullopt;
    const auto& [source, capture] = found->second;
    return Original{capture::replay_record(capture, sources_[source].file.get())};
  };
  const auto& key = revisit.refers_to.empty() ? revisit.key : revisit.refers_to;
  if (auto same = in_files(revisit.digest)) return same;
  if (auto stored = importer_.stored({key, revisit.digest}))
    return Original{capture::replay_record(stored->first, stored->second.get()), std::move(stored->second)};
  return by_url ? in_files(key) : std::nullopt;
}

// text/content.txt, for the search: of the list of pages, or of the document.
void WarcImport::keep_text(const warc::SplitPage& page, const nlohmann::json& record, const fs::path& attempt,
                           archive::SnapshotView& view) {
  std::string text;
  if (const auto* about = listed(page)) text = wacz_.text_of(*about);
  const auto& mime = page.mime;
  const bool readable = mime.find("ml") != mime.npos || mime.starts_with("text/") || mime.find('/') == mime.npos;
  if (!record.is_null() && readable && (text.empty() || view.title.empty())) {
    auto records = nlohmann::json::array({record});
    const auto original = page.revisit ? original_of(page, true) : std::nullopt;
    if (original) {
      records.front()["digest"] = original->record["digest"];
      records.push_back(original->record);
    }
    if (auto answer = capture::ReplaySource(records).answer("GET", page.url)) {
      const capture::Page shown{page.url, capture::header_of(answer->headers, "content-type"), std::move(answer->body),
                                "warc"};
      const auto words = shown.text();
      const bool html = shown.is_html();
      if (view.title.empty() && html) view.title = title_in(words);
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

// 1 if something could not be taken.
int import_warc(Context& context, const WarcOptions& options) {
  Importer importer(context, options.dry_run);
  std::size_t pages = 0;
  std::vector<std::pair<std::string, std::vector<std::size_t>>> put_off;
  for (const auto& path : options.files) {
    if (importer.stopped()) break;
    WarcImport file(importer, path);
    pages += file.run();
    if (auto some = file.take_put_off(); !some.empty()) put_off.emplace_back(path, std::move(some));
  }
  for (auto& [path, some] : put_off)
    if (!importer.stopped()) WarcImport(importer, path, std::move(some)).run();
  return importer.report(pages);
}

} // namespace

Action import_warc_verb(CLI::App& command) {
  const auto options = std::make_shared<WarcOptions>();
  command.add_option("files", options->files, "WARC files (.warc, .warc.gz) and WACZ files")
      ->required()
      ->check(CLI::ExistingFile);
  command.add_flag("--dry-run", options->dry_run, "Only count, and name what cannot be read");
  return [options](Context& context) { return import_warc(context, *options); };
}

} // namespace holdfast::cli
