#include "lib/archive/bucket.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/base/error.hpp"

#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

namespace holdfast::archive {

using base::Error;
using base::ErrorClass;

namespace {

constexpr std::size_t kLongestKey = 1024;
constexpr std::uint64_t kPublishSeconds = 60;  // for one attempt, and more for
constexpr std::uint64_t kSlowest = 256 * 1024; // each so many bytes
constexpr std::size_t kAtOnce = 4;             // requests; each may hold one piece (s3::kPartSize) in memory

// Runs `work` for 0 .. count-1 on a few threads; rethrows the first failure, after all have ended.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min(kAtOnce, count); ++i)
    threads.emplace_back(run);
  run();
  threads.clear();
  if (failure) std::rethrow_exception(failure);
}

// A file as it is on disk now, or where a link inside the attempt leads.
Fd open_content(int attempt, const std::string& path, const std::filesystem::path& where) {
  Fd file = open_beneath(attempt, path, O_RDONLY);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    throw Error(ErrorClass::input_output, printable((where / path).native()) + " changed while it was being published");
  return file;
}

void send(s3::Client& bucket, int attempt, const std::filesystem::path& where, const std::string& path,
          const std::string& key, const std::string& digest, const std::function<void()>& check_time) {
  check_time();
  const Fd file = open_content(attempt, path, where);
  struct stat status {};
  std::array<char, 512> head{};
  const ssize_t got = ::pread(file.get(), head.data(), head.size(), 0);
  if (got < 0 || ::fstat(file.get(), &status) != 0) throw_errno(errno, "read", path);
  const std::string type(media_type(path.substr(path.rfind('/') + 1), {head.data(), static_cast<std::size_t>(got)}));
  const auto sent =
      bucket.put_stream(key, static_cast<std::uint64_t>(status.st_size), type, [&](char* buffer, std::size_t room) {
        check_time();
        for (;;) {
          const ssize_t read = ::read(file.get(), buffer, room);
          if (read < 0 && errno == EINTR) continue;
          if (read < 0) throw_errno(errno, "read", (where / path).native());
          return static_cast<std::size_t>(read);
        }
      });
  if (sent != digest)
    throw Error(ErrorClass::input_output, printable((where / path).native()) + " changed while it was being published");
}

} // namespace

