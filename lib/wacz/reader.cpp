#include "lib/wacz/reader.hpp"

#include "lib/base/error.hpp"
#include "lib/wacz/sorted_lines.hpp"

#include <nlohmann/json.hpp>

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace holdfast::wacz {

namespace {

constexpr std::uint64_t kMostRatio = 20; // WARC files are compressed already; plain ones shrink to a tenth
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

class ZipReader {
public:
  ZipReader(int file, const std::string& name) : name_(name), archive_(::archive_read_new(), &::archive_read_free) {
    struct stat about {};
    if (::fstat(file, &about) == 0) most_ = kSmall + kMostRatio * static_cast<std::uint64_t>(about.st_size);
    ::archive_read_support_format_zip(archive_.get());
    if (::archive_read_open_fd(archive_.get(), file, kReadAtOnce) != ARCHIVE_OK)
      throw base::Error(base::ErrorClass::usage, name_ + " is not a WACZ file: " + why());
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
      unpacked_ += static_cast<std::uint64_t>(got);
      if (unpacked_ > most_)
        throw base::Error(base::ErrorClass::refused, name_ + " unpacks to more than " + std::to_string(kMostRatio) +
                                                         " times its size: no WACZ file does");
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
  std::uint64_t most_{kSmall}, unpacked_{0};
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
        text_at(object, "id"), text_at(object, "url"), text_at(object, "ts"), text_at(object, "title"), texts_size_, 0};
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

ReadWacz read_wacz(int file, const std::string& name, const Problem& problem) {
  ReadWacz read;
  read.texts = temporary_file();
  std::uint64_t texts_size = 0;
  ZipReader zip(file, name);
  for (std::string path; zip.next(path, problem);) {
    if (is_warc_entry(path)) {
      ReadWacz::Warc warc{path, temporary_file(), 0};
      zip.read(path, problem, [&](std::string_view bytes) {
        write_all(warc.file.get(), bytes);
        warc.size += bytes.size();
      });
      read.warcs.push_back(std::move(warc));
    } else if (is_page_list(path)) {
      PageList pages(read, texts_size, path, problem);
      zip.read(path, problem, [&](std::string_view bytes) { pages.add(bytes); });
      pages.end_line();
    }
  }
  if (read.warcs.empty())
    throw base::Error(base::ErrorClass::usage, name + " is not a WACZ file: it holds no archive/*.warc.gz");
  return read;
}

} // namespace holdfast::wacz
