#pragma once
// Writes a WACZ 1.1.1 file: WARC files as they are, then the pages, the index and the description. Memory does not grow
// with what is written. Used from one thread.

#include "lib/base/file.hpp"
#include "lib/base/sha256.hpp"
#include "lib/warc/capture.hpp"

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace holdfast::wacz {

// Any number of lines in the order of their bytes, in bounded memory: SQLite sorts them, in a temporary file. Used from
// one thread.
class SortedLines {
public:
  using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;
  SortedLines();
  void add(std::string_view line); // without a line end
  void each(const std::function<void(const std::string&)>& take);

private:
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> database_;
  Statement insert_;
};

// An open file without a name in the temporary directory.
base::Fd temporary_file();
void write_all(int file, std::string_view bytes);

// Writes a zip file with stored entries to a descriptor, which may be a pipe; with zip64 where it is needed
// (libarchive). Does not own the descriptor. Used from one thread. The destructor leaves an unfinished file unfinished.
class ZipWriter {
public:
  ZipWriter(int file, std::time_t time); // `time`: of all entries
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  // Adds the first `size` bytes of a file, or a text, and returns the SHA-256 of them. Throws Error(input_output) if
  // there are not so many.
  std::string add(const std::string& path, int file, std::uint64_t size);
  std::string add(const std::string& path, std::string_view text);
  void close();

private:
  void begin(const std::string& path, std::uint64_t size);
  void write(std::string_view bytes);
  std::string end();
  [[noreturn]] void fail(const std::string& what);
  std::unique_ptr<void, void (*)(void*)> archive_;
  std::time_t time_;
  std::string path_;
  std::uint64_t left_{0};
  base::Sha256 digest_;
};

struct About {
  std::string title, software, created; // created: "2026-01-31T23:59:59Z"
};

struct WrittenPage {
  std::string id, url, date, title, text;
  std::vector<std::string> tags{};
  std::string notes{}, bookmarked{}; // bookmarked: a time
  std::string path{};                // of the directory of its files, if the export has one
};

// The list of pages that WACZ files have, and other exports beside their files. Used from one thread.
class PageList {
public:
  static constexpr const char* kPath = "pages/pages.jsonl";
  PageList();
  void add(const WrittenPage& page);
  int file() const noexcept { return file_.get(); }
  std::uint64_t size() const noexcept { return size_; }

private:
  void write(const std::string& line);
  base::Fd file_;
  std::uint64_t size_{0};
};

class Writer {
public:
  Writer(ZipWriter& zip, About about); // the zip file outlives it, and is closed by its owner

  // Copies a WARC file of `size` bytes to archive/<name>.
  void add_warc(const std::string& name, int file, std::uint64_t size);
  // A record of such a file: `capture.file` is its name.
  void add_capture(const warc::Capture& capture);
  void add_page(const WrittenPage& page) { pages_.add(page); }
  // Writes the rest. Without it there is no valid file.
  void finish();

private:
  // Both return the SHA-256 of what they wrote.
  std::string add_file(const std::string& path, int file, std::uint64_t size);
  std::string add_text(const std::string& path, const std::string& text);
  void add_resource(const std::string& path, std::uint64_t size, const std::string& sha256);
  void add_index();

  ZipWriter& zip_;
  const About about_;
  SortedLines lines_;
  PageList pages_;
  base::Fd resources_; // the list in datapackage.json, without its brackets
  std::uint64_t resources_size_{0};
};

} // namespace holdfast::wacz
