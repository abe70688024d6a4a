#include "lib/wacz/reader.hpp"

#include "lib/base/error.hpp"
#include "lib/base/timestamp.hpp"
#include "lib/wacz/sorted_lines.hpp"
#include "lib/warc/record_bytes.hpp"

#include <nlohmann/json.hpp>

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace holdfast::wacz {

namespace {

constexpr std::uint64_t kMostRatio = 20;        // WARC files are compressed already; plain ones shrink to a tenth
constexpr std::uint64_t kMostRatioOfText = 200; // of one that was compressed as a whole
constexpr std::uint64_t kSmall = 64u << 20;
constexpr std::size_t kLongestLine = 8u << 20; // of the list of pages
constexpr std::size_t kMostPages = 5'000'000;
constexpr std::size_t kReadAtOnce = 1u << 18;

using Problem = std::function<void(const std::string& entry, const std::string& what)>;

bool is_warc_entry(const std::string& path) {
  return path.starts_with("archive/") && path.find("..") == std::string::npos &&
         (path.ends_with(".warc.gz") || path.ends_with(".warc"));
}

bool is_page_list(const std::string& path) { return path.starts_with("pages/") && path.ends_with(".jsonl"); }

std::string text_at(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Of a page: "2026-01-31T23:59:59Z", or milliseconds since 1970. Empty: it does not say.
std::string time_of(const nlohmann::json& page) {
  const auto found = page.find("ts");
  if (found == page.end() || !found->is_number()) return text_at(page, "ts");
  const auto number = found->get<double>();
  return base::canonical_timestamp(std::to_string(number >= 1e11 ? number / 1000 : number));
}

// How much a file may unpack to.
class Limit {
public:
  Limit(std::string name, std::uint64_t ratio, std::uint64_t size)
      : name_(std::move(name)), left_(kSmall + ratio * size) {}
  void count(std::uint64_t unpacked) {
    if (unpacked > left_) throw base::Error(base::ErrorClass::refused, name_ + " unpacks to more than WARC files do");
    left_ -= unpacked;
  }

private:
  std::string name_;
  std::uint64_t left_;
};

class ArchiveReader {
public:
  // A zip file, or one compressed file of any kind.
  enum class Kind { zip, compressed };
  ArchiveReader(int file, const std::string& name, Kind kind)
      : name_(name), archive_(::archive_read_new(), &::archive_read_free), limit_(name, 0, 0) {
    struct stat about {};
    const auto ratio = kind == Kind::zip ? kMostRatio : kMostRatioOfText;
    if (::fstat(file, &about) == 0) limit_ = Limit(name, ratio, static_cast<std::uint64_t>(about.st_size));
    if (kind == Kind::zip) {
      ::archive_read_support_format_zip(archive_.get());
    } else {
      ::archive_read_support_filter_all(archive_.get());
      ::archive_read_support_format_raw(archive_.get());
    }
    if (::lseek(file, 0, SEEK_SET) != 0 || ::archive_read_open_fd(archive_.get(), file, kReadAtOnce) != ARCHIVE_OK)
      throw base::Error(base::ErrorClass::usage,
                        name_ + (kind == Kind::zip ? " is not a WACZ file: " : " cannot be unpacked: ") + why());
  }

  // The path of the next entry; false: there is none. What is damaged ends it.
  bool next(std::string& path, const Problem& problem) {
    archive_entry* entry = nullptr;
    const int answer = ::archive_read_next_header(archive_.get(), &entry);
    if (answer == ARCHIVE_EOF) return false;
    if (answer < ARCHIVE_WARN) {
      problem(name_, why());
      return false;
    }
    const char* const text = ::archive_entry_pathname_utf8(entry);
    path = text == nullptr ? "" : text;
    return true;
  }

  // All bytes of the entry, piece by piece; false: it is damaged.
  template <typename Take>
  bool read(const std::string& path, const Problem& problem, Take&& take) {
    std::string piece(kReadAtOnce, '\0');
    for (;;) {
      const auto got = ::archive_read_data(archive_.get(), piece.data(), piece.size());
      if (got == 0) return true;
      if (got < 0) {
        problem(path, why());
        return false;
      }
      limit_.count(static_cast<std::uint64_t>(got));
      take(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
    }
  }

private:
  std::string why() const {
    const char* const text = ::archive_error_string(archive_.get());
    return text == nullptr ? "it cannot be read" : text;
  }

  const std::string name_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  Limit limit_;
};

// Lines of pages.jsonl: the first describes the list.
class PageList {
public:
  PageList(ReadWacz& read, std::uint64_t& texts_size, const std::string& path, const Problem& problem)
      : read_(read), texts_size_(texts_size), path_(path), problem_(problem) {}

  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      if (byte == '\n')
        end_line();
      else if (line_.size() < kLongestLine)
        line_ += byte;
    }
  }
  void end_line() {
    ++number_;
    if (line_.size() >= kLongestLine)
      tell("is too long");
    else if (!line_.empty())
      take_line();
    line_.clear();
  }

private:
  void tell(const std::string& what) { problem_(path_, "line " + std::to_string(number_) + " " + what); }

  void take_line() {
    const auto object = nlohmann::json::parse(line_, nullptr, false);
    if (!object.is_object()) return tell("is not JSON");
    if (object.contains("format")) return;
    ReadPage page{
        text_at(object, "id"), text_at(object, "url"), time_of(object), text_at(object, "title"), texts_size_, 0};
    if (page.url.empty()) return tell("has no url");
    if (read_.pages.size() == kMostPages) return tell("is left out: there are too many pages");
    const auto text = text_at(object, "text");
    write_all(read_.texts.get(), text);
    page.text_size = text.size();
    texts_size_ += text.size();
    read_.pages.push_back(std::move(page));
  }

  ReadWacz& read_;
  std::uint64_t& texts_size_;
  const std::string path_;
  const Problem& problem_;
  std::string line_;
  std::size_t number_{0};
};

} // namespace

std::string ReadWacz::text_of(const ReadPage& page) const {
  std::string text(page.text_size, '\0');
  const auto got = ::pread(texts.get(), text.data(), text.size(), static_cast<off_t>(page.text_offset));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

namespace {

ReadWacz::Warc unpack_entry(ArchiveReader& archive, const std::string& path, const Problem& problem) {
  ReadWacz::Warc unpacked{path, temporary_file(), 0};
  archive.read(path, problem, [&](std::string_view bytes) {
    write_all(unpacked.file.get(), bytes);
    unpacked.size += bytes.size();
  });
  return unpacked;
}

// As far as it can be read: what libarchive says of gzip that breaks off comes instead of its last bytes.
ReadWacz::Warc unpack_gzip(warc::RecordBytes& bytes, const std::string& name, const Problem& problem) {
  ReadWacz::Warc unpacked{name, temporary_file(), 0};
  Limit limit(name, kMostRatioOfText, bytes.size());
  std::string piece(kReadAtOnce, '\0');
  for (std::uint64_t at = 0; at < bytes.size();) {
    bytes.open(at);
    while (const auto got = bytes.compressed() ? bytes.read(piece.data(), piece.size()) : 0) {
      limit.count(got);
      write_all(unpacked.file.get(), std::string_view(piece).substr(0, got));
      unpacked.size += got;
    }
    if (!bytes.compressed() || !bytes.broken().empty()) {
      problem(name + " at " + std::to_string(at), bytes.compressed() ? bytes.broken() : "no gzip data begins here");
      break;
    }
    at = bytes.position();
  }
  return unpacked;
}

// `inner`: of a WACZ file within a zip file of several.
void read_into(ReadWacz& read, std::uint64_t& texts_size, int file, const std::string& name, bool inner,
               const Problem& problem) {
  ArchiveReader zip(file, name, ArchiveReader::Kind::zip);
  for (std::string path; zip.next(path, problem);) {
    if (is_warc_entry(path)) {
      read.warcs.push_back(unpack_entry(zip, path, problem));
    } else if (path.ends_with(".wacz") && !inner) {
      const auto wacz = unpack_entry(zip, path, problem);
      read_into(read, texts_size, wacz.file.get(), name + ": " + path, true, problem);
    } else if (path == "datapackage.json") {
      std::string text;
      zip.read(path, problem, [&](std::string_view bytes) {
        if (text.size() < kLongestLine) text += bytes;
      });
      const auto about = nlohmann::json::parse(text, nullptr, false);
      for (const auto& one : about.is_object() ? about.value("resources", nlohmann::json()) : nlohmann::json())
        if (const auto at = one.is_object() ? one.find("path") : one.end(); at != one.end() && at->is_string())
          if (auto where = at->get<std::string>(); where.starts_with("http://") || where.starts_with("https://"))
            read.elsewhere.push_back(std::move(where));
    } else if (is_page_list(path)) {
      PageList pages(read, texts_size, path, problem);
      zip.read(path, problem, [&](std::string_view bytes) { pages.add(bytes); });
      pages.end_line();
    }
  }
}

} // namespace

ReadWacz read_wacz(int file, const std::string& name, const Problem& problem) {
  ReadWacz read;
  read.texts = temporary_file();
  std::uint64_t texts_size = 0;
  read_into(read, texts_size, file, name, false, problem);
  if (!read.elsewhere.empty()) {
    const auto what = std::to_string(read.elsewhere.size()) + " of its files are on the web (" +
                      read.elsewhere.front().substr(0, 200) + ")";
    if (read.warcs.empty())
      throw base::Error(base::ErrorClass::refused, name + ": " + what, "download these files and import them");
    problem("datapackage.json", what + ": download these files and import them");
  }
  if (read.warcs.empty())
    throw base::Error(base::ErrorClass::usage, name + " is not a WACZ file: it holds no archive/*.warc.gz");
  return read;
}

ReadWacz::Warc unpack(int file, const std::string& name, const Problem& problem) {
  struct stat about {};
  if (::fstat(file, &about) != 0) throw base::Error(base::ErrorClass::input_output, "cannot read " + name);
  warc::RecordBytes bytes(file, 0, static_cast<std::uint64_t>(about.st_size));
  bytes.open(0);
  if (bytes.compressed()) return unpack_gzip(bytes, name, problem);
  ArchiveReader archive(file, name, ArchiveReader::Kind::compressed);
  std::string path;
  if (!archive.next(path, problem)) return {name, temporary_file(), 0};
  return unpack_entry(archive, name, problem);
}

} // namespace holdfast::wacz
