#pragma once
// Unpacks untrusted files to files without names in the temporary directory, in bounded sizes: entries of zip files,
// files that were compressed as a whole, and ARC files, to WARC files whose records have places of their own. Used from
// one thread.

#include "lib/base/file.hpp"
#include "lib/wacz/reader.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

struct archive;

namespace holdfast::wacz {

// A file that one thing was unpacked to, or that was given.
struct Unpacked {
  std::string name;
  base::Fd file;
  std::uint64_t size{0};
  void add(std::string_view bytes);
};

class ArchiveReader {
public:
  // A zip file, or one compressed file of any kind.
  enum class Kind { zip, compressed };
  // Throws Error(usage) if it is no such file.
  ArchiveReader(const Unpacked& file, Kind kind, const Problem& problem);

  // Returns the path of the next entry; false: there is none. Damage ends it.
  bool next(std::string& path);
  bool is_packed() const;
  // Calls `take` with all bytes of the entry, piece by piece, as far as it is not damaged. `entry`: for messages.
  void read(const std::string& entry, const std::function<void(std::string_view)>& take);

private:
  std::string why() const;

  const std::string name_;
  const Problem& problem_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  std::uint64_t left_;
};

Unpacked unpack_entry(ArchiveReader& archive, const std::string& entry);
// Returns true if the records of a file have places of their own in it, each in a gzip member.
bool has_places(const Unpacked& file);
// Unpacks a file whose records have no place of their own, because it was compressed as a whole or is an ARC file.
Unpacked with_places(Unpacked file, const Problem& problem);

} // namespace holdfast::wacz
