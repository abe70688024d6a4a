#include "lib/wacz/reader.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "lib/base/uuid.hpp"
#include "lib/formats/encoding.hpp"
#include "lib/formats/saved_page.hpp"
#include "lib/wacz/unpack.hpp"
#include "lib/wacz/writer.hpp"
#include "lib/warc/capture.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/headers.hpp"
#include "lib/warc/pack.hpp"
#include "lib/warc/spool.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast::wacz {

namespace {

constexpr std::size_t kLongestLine = 8u << 20; // of the list of pages
constexpr std::size_t kMostPages = 5'000'000;
constexpr std::size_t kLongestNotes = 10000, kMostTags = 100; // of a page
constexpr std::string_view kZip = "PK\3\4";

// Returns true for WARC files in any directory, because some users zip the directory of a WACZ file again, or a
// directory of WARC files; entries of macOS are ignored.
bool is_warc_entry(const std::string& path) {
  const auto ends = [&](std::string_view with) {
    return path.ends_with(with) || path.ends_with(std::string(with) + ".gz");
  };
  return path.find("..") == std::string::npos && !path.starts_with("__MACOSX/") && (ends(".warc") || ends(".arc"));
}

bool is_page_list(const std::string& path) {
  return path.ends_with(".jsonl") && ("/" + path).find("/pages/") != std::string::npos;
}

// Returns the time of a page: "2026-01-31T23:59:59Z", or milliseconds since 1970. Empty: it has none.
std::string time_of(const nlohmann::json& page) {
  const auto found = page.find("ts");
  return found != page.end() && found->is_number() ? base::canonical_timestamp(found->dump())
                                                   : base::text_at(page, "ts");
}

} // namespace

std::string WebArchive::text_of(const ReadPage& page) const {
  std::string text;
  base::each_piece(texts.get(), page.text_offset, page.text_offset + page.text_size,
                   [&](std::string_view piece) { text += piece; });
  return text;
}

namespace {

// Gathers what one WACZ file holds, several in a zip file, or a directory.
class ZipReading {
public:
  explicit ZipReading(const Problem& problem) : problem_(problem) { read_.texts = temporary_file(); }

  // `inner`: of a WACZ file within a zip file of several.
  void take(const Unpacked& file, bool inner) {
    ArchiveReader zip(file, ArchiveReader::Kind::zip, problem_);
    for (std::string path; zip.next(path);) {
      const auto entry = file.name + ": " + path;
      if (is_warc_entry(path)) {
        take_warc(unpack_entry(zip, entry));
      } else if (path.ends_with(".wacz") && !inner) {
        take(unpack_entry(zip, entry), true);
      } else if (path.ends_with("datapackage.json")) {
        std::string text;
        zip.read(entry, [&](std::string_view bytes) {
          if (text.size() < kLongestLine) text += bytes;
        });
        take_description(text);
      } else if (is_page_list(path)) {
        take_pages(entry, [&](const auto& take) { zip.read(entry, take); });
      }
    }
  }

  // A file of a directory that was exported or unpacked.
  void take(const std::string& path, base::Fd file, std::uint64_t size) {
    const auto read = [&](const auto& take) { base::each_piece(file.get(), 0, size, take); };
    if (is_page_list(path)) return take_pages(path, read);
    Unpacked copy{path, temporary_file()};
    read([&](std::string_view bytes) { copy.add(bytes); });
    take_warc(std::move(copy));
  }

  WebArchive finish(const std::string& name) {
    if (elsewhere_ > 0) {
      const auto what = std::to_string(elsewhere_) + " of its files are on the web (" + example_ + ")";
      const std::string remedy = "download these files and import them";
      if (read_.warcs.empty()) throw base::Error(base::ErrorClass::refused, name + ": " + what, remedy);
      problem_(name + ": datapackage.json", what + ": " + remedy);
    }
    if (read_.warcs.empty())
      throw base::Error(base::ErrorClass::usage, name + " is no web archive: it holds no WARC file");
    return std::move(read_);
  }

private:
  // Appends it to the one file of all, which the first becomes.
  void take_warc(Unpacked warc) {
    const bool members = has_places(warc);
    if (!members) warc = with_places(std::move(warc), problem_);
    const auto begin = size_;
    size_ += warc.size;
    if (!read_.file) {
      read_.file = std::move(warc.file);
      ::lseek(read_.file.get(), 0, SEEK_END);
    } else {
      base::each_piece(warc.file.get(), 0, warc.size,
                       [&](std::string_view piece) { write_all(read_.file.get(), piece); });
    }
    read_.warcs.push_back({warc.name, read_.file.get(), begin, size_, members});
  }

