#pragma once
// The page as it stood, for an export: the records that it shows become files beside it, so that it is shown from a
// disk, without a server. Blocking; main thread.

#include "lib/archive/root.hpp"
#include "lib/pg/connection.hpp"
#include "services/cli/transfer/destination.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace holdfast::cli {

inline constexpr const char* kAsItWas = "as-it-was"; // its directory in that of a snapshot

class ExportedStill {
public:
  // `path`: of the exported snapshot.
  ExportedStill(pg::Connection& connection, const archive::Root& root, std::string snapshot, std::string path,
                Destination& to)
      : connection_(connection), root_(root), snapshot_(std::move(snapshot)), path_(std::move(path)), to_(to) {}

  // Returns the document with names of files in place of the URLs of records, and exports the files.
  std::string with_files(const std::string& document);
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::size_t files() const noexcept { return names_.size(); }

private:
  std::string file_of(const std::string& url);

  pg::Connection& connection_;
  const archive::Root& root_;
  const std::string snapshot_, path_;
  Destination& to_;
  std::map<std::string, std::string> names_; // of the files, by URL
  std::uint64_t bytes_{0};
};

} // namespace holdfast::cli
