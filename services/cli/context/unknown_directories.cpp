#include "services/cli/context/unknown_directories.hpp"

#include "lib/archive/recover.hpp"
#include "lib/store/call.hpp"
#include "lib/store/import.hpp"

namespace holdfast::cli {

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