  template <typename Read>
  void take_pages(const std::string& entry, const Read& read) {
    std::string line; // of one that is too long, a little more than is allowed
    std::size_t number = 0;
    const auto end_line = [&] {
      ++number;
      if (const auto wrong = take_page(std::exchange(line, "")); !wrong.empty())
        problem_(entry, "line " + std::to_string(number) + " " + wrong);
    };
    read([&](std::string_view bytes) {
      for (const char byte : bytes)
        if (byte == '\n')
          end_line();
        else if (line.size() <= kLongestLine)
          line += byte;
    });
    end_line();
  }

  // Files of a list of several WACZ files, which may be on the web.
  void take_description(std::string_view text) {
    const auto about = base::strange_json(text);
    for (const auto& one : about.is_object() ? about.value("resources", nlohmann::json()) : nlohmann::json())
      if (const auto path = one.is_object() ? base::text_at(one, "path") : ""; base::is_web_url(path))
        if (elsewhere_++ == 0) example_ = path.substr(0, 200);
  }

  // A line of pages.jsonl, of which the first describes the list. Returns what is wrong with it.
  std::string take_page(std::string_view line) {
    if (line.empty()) return {};
    if (line.size() > kLongestLine) return "is too long";
    const auto object = base::strange_json(line);
    if (!object.is_object()) return "is not JSON";
    if (object.contains("format")) return {};
    const auto text = base::text_at(object, "text");
    ReadPage page{base::text_at(object, "id"),
                  base::text_at(object, "url"),
                  time_of(object),
                  base::text_at(object, "title"),
                  texts_size_,
                  text.size()};
    if (page.url.empty()) return "has no url";
    page.notes = base::repair_utf8(base::text_at(object, "notes").substr(0, kLongestNotes));
    page.bookmarked = base::text_at(object, "bookmarked_at");
    if (const auto tags = object.find("tags"); tags != object.end() && tags->is_array())
      for (const auto& tag : *tags)
        if (tag.is_string() && page.tags.size() < kMostTags)
          page.tags.push_back(base::repair_utf8(tag.get<std::string>().substr(0, 200)));
    if (read_.pages.size() == kMostPages) return "is left out: there are too many pages";
    write_all(read_.texts.get(), text);
    texts_size_ += text.size();
    read_.pages.push_back(std::move(page));
    return {};
  }

