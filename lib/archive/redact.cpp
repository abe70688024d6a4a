#include "lib/archive/redact.hpp"

#include "lib/archive/captures.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <set>
#include <stdexcept>

namespace holdfast::archive {

namespace {

// Returns true if the copy differs.
bool copy_without(const warc::Redactor& redactor, int from, int to, const std::string& full) {
  warc::Redactor::Stream stream(redactor);
  bool any = false;
  const auto put = [&](std::string_view bytes) {
    if (!base::write_all(to, bytes)) throw_errno(errno, "write", full);
  };
  std::string piece(1u << 18, '\0');
  for (std::uint64_t at = 0;;) {
    const auto got = base::read_at(from, piece.data(), piece.size(), at);
    if (got < 0) throw_errno(errno, "read", full);
    any = stream.add(std::string_view(piece).substr(0, static_cast<std::size_t>(got)), put, got == 0) || any;
    if (got == 0) return any;
    at += static_cast<std::uint64_t>(got);
  }
}

void redact_file(const TreeEntry& entry, const std::string& full, warc::Redactor& redactor) {
  struct stat status {};
  const Fd file = open_file_at(entry.directory, entry.name, status);
  if (!file) return;
  const std::string made = ".redacted";
  ::unlinkat(entry.directory, made.c_str(), 0);
  const Fd target(::openat(entry.directory, made.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!target) throw_errno(errno, "create a file beside", full);
  bool changed = true;
  if (is_warc(entry.name))
    warc::redact(file.get(), static_cast<std::uint64_t>(status.st_size), target.get(), redactor);
  else
    changed = copy_without(redactor, file.get(), target.get(), full);
  if (!changed) {
    ::unlinkat(entry.directory, made.c_str(), 0);
  } else if (::renameat(entry.directory, made.c_str(), entry.directory, entry.name.c_str()) != 0) {
    throw_errno(errno, "replace", full);
  }
}

void redact_link(const TreeEntry& entry, const std::string& full, const warc::Redactor& redactor) {
  auto target = read_link(entry.directory, entry.name).value_or("");
  if (!redactor.apply(target)) return;
  if (::unlinkat(entry.directory, entry.name.c_str(), 0) != 0 ||
      ::symlinkat(target.c_str(), entry.directory, entry.name.c_str()) != 0)
    throw_errno(errno, "replace", full);
}

// Renames files with secrets in their names: wget's files, for example, have the names of URLs. The contents of a
// directory come before it.
void redact_names(int top, const std::string& where, const std::set<std::string, std::greater<>>& paths,
                  const warc::Redactor& redactor) {
  for (const auto& path : paths) {
    auto changed = path;
    const auto name = path.rfind('/') + 1;
    if (!redactor.apply(changed) || path.substr(name) == changed.substr(name)) continue;
    const auto to = path.substr(0, name) + changed.substr(name);
    auto free = to;
    for (int number = 2; ::renameat2(top, path.c_str(), top, free.c_str(), RENAME_NOREPLACE) != 0; ++number) {
      if (errno != EEXIST) throw_errno(errno, "rename", where + "/" + path);
      free = to + "." + std::to_string(number);
    }
  }
}

} // namespace

void redact_attempt(const std::filesystem::path& attempt, SnapshotView& view, warc::Redactor& redactor,
                    const std::atomic<bool>* cancelled) {
  const Fd top = open_own_directory(attempt);
  std::set<std::string, std::greater<>> paths; // of directories too
  for (const bool warcs : {true, false})
    walk_tree(top.get(), attempt, [&](const TreeEntry& entry) {
      if (is_warc(entry.name) != warcs) return;
      if (cancelled != nullptr && *cancelled)
        throw base::Error(base::ErrorClass::temporary, "its page is not wanted any more");
      const auto full = (attempt / entry.path).string();
      for (auto path = entry.path; !path.empty();
           path.resize(path.find_last_of('/') == path.npos ? 0 : path.rfind('/')))
        paths.insert(path);
      if (entry.type == S_IFLNK) return redact_link(entry, full, redactor);
      try {
        redact_file(entry, full, redactor);
      } catch (const std::runtime_error& error) { // of lib/warc
        if (dynamic_cast<const base::Error*>(&error) != nullptr) throw;
        throw base::Error(base::ErrorClass::input_output, printable(full) + ": " + error.what());
      }
    });
  redact_names(top.get(), attempt.string(), paths, redactor);
  for (auto& result : view.results) {
    for (auto* text : {&result.output, &result.error, &result.log, &result.stderr_path})
      redactor.apply(*text);
    for (auto& file : result.files)
      redactor.apply(file.path);
  }
}

} // namespace holdfast::archive