std::string bucket_sentinel(s3::Client& bucket, const std::string& id, bool create) {
  std::string text;
  bool found = bucket.get(kSentinel, text);
  // Only in an empty prefix: the same prefix given twice by mistake is not an archive.
  if (!found && create) {
    const auto present = bucket.list("", true);
    if (present.objects.empty() && present.directories.empty()) bucket.put_new(kSentinel, id + "\n", "text/plain");
    found = bucket.get(kSentinel, text); // of several workers that try at once, one wins
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.pop_back();
  return found ? text : "";
}

void shorten_paths(int attempt, const std::filesystem::path& where, std::size_t key_bytes_before) {
  std::vector<std::string> too_long;
  walk_tree(attempt, where, [&](const TreeEntry& entry) {
    if (key_bytes_before + entry.path.size() > kLongestKey) too_long.push_back(entry.path);
  });
  for (const std::string& path : too_long) {
    const auto short_name = base::sha256_hex(path);
    const std::string name = "long-names/" + short_name;
    if (::mkdirat(attempt, "long-names", 0755) != 0 && errno != EEXIST)
      throw_errno(errno, "create the directory", (where / "long-names").native());
    if (::renameat(attempt, path.c_str(), attempt, name.c_str()) != 0)
      throw_errno(errno, "rename", (where / path).native());
    const Fd names = open_directory_at(attempt, "long-names");
    if (!names) throw_errno(errno, "open the directory", (where / "long-names").native());
    write_file_at(names.get(), short_name + ".name.txt", printable(path) + "\n", (where / name).native(), false);
  }
  if (!too_long.empty())
    spdlog::info("{} paths are too long for an object store; they are in long-names/", too_long.size());
}

void publish_to_bucket(s3::Client& bucket, int attempt, const std::filesystem::path& where,
                       const std::string& directory, std::uint64_t bytes, PublishedFiles contents) {
  const std::string top = directory + "/";
  // Left by an earlier try of ours, which broke off: the fence is ours alone. Its manifest goes first, so that an
  // attempt that is being replaced does not count meanwhile.
  const auto earlier = bucket.list(top, false);
  if (!earlier.objects.empty()) remove_from_bucket(bucket, directory);

  const auto manifest = contents.extract(kManifestName);
  if (manifest.empty()) throw Error(ErrorClass::bug, "an attempt without a manifest");
  const std::vector<PublishedFiles::value_type> files(contents.begin(), contents.end());
  // A store may answer each request in time, and still be too slow to wait for: other pages need this thread, and a
  // worker that is to end waits for it.
  const auto seconds = kPublishSeconds + files.size() / 4 + bytes / kSlowest;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  const auto check_time = [&] {
    if (std::chrono::steady_clock::now() > deadline)
      throw Error(ErrorClass::unavailable, "the object store is too slow: it did not take " +
                                               std::to_string(files.size()) + " files with " + std::to_string(bytes) +
                                               " bytes in " + std::to_string(seconds) + " s");
  };
  const auto send_file = [&](const std::string& path, const PublishedFile& file) {
    send(bucket, attempt, where, path, top + path, file.sha256, check_time);
  };
  in_parallel(files.size(), [&](std::size_t i) { send_file(files[i].first, files[i].second); });
  send_file(manifest.key(), manifest.mapped());
}

std::vector<Defect> verify_bucket_attempt(s3::Client& bucket, const std::string& directory,
                                          const std::string& manifest_sha256) {
  std::vector<Defect> defects;
  std::mutex mutex;
  const std::string top = directory + "/";
  const auto report = [&](const char* kind, const std::string& file) {
    const std::lock_guard lock(mutex);
    defects.push_back({kind, top + file});
  };
  std::string text;
  if (!bucket.get(top + kManifestName, text)) return {{"missing", top + kManifestName}};
  if (!manifest_sha256.empty() && base::sha256_hex(text) != manifest_sha256) report("changed", kManifestName);
  const auto listed = parse_manifest(text);
  if (!listed) {
    report("unreadable", kManifestName);
    return defects;
  }
  for (const auto& object : bucket.list(top, false).objects) {
    const auto path = object.key.substr(top.size());
    if (path != kManifestName && !listed->contains(path)) report("extra", path);
  }
  const std::vector<std::pair<std::string, std::string>> files(listed->begin(), listed->end());
  in_parallel(files.size(), [&](std::size_t i) {
    Sha256 content;
    const bool there = bucket.get(top + files[i].first, [&](std::string_view bytes) { content.update(bytes); });
    if (!there)
      report("missing", files[i].first);
    else if (content.finish() != files[i].second)
      report("changed", files[i].first);
  });
  std::sort(defects.begin(), defects.end(), [](const Defect& a, const Defect& b) { return a.path < b.path; });
  return defects;
}

std::vector<std::string> bucket_attempts(s3::Client& bucket, const std::string& snapshot_directory) {
  std::vector<std::string> attempts;
  for (auto directory : bucket.list(snapshot_directory + "/", true).directories) {
    directory.pop_back(); // the slash
    attempts.push_back(std::move(directory));
  }
  return attempts;
}

void remove_from_bucket(s3::Client& bucket, const std::string& directory) {
  const std::string top = directory + "/";
  const auto listing = bucket.list(top, false);
  for (const auto& object : listing.objects) // what has lost its manifest does not count any more
    if (object.key == top + kManifestName) bucket.remove(object.key);
  in_parallel(listing.objects.size(), [&](std::size_t i) { bucket.remove(listing.objects[i].key); });
}

} // namespace holdfast::archive