  const Problem& problem_;
  WebArchive read_;
  std::uint64_t size_{0}, texts_size_{0}; // of the files
  std::size_t elsewhere_{0};
  std::string example_; // of these files
};

constexpr std::uint64_t kLargestSaved = std::uint64_t{512} << 20; // read into memory

std::optional<std::string> saved_bytes(const Unpacked& file) {
  std::string bytes;
  const auto take = [&](std::string_view piece) { bytes += piece; };
  base::each_piece(file.file.get(), 0, formats::kSavedHead, take);
  const bool html = formats::type_of_bytes(bytes) == "text/html";
  if (!html && formats::saved_kind(bytes) == formats::SavedKind::none) return std::nullopt;
  if (file.size > kLargestSaved)
    throw base::Error(base::ErrorClass::refused, file.name + " is larger than " + base::format_size(kLargestSaved));
  bytes.reserve(file.size);
  base::each_piece(file.file.get(), bytes.size(), file.size, take);
  return bytes;
}

WebArchive of_one(Unpacked warc, bool members) {
  WebArchive read;
  read.warcs.push_back({warc.name, warc.file.get(), 0, warc.size, members});
  read.file = std::move(warc.file);
  return read;
}

// A WARC file with a record of type resource for each part.
Unpacked records_of(const formats::SavedPage& page, const std::string& date, const std::string& name) {
  Unpacked warc{name, temporary_file()};
  warc::GzipMember member(Z_DEFAULT_COMPRESSION);
  const auto put = [&](std::string_view bytes) { warc.add(bytes); };
  for (const auto& part : page.parts) {
    const bool first = &part == &page.parts.front();
    const auto& url = first ? page.url : part.url;
    if (url.empty()) continue; // nothing leads to it
    const auto digest = warc::sha1_of(part.body);
    member.restart(warc::gzip_level(warc::media_type(part.type)));
    member.add(warc::record_head({}, {},
                                 {{"WARC-Type", "resource"},
                                  {"WARC-Record-ID", "<urn:uuid:" + base::new_uuid() + ">"},
                                  {"WARC-Target-URI", url},
                                  {"WARC-Date", date},
                                  {"WARC-Block-Digest", digest},
                                  {"WARC-Payload-Digest", digest},
                                  {"Content-Type", part.type.empty() ? "application/octet-stream" : part.type}},
                                 part.body.size()),
               put);
    member.add(part.body, put);
    member.add("\r\n\r\n", put, true);
  }
  return warc;
}

WebArchive read_saved(const std::string& bytes, const std::string& name, const std::string& url,
                      const Problem& problem) {
  const bool mhtml = formats::saved_kind(bytes) == formats::SavedKind::mhtml;
  auto page = formats::read_saved_page(bytes);
  if (page.url.empty()) page.url = url;
  if (!base::is_web_url(page.url))
    throw base::Error(base::ErrorClass::usage,
                      name + (page.url.empty() ? " does not name the URL of its page"
                                               : " is of \"" + page.url.substr(0, 200) + "\", which is no web page"),
                      page.url.empty() ? "name it with --url" : "");
  page.url = base::parse_url(page.url).text;
  if (!page.problem.empty()) problem(name, page.problem);
  const auto time = base::read_timestamp(page.date);
  if (!time && !page.date.empty()) problem(name, "its time cannot be read: \"" + page.date.substr(0, 100) + "\"");
  const auto date = base::written_timestamp(time.value_or(std::chrono::system_clock::now()));
  auto read = of_one(records_of(page, date, name), true);
  read.saved = true;
  read.cut = !page.problem.empty();
  read.texts = temporary_file();
  read.pages.push_back({"", page.url, date, "", 0, 0});
  auto still = formats::still_page(page);
  read.files.emplace_back("dom/still.html", std::move(still.html));
  for (std::size_t i = 0; i < still.frames.size(); ++i)
    read.files.emplace_back("dom/frame-" + std::to_string(i + 1) + ".html", std::move(still.frames[i]));
  read.files.emplace_back(mhtml ? "browser/page.mhtml" : "browser/page.html", bytes);
  return read;
}

} // namespace

WebArchive read_directory(const std::filesystem::path& directory, const Problem& problem) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  constexpr auto kSkip = std::filesystem::directory_options::skip_permission_denied;
  for (std::filesystem::recursive_directory_iterator entry(directory, kSkip, error), end; !error && entry != end;
       entry.increment(error))
    if (const auto name = entry->path().lexically_relative(directory); is_warc_entry(name) || is_page_list(name))
      paths.push_back(entry->path());
  std::sort(paths.begin(), paths.end());
  ZipReading reading(problem);
  for (const auto& path : paths) {
    base::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat about {};
    if (file && ::fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode))
      reading.take(path.native(), std::move(file), static_cast<std::uint64_t>(about.st_size));
    else
      problem(path.native(), "is not a file that can be read");
  }
  return reading.finish(directory.native());
}

WebArchive read_archive(base::Fd file, std::uint64_t size, const std::string& name, const Problem& problem,
                        const std::string& url) {
  Unpacked given{name, std::move(file), size};
  if (base::holds_at(given.file.get(), 0, kZip)) {
    ZipReading reading(problem);
    reading.take(given, false);
    return reading.finish(name);
  }
  if (const auto bytes = saved_bytes(given)) return read_saved(*bytes, name, url, problem);
  const bool members = has_places(given);
  if (!members) given = with_places(std::move(given), problem);
  return of_one(std::move(given), members);
}

} // namespace holdfast::wacz
