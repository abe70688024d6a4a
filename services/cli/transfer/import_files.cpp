#include "services/cli/transfer/import_files.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace holdfast::cli {

namespace fs = std::filesystem;

namespace {

// Left for the directory, a<fence> and the name of the plugin in the archive.
constexpr std::size_t kLongestPath = archive::kMaximumPathBytes - 400;
constexpr int kDeepest = archive::kMaximumDepth - 10;

} // namespace

FileTaker::FileTaker(const fs::path& top, const fs::path& attempt, Taking taking, Problem problem)
    : where_(top), attempt_(attempt), taking_(taking), problem_(std::move(problem)),
      top_(archive::open_directory(top)) {}

void FileTaker::tell(const std::string& path, const std::string& problem) const {
  problem_((where_ / path).native(), problem);
}

std::vector<archive::DirectoryEntry> FileTaker::entries() const {
  return archive::list_entries(top_.get(), where_.native());
}

std::vector<archive::OutputFile> FileTaker::take(const archive::DirectoryEntry& entry, const std::string& to) {
  taken_.clear();
  const auto target = base::percent_encode_invalid_utf8(to);
  if (entry.type == S_IFDIR) {
    const auto inside = archive::open_directory_at(top_.get(), entry.name);
    if (!inside)
      tell(entry.name, base::errno_text(errno));
    else
      take_directory(inside.get(), entry.name, target, 1);
  } else {
    take_file(top_.get(), entry.name, entry.name, target);
  }
  return std::move(taken_);
}

void FileTaker::take_directory(int from, const std::string& path, const std::string& to, int depth) {
  if (depth > kDeepest) return tell(path, "it lies too deep");
  if (taking_ != Taking::look) {
    std::error_code error;
    fs::create_directories(attempt_ / to, error);
    if (error) archive::throw_errno(error.value(), "create the directory", (attempt_ / to).native());
  }
  for (const auto& name : archive::list_names(from, (where_ / path).native())) {
    const auto inner = path + "/" + name;
    const auto target = to + "/" + base::percent_encode_invalid_utf8(name);
    if (target.size() > kLongestPath) {
      tell(inner, "its path is too long");
    } else if (const auto directory = archive::open_directory_at(from, name)) {
      take_directory(directory.get(), inner, target, depth + 1);
    } else {
      take_file(from, name, inner, target);
    }
  }
}

void FileTaker::take_file(int parent, const std::string& name, const std::string& path, const std::string& to) {
  struct stat about {};
  if (::fstatat(parent, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) return tell(path, base::errno_text(errno));
  const bool is_link = S_ISLNK(about.st_mode);
  if (!is_link && !S_ISREG(about.st_mode)) return tell(path, "neither a file nor a readable directory");
  const auto from =
      is_link ? archive::open_beneath(top_.get(), path, O_RDONLY) : archive::open_file_at(parent, name, about);
  if (!from) {
    const int reason = errno;
    return tell(path, is_link ? "it is a link that leads out of the directory or nowhere" : base::errno_text(reason));
  }
  if (::fstat(from.get(), &about) != 0 || !S_ISREG(about.st_mode)) return tell(path, "it is a link to a directory");
  bytes_ += static_cast<std::uint64_t>(about.st_size);
  if (taking_ == Taking::look) return;

  archive::OutputFile file;
  file.path = to;
  file.size = static_cast<std::uint64_t>(about.st_size);
  const auto target = attempt_ / to;
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (taking_ == Taking::link && !is_link) {
    if (::linkat(parent, name.c_str(), AT_FDCWD, target.c_str(), 0) != 0) {
      if (errno == EEXIST) return tell(path, "another file has the same name in the archive");
      archive::throw_errno(errno, "make a hard link of", (where_ / path).native());
    }
  } else if (::faccessat(AT_FDCWD, target.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    return tell(path, "another file has the same name in the archive");
  } else {
    take_body(from, static_cast<std::uint64_t>(about.st_size), target);
  }
  std::array<char, 512> head{};
  const auto got = std::max<ssize_t>(0, ::pread(from.get(), head.data(), head.size(), 0));
  file.type = archive::media_type(fs::path(to).filename().native(), {head.data(), static_cast<std::size_t>(got)});
  taken_.push_back(std::move(file));
}

void FileTaker::take_body(const base::Fd& from, std::uint64_t size, const fs::path& target) {
  const base::Fd copy(::open(target.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!copy) archive::throw_errno(errno, "create", target.native());
  if (::ioctl(copy.get(), FICLONE, from.get()) != 0)
    archive::copy_body(from.get(), copy.get(), size, target.native(), nullptr, [](std::string_view) {});
  struct stat about {};
  if (::fstat(from.get(), &about) == 0) {
    const timespec times[2] = {about.st_atim, about.st_mtim};
    ::futimens(copy.get(), times);
  }
}

} // namespace holdfast::cli
