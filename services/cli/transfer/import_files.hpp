#pragma once
// Takes files of another program's directory into an attempt: as copies (that share their blocks where the file system
// can) or as hard links. The directory is only read. Hostile input: links are followed only to files inside the
// directory, and what is no file is named. Blocking; main thread.

#include "lib/archive/attempt.hpp"
#include "lib/archive/file_work.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::cli {

enum class Taking { copy, link, look };

class FileTaker {
public:
  using Problem = std::function<void(const std::string& path, const std::string& problem)>;

  // Constructs it. `top`: the directory of the page. `taking` look: only counts.
  FileTaker(const std::filesystem::path& top, const std::filesystem::path& attempt, Taking taking, Problem problem);

  // Returns the entries at the top; links to directories are files here.
  std::vector<archive::DirectoryEntry> entries() const;

  // Takes one of them, with all that is in it, to `to` in the attempt ("wget/example.org"; "git": its contents).
  // Returns the files, with paths in the attempt.
  std::vector<archive::OutputFile> take(const archive::DirectoryEntry& entry, const std::string& to);
  std::uint64_t bytes() const noexcept { return bytes_; } // of all that was taken or looked at

private:
  void take_directory(int from, const std::string& path, const std::string& to, int depth);
  void take_file(int parent, const std::string& name, const std::string& path, const std::string& to);
  void take_body(const base::Fd& from, std::uint64_t size, const std::filesystem::path& target);
  void tell(const std::string& path, const std::string& problem) const;

  const std::filesystem::path where_, attempt_;
  const Taking taking_;
  const Problem problem_;
  base::Fd top_;
  std::uint64_t bytes_{0};
  std::vector<archive::OutputFile> taken_;
};

} // namespace holdfast::cli
