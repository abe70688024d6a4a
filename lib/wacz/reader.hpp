#pragma once
// Reads an untrusted web archive: a WARC or ARC file, compressed or not, a WACZ file, or a zip file with any of these;
// or a page that a browser saved as one file (lib/formats/saved_page.hpp), whose parts become records.
// Names in it are not used: unpacked data goes to files without names in the temporary directory. The unpacked size is
// bounded. Used from one thread.

#include "lib/base/file.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::wacz {

struct ReadPage {
  std::string id, url, date, title;           // as they are written there
  std::uint64_t text_offset{0}, text_size{0}; // of its text in ReadWacz::texts
  std::vector<std::string> tags{};            // as Holdfast writes them; so the rest:
  std::string notes{}, bookmarked{};
};

struct WarcFile {
  std::string name;               // for messages: "some.wacz: archive/data.warc.gz"
  int file{-1};                   // of the WebArchive; several have one, because descriptors are few
  std::uint64_t begin{0}, end{0}; // there
  bool members{false};            // each record is a gzip member; else they are not compressed
};

struct WebArchive {
  base::Fd file; // of the WARC files
  std::vector<WarcFile> warcs;
  std::vector<ReadPage> pages;
  base::Fd texts;                // of the pages, one after the other
  bool saved{false}, cut{false}; // a page that a browser saved; whether something of it is missing
  std::vector<std::pair<std::string, std::string>> files{}; // to keep beside its records, by their paths

  std::string text_of(const ReadPage& page) const;
};

// Called with the name of a file, or "file: entry", and what cannot be read of it.
using Problem = std::function<void(const std::string& entry, const std::string& what)>;

// Throws Error(usage) if a zip file cannot be read or has no WARC file in it, and Error(refused) if it unpacks to more
// than such a file can. `url`: of a page that a browser saved, if the file does not name it.
WebArchive read_archive(base::Fd file, std::uint64_t size, const std::string& name, const Problem& problem,
                        const std::string& url = {});
// Reads what a directory holds: WARC files at any depth, and lists of pages as in a WACZ file.
WebArchive read_directory(const std::filesystem::path& directory, const Problem& problem);

} // namespace holdfast::wacz
