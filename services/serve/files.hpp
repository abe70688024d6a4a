#pragma once
// Archived files over HTTP. They come from strangers: nothing of them may run with the rights of a page of ours, and no
// path may lead out of the archive. Immutable; any thread.

#include "lib/archive/root.hpp"
#include "services/serve/http_message.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::serve {

class Files {
public:
  // `root`: a directory, or a bucket that must be of this collection (then throws what archive::Root::open throws).
  // `key`: every path begins with "/<key>/" if it is not empty, so that who knows no address gets nothing. `hosts`:
  // names under which it may be asked for; empty: any.
  Files(const std::filesystem::path& root, const std::string& collection_id, std::string key,
        std::vector<std::string> hosts);
  Response answer(const Request& request) const;
  // Path of a file of the archive at this origin: "/<key>/<path>", percent-encoded.
  std::string href(const std::string& path) const;

private:
  std::filesystem::path directory_;
  std::unique_ptr<archive::Root> bucket_;
  std::string key_;
  std::vector<std::string> hosts_;
};

} // namespace holdfast::serve
