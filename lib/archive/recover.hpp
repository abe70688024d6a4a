#pragma once
// What an archive's files say of themselves, for a database that has lost their rows. Blocking file work; stateless,
// any thread. Only of a directory, not of a bucket.

#include "lib/archive/root.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace holdfast::archive {

// The collection that a directory says it belongs to; nullopt if it is no archive.
std::optional<std::string> collection_of(const std::filesystem::path& root);

// Tells each directory of a snapshot, <yyyy>/<mm>/<host>/<id>, in order. `below`: only those in this directory,
// relative to the root; may be empty.
void each_snapshot_directory(const std::filesystem::path& root, const std::filesystem::path& below,
                             const std::function<void(const std::string&)>& found);

// The newest complete attempt of a snapshot as the argument of holdfast.adopt(); nullopt if there is none that can be
// read: `problem` then says why. Files are not hashed here; verify_attempt() does that.
std::optional<nlohmann::json> read_snapshot(const std::filesystem::path& root, const std::string& directory,
                                            std::string& problem);

// The name of the file that keeps what a crawl's row says, beside the crawl's page.
inline constexpr const char* kCrawlFacts = "crawl.json";

} // namespace holdfast::archive
