#include "services/cli/context/directories.hpp"

#include "lib/archive/recover.hpp"
#include "lib/base/error.hpp"
#include "lib/store/call.hpp"
#include "lib/store/import.hpp"

#include <cerrno>
#include <cstdlib>

namespace holdfast::cli {

TemporaryDirectory::TemporaryDirectory(const std::string& purpose, std::filesystem::path parent) {
  std::filesystem::create_directories(parent);
  std::string name = (parent / ("holdfast-" + purpose + "-XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr)
    throw base::Error(base::ErrorClass::cannot_create,
                      "cannot create a directory in " + parent.string() + ": " + base::errno_text(errno));
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

namespace {

constexpr std::size_t kBatch = 500;

} // namespace

std::size_t each_unknown_directory(pg::Connection& connection, const archive::Files& files,
                                   const std::filesystem::path& below,
                                   const std::function<void(const std::string&)>& found) {
  std::size_t known = 0;
  std::vector<std::string> batch;
  const auto look = [&] {
    const auto unknown = store::call_list(connection, "directories_unknown", batch);
    known += batch.size() - unknown.size();
    for (const auto& directory : unknown)
      found(directory);
    batch.clear();
  };
  files.each_snapshot(below, [&](const std::string& directory) {
    batch.push_back(directory);
    if (batch.size() == kBatch) look();
  });
  if (!batch.empty()) look();
  return known;
}

} // namespace holdfast::cli
