#pragma once
// The files of a published attempt, in a directory or in a bucket. Blocking; any thread.

#include "lib/archive/root.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace holdfast::archive {

using Wanted = std::function<bool(std::string_view path)>;
using Found = std::function<void(int file, const std::string& path)>;

// Calls `found` with each wanted file, open for reading; paths are below `directory`, which is relative to the root.
// Links to files count as files in a bucket, and are left out of a directory: their targets are there.
void each_file(const Root& root, const std::string& directory, const Wanted& wanted, const Found& found);
// The same of an attempt that is not published yet.
void each_file(const std::filesystem::path& attempt, const Wanted& wanted, const Found& found);

// Bytes of an open file. Throws Error(input_output).
std::uint64_t file_size(int file, const std::string& path);

} // namespace holdfast::archive
