#pragma once
// Writes a WACZ 1.1.1 file: WARC files as they are, then the pages, the index and the description. Memory does not grow
// with what is written. Used from one thread.

#include "lib/wacz/sorted_lines.hpp"
#include "lib/wacz/zip.hpp"
#include "lib/warc/capture.hpp"

#include <cstdint>
#include <string>

namespace holdfast::wacz {

struct About {
  std::string title, software, created; // created: "2026-01-31T23:59:59Z"
};

struct WrittenPage {
  std::string id, url, date, title, text;
};

class Writer {
public:
  Writer(ZipWriter& zip, About about); // the zip file outlives it, and is closed by its owner

  // Copies a WARC file of `size` bytes to archive/<name>.
  void add_warc(const std::string& name, int file, std::uint64_t size);
  // A record of such a file: `capture.file` is its name.
  void add_capture(const warc::Capture& capture);
  void add_page(const WrittenPage& page);
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
  base::Fd pages_;
  std::uint64_t pages_size_{0};
  base::Fd resources_; // the list in datapackage.json, without its brackets
  std::uint64_t resources_size_{0};
};

} // namespace holdfast::wacz
