#include "lib/archive/page_text.hpp"
#include "lib/archive/root.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/time.hpp"
#include "lib/s3/location.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/find.hpp"
#include "lib/wacz/writer.hpp"
#include "lib/warc/surt.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/presence.hpp"
#include "services/cli/terminal/output.hpp"
#include "services/cli/transfer/destination.hpp"
#include "services/cli/transfer/export_files.hpp"
#include "services/cli/transfer/export_list.hpp"
#include "services/cli/transfer/export_originals.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <span>

namespace holdfast::cli {

namespace {

constexpr std::int64_t kSnapshotsAtOnce = 100;
constexpr std::size_t kLongestText = 1u << 20; // of a page, in its list

struct ExportOptions {
  std::vector<std::string> ids;
  bool all{false};
  std::string tag, host, since, until, shelf, format{"wacz"}, output;
};

// "browser/page.warc.gz" of a snapshot -> "0198...-browser-page.warc.gz"
std::string exported_name(const std::string& snapshot, const std::string& directory, const std::string& file) {
  std::string name = snapshot + "-";
  for (const char c : file.substr(directory.size() + 1)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    name += plain ? c : '-';
  }
  return name;
}

class WaczSink : public Sink {
public:
  explicit WaczSink(ZipFile& to)
      : writer_(to.writer(), {"Holdfast", "Holdfast " HOLDFAST_VERSION, base::utc_timestamp()}) {}
  void warc(const std::string& name, int file, std::uint64_t size) override { writer_.add_warc(name, file, size); }
  void capture(const warc::Capture& capture) override { writer_.add_capture(capture); }
  void page(const wacz::WrittenPage& page) override { writer_.add_page(page); }
  void finish() override { writer_.finish(); }

private:
  wacz::Writer writer_;
};

// WARC files beside index.cdxj and the list of pages. A file that is there with its size is kept, so that an export can
// go on.
class WarcSink : public Sink {
public:
  explicit WarcSink(Destination& to) : to_(to) {}
  void warc(const std::string& name, int file, std::uint64_t size) override { to_.add(name, file, size, true); }
  void capture(const warc::Capture& capture) override { lines_.add(warc::cdxj_line(capture)); }
  void page(const wacz::WrittenPage& page) override { pages_.add(page); }
  void finish() override {
    const auto index = wacz::temporary_file();
    std::uint64_t size = 0;
    lines_.each([&](const std::string& line) {
      wacz::write_all(index.get(), line + "\n");
      size += line.size() + 1;
    });
    to_.add("index.cdxj", index.get(), size, false);
    to_.add(wacz::PageList::kPath, pages_.file(), pages_.size(), false);
  }

private:
  Destination& to_;
  wacz::SortedLines lines_;
  wacz::PageList pages_;
};

// Returns the key as players look it up: ours may be shortened.
std::string whole_key(const warc::Capture& capture) {
  if (capture.method.empty()) return warc::whole_url_key(capture.url);
  const auto query = "__wb_method=" + capture.method + (capture.request.empty() ? "" : "&") + capture.request;
  return warc::whole_url_key(capture.url + (capture.url.find('?') == std::string::npos ? "?" : "&") + query);
}

void export_one(const archive::Root& root, const store::ExportedSnapshot& snapshot,
                std::span<const store::Capture> captures, Sink& sink, Exported& told) {
  ++told.snapshots;
  std::string before, name;
  base::Fd file;
  for (const auto& capture : captures) {
    if (capture.file != before) {
      before = capture.file;
      file = root.open_file(capture.file);
      name = file ? exported_name(snapshot.id, snapshot.directory, capture.file) : "";
      if (file) {
        const auto size = archive::file_size(file.get(), capture.file);
        sink.warc(name, file.get(), size);
        told.bytes += size;
      } else {
        ++told.missing;
        std::cerr << "missing  " << capture.file << "\n";
      }
    }
    const bool piece = capture.status == 206 && std::any_of(captures.begin(), captures.end(), [&](const auto& whole) {
                         return whole.status == 200 && whole.key == capture.key;
                       });
    if (name.empty() || piece) continue; // players that are offered pieces beside the whole file show nothing
    warc::Capture exported = capture;
    exported.file = name;
    if (capture.key.find("__wb_method=") != std::string::npos) // players want the request, too
      warc::each_capture(
          file.get(), capture.offset, archive::file_size(file.get(), capture.file),
          [&](const warc::Capture& found) {
            exported.method = found.method;
            exported.request = found.request;
            return false;
          },
          [](const warc::Damaged&) {});
    if (capture.key.size() == warc::kLongestKey) exported.key = whole_key(exported);
    sink.capture(exported);
    ++told.captures;
  }
  if (captures.empty()) {
    ++told.without_captures;
    return;
  }
  auto page = listed_page(snapshot, captures);
  page.text = archive::page_text(root, snapshot.directory, kLongestText);
  sink.page(page);
}

void show_progress(const Exported& told, bool last) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::cerr << "\r\033[K" << told.snapshots << " snapshots, " << base::format_size(told.bytes) << (last ? "\n" : "")
            << std::flush;
}

Exported export_all(pg::Connection& connection, const archive::Root& root, const store::ExportQuery& query,
                    Sink& sink) {
  Exported told;
  Originals originals;
  store::each_exported(connection, query, kSnapshotsAtOnce, [&](const auto& batch) {
    std::vector<std::string> ids;
    for (const auto& snapshot : batch)
      ids.push_back(snapshot.id);
    const auto captures = store::captures_of(connection, ids);
    for (const auto& snapshot : batch) {
      const auto own = captures_in(captures, snapshot.id);
      export_one(root, snapshot, own, sink, told);
      originals.exported(snapshot.id);
      if (std::any_of(own.begin(), own.end(), [](const auto& capture) { return capture.mime == "warc/revisit"; }))
        for (const auto& original : store::originals_of(connection, snapshot.id))
          originals.wanted(original);
      for (const auto& lent : captures_from_cache(connection, root, own))
        originals.wanted(lent);
      show_progress(told, false);
    }
  });
  if (told.snapshots == 0) return told;
  originals.write(root, sink, told);
  sink.finish();
  show_progress(told, true);
  return told;
}

// Names become ids, unless a server finds them.
store::ExportQuery query_of(Context& context, const ExportOptions& options) {
  const bool filtered = !(options.tag + options.host + options.since + options.until + options.shelf).empty();
  if (options.ids.empty() && !filtered && !options.all)
    throw base::Error(
        base::ErrorClass::usage,
        "nothing to export: name crawls or snapshots, or use --shelf, --tag, --host, --since, --until or --all",
        "holdfast export ID... -o archive.wacz");
  store::ExportQuery query;
  if (!options.ids.empty()) {
    query.ids.emplace();
    for (const auto& id : read_ids(options.ids))
      query.ids->push_back(context.remote() ? id : store::find(context.connection(), id).id);
  }
  const auto given = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  if (!options.shelf.empty() && query.ids)
    throw base::Error(base::ErrorClass::usage, "--shelf and ids name two things to export",
                      "holdfast export --shelf " + shell_word(options.shelf) + " -o shelf.wacz");
  if (!options.shelf.empty())
    query.shelf =
        context.remote() ? options.shelf : store::find(context.connection(), options.shelf, store::FindAs::shelf).id;
  query.tag = given(options.tag);
  query.host = given(options.host);
  if (!options.since.empty()) query.since = time_before(options.since);
  if (!options.until.empty()) query.until = time_before(options.until);
  return query;
}

// Returns the result of `work`. Nothing is written if there was nothing to export. If the destination has failed, its
// reason comes before the writer's error.
template <typename Work>
auto written_to(Destination& to, Work&& work) {
  try {
    auto told = work();
    if (told.snapshots > 0) to.keep();
    return told;
  } catch (const base::Error&) {
    to.give_up();
    throw;
  }
}

int code_of(std::size_t exported) { return exported > 0 ? base::kExitSuccess : base::kExitFailedWork; }

bool names_zip(const std::string& path) {
  return path == "-" || (s3::is_location(path) ? path.substr(0, path.find('?')) : path).ends_with(".zip");
}

int run_file_export(pg::Connection& connection, const archive::Root& root, const store::ExportQuery& query,
                    const std::string& path) {
  const std::unique_ptr<Destination> to = names_zip(path) ? std::make_unique<ZipFile>(path) : open_directory(path);
  const auto told = written_to(*to, [&] {
    return export_files(connection, root, query, *to, [](const Exported& now) { show_progress(now, false); });
  });
  show_progress(told, true);
  std::cerr << told.snapshots << " snapshots exported: " << told.files << " files, " << base::format_size(told.bytes)
            << '\n';
  return code_of(told.snapshots);
}

// 1 if a file of the archive is missing, or there was nothing to export.
int run_export(Context& context, const ExportOptions& options) {
  const bool lists = options.format == "bookmarks" || options.format == "json";
  if (!lists) context.need_database();
  const auto query = query_of(context, options);
  if (lists) {
    const auto each =
        context.remote() ? bookmarks_of(context.collection(), query) : bookmarks_of(context.connection(), query);
    const auto count = export_list(each, options.format == "json", options.output);
    std::cerr << count << " snapshots listed\n";
    return code_of(count);
  }
  auto& connection = context.connection();
  const auto root = archive::Root::open(context.archive_root(), store::collection_id(connection), false);
  const Presence presence(context, "command", "export");
  if (options.format == "files") return run_file_export(connection, root, query, options.output);
  Exported told;
  if (options.format == "warc") {
    if (options.output == "-")
      throw base::Error(base::ErrorClass::usage, "--format warc writes a directory", "-o DIRECTORY");
    const auto to = open_directory(options.output);
    WarcSink sink(*to);
    told = export_all(connection, root, query, sink);
  } else {
    ZipFile to(options.output);
    WaczSink sink(to);
    told = written_to(to, [&] { return export_all(connection, root, query, sink); });
  }
  std::cerr << told.snapshots << " snapshots exported: " << told.captures << " captures, "
            << base::format_size(told.bytes) << " of WARC files";
  if (told.without_captures > 0) std::cerr << "; " << told.without_captures << " snapshots have no WARC file";
  if (told.missing > 0) std::cerr << "; " << told.missing << " files are missing";
  std::cerr << "\n";
  return told.missing == 0 ? code_of(told.snapshots) : base::kExitFailedWork;
}

} // namespace

Action export_verb(CLI::App& command) {
  const auto options = std::make_shared<ExportOptions>();
  command.add_option("ids", options->ids, "Crawls or snapshots; - reads them from standard input");
  command.add_flag("--all", options->all, "Everything");
  command.add_option("--shelf", options->shelf, "Only pages on this shelf, in its order");
  command.add_option("--tag", options->tag, "Only snapshots with this tag");
  command.add_option("--host", options->host, "Only of this host");
  command.add_option("--since", options->since, "Only captured since: 2h, 7d, 2026-11-22");
  command.add_option("--until", options->until, "Only captured before");
  command
      .add_option("--format", options->format,
                  "wacz: one file; warc: a directory of WARC files and index.cdxj; files: everything, as a directory "
                  "or, if the output ends in .zip, a zip file; bookmarks, json: a list of the pages with titles, tags "
                  "and notes")
      ->check(CLI::IsMember({"wacz", "warc", "files", "bookmarks", "json"}))
      ->capture_default_str();
  command
      .add_option("-o,--output", options->output,
                  "The file or directory to write; - is standard output; s3://BUCKET/NAME is sent as it is made")
      ->required();
  return [options](Context& context) { return run_export(context, *options); };
}

} // namespace holdfast::cli
