#pragma once
// `holdfast verify`: the files of sealed snapshots against their manifests and rows. `holdfast adopt`: rows made again
// from the files.

#include "lib/archive/recover.hpp"
#include "services/cli/context.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::cli {

struct VerifyOptions {
  std::vector<std::string> ids; // crawls or snapshots, whole or shortened
  bool all{false};
  bool collect{false}; // remove what lost attempts left beside them
};

// 1 if any file is missing, changed, unreadable, or should not be there, or a snapshot's directory has no row.
int verify(Context& context, const VerifyOptions& options);

// `given`: the archive root or a directory in it; empty: the archive root. 1 if a snapshot's files cannot be read.
int adopt(Context& context, const std::string& given);

// Tells the directories of snapshots that no row names. `below`: relative to the root. Returns how many have one.
std::size_t each_unknown_directory(pg::Connection& connection, const archive::Files& files,
                                   const std::filesystem::path& below,
                                   const std::function<void(const std::string&)>& found);

} // namespace holdfast::cli
