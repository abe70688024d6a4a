#include "lib/hooks/progress.hpp"

#include "lib/base/file.hpp"
#include "lib/hooks/hook_run.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <system_error>

namespace holdfast::hooks {

namespace fs = std::filesystem;

namespace {

constexpr int kDeepestDirectory = 32; // the iterator holds one file descriptor a level
constexpr std::size_t kMostRemembered = 10'000;
constexpr std::size_t kMostScanned = 50'000;

// Moves to the next entry; to the end on any error, since hooks remove directories meanwhile.
void advance(fs::recursive_directory_iterator& position) {
  if (position.depth() >= kDeepestDirectory) position.disable_recursion_pending();
  std::error_code error;
  position.increment(error);
  if (error) position = {};
}

fs::recursive_directory_iterator begin_of(const fs::path& directory) {
  std::error_code error;
  fs::recursive_directory_iterator position(directory, fs::directory_options::skip_permission_denied, error);
  return error ? fs::recursive_directory_iterator() : position;
}

bool regular_file(const fs::path& file, struct stat& status) {
  return base::stat_no_links(file, status) && S_ISREG(status.st_mode);
}

std::pair<std::int64_t, std::int64_t> change_time(const struct stat& status) {
  return {status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

} // namespace

std::optional<DirectoryState> DirectoryMeter::step(std::size_t entries) {
  if (!in_round_) {
    began_ = std::chrono::steady_clock::now();
    position_ = begin_of(directory_);
    state_ = {};
    in_round_ = true;
  }
  const fs::recursive_directory_iterator end;
  for (std::size_t index = 0; index < entries && position_ != end; ++index) {
    struct stat status {};
    if (base::stat_no_links(position_->path(), status)) {
      if (S_ISREG(status.st_mode)) state_.bytes += static_cast<std::uint64_t>(status.st_size);
      ++state_.entries;
      state_.latest_change = std::max(state_.latest_change, change_time(status));
    }
    advance(position_);
  }
  if (position_ != end) return std::nullopt;
  in_round_ = false;
  return state_;
}

FilesBefore::FilesBefore(const fs::path& directory) : directory_(directory) {
  const fs::recursive_directory_iterator end;
  auto position = begin_of(directory_);
  for (std::size_t index = 0; index < kMostRemembered && position != end; ++index, advance(position)) {
    struct stat status {};
    if (regular_file(position->path(), status)) change_times_[position->path().string()] = change_time(status);
  }
}

bool FilesBefore::changed(const fs::path& file) const {
  struct stat status {};
  if (!regular_file(file, status)) return false;
  const auto known = change_times_.find(file.string());
  return known == change_times_.end() || known->second != change_time(status);
}

std::optional<std::string> FilesBefore::first_output() const {
  std::optional<std::string> first;
  const fs::recursive_directory_iterator end;
  auto position = begin_of(directory_);
  for (std::size_t index = 0; index < kMostScanned && position != end; ++index, advance(position)) {
    const fs::path& file = position->path();
    if (base::is_runner_file(file.filename().string()) || !changed(file)) continue;
    const std::string extension = file.extension().string();
    const bool page = extension == ".html" || extension == ".htm" || extension == ".shtml";
    if (page || !first) first = file.lexically_relative(directory_).string();
    if (page) break;
  }
  return first;
}

} // namespace holdfast::hooks
