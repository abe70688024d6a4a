#pragma once
// Reads the facts in an archive's files, for a database that has lost their rows. Blocking file work; any thread, one
// at a time.

#include "lib/archive/root.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::archive {

// Name of the file with the row of a crawl, beside the crawl's page.
inline constexpr const char* kCrawlFacts = "crawl.json";

// The files of an archive that may have no rows: a directory, or a bucket ("s3://...").
class Files {
public:
  // Throws Error(unavailable) if there is no such directory.
  explicit Files(const std::filesystem::path& root);
  explicit Files(const Root& root);

  // Returns the collection that the files name; nullopt: this is not an archive.
  std::optional<std::string> collection() const;
  // Tells each directory of a snapshot, <yyyy>/<mm>/<host>/<id>, in order. `below`: only those in this directory,
  // relative to the root; may be empty.
  void each_snapshot(const std::filesystem::path& below, const std::function<void(const std::string&)>& found) const;
  // Tells each directory with a record that a removed snapshot has left to others, kept/<crawl>/<snapshot>/<position>.
  void each_kept(const std::function<void(const std::string&)>& found) const;
  // Returns the newest complete attempt of a snapshot as the argument of holdfast.adopt(); nullopt if none can be read:
  // `problem` then has the reason. Files are not hashed here; verify_attempt() does that.
  std::optional<nlohmann::json> read_snapshot(const std::string& directory, std::string& problem) const;

private:
  struct Size {
    std::int64_t bytes{0}, files{0};
  };
  // Paths are relative to the root.
  std::vector<std::string> names_in(const std::filesystem::path& directory) const;
  std::optional<std::string> text_of(const std::string& file) const;
  Size size_of(const std::string& attempt) const;
  std::vector<std::int64_t> fences_in(const std::string& directory) const; // newest first

  std::filesystem::path root_;
  std::shared_ptr<s3::Client> own_;
  s3::Client* bucket_{nullptr}; // null: a directory
};

} // namespace holdfast::archive
