#pragma once
// Reads a WACZ file of a stranger. Nothing is written under a name that stands in it: its WARC files go to files
// without names in the temporary directory. What it unpacks to is bounded. Used from one thread.

#include "lib/base/fd.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::wacz {

struct ReadPage {
  std::string id, url, date, title;           // as they are written there
  std::uint64_t text_offset{0}, text_size{0}; // of its text in ReadWacz::texts
};

struct ReadWacz {
  struct Warc {
    std::string name; // of its entry: "archive/data.warc.gz"
    base::Fd file;
    std::uint64_t size{0};
  };
  std::vector<Warc> warcs;
  std::vector<ReadPage> pages;
  base::Fd texts; // of the pages, one after the other

  std::string text_of(const ReadPage& page) const;
};

// Also of a zip file that holds several WACZ files. `problem`: called with the entry and what cannot be read of it.
// Throws Error(usage) if this is no zip file or one without WARC files, and Error(refused) if it unpacks to more than
// such a file can.
ReadWacz read_wacz(int file, const std::string& name,
                   const std::function<void(const std::string& entry, const std::string& what)>& problem);

// What a file holds that was compressed as a whole (gzip, bzip2, xz, zstd); nullopt: it was not. Errors as above.
std::optional<ReadWacz::Warc>
unpack(int file, const std::string& name,
       const std::function<void(const std::string& entry, const std::string& what)>& problem);

} // namespace holdfast::wacz
