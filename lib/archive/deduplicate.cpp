#include "lib/archive/deduplicate.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/archive/published.hpp"
#include "lib/base/error.hpp"
#include "lib/warc/revisit.hpp"
#include "lib/warc/surt.hpp"

#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <span>

namespace holdfast::archive {

namespace {

constexpr int kFound = 200;
constexpr const char* kRevisit = "warc/revisit";

// Returns true for a GET: the answer to a POST has a key of its own.
bool was_asked_for(const warc::Capture& capture) { return capture.key == warc::url_key(capture.url); }

bool may_be_left_out(const warc::Capture& capture) {
  return capture.status == kFound && capture.mime != kRevisit && capture.length >= kLeastRepeated &&
         capture.digest.starts_with("sha1:") && was_asked_for(capture);
}

struct Replaced {
  std::uint64_t offset{0}, length{0};
  std::string record;
};

class Deduplicator {
public:
  Deduplicator(const Root& root, const std::map<Payload, warc::Capture>& originals, Cancelled cancelled)
      : root_(root), originals_(originals), cancelled_(cancelled) {}

  // `captures`: of this file.
  void file(int directory, const std::string& name, const std::string& path, int file,
            std::span<const warc::Capture> captures) {
    std::set<Payload> left_out;
    std::vector<Replaced> replaced;
    for (const auto& capture : captures) {
      const Payload payload{capture.key, capture.digest};
      // A record that repeats a response of this file refers to the response's original too.
      const bool repeats = capture.mime == kRevisit && left_out.contains({warc::url_key(capture.url), capture.digest});
      if (!repeats && (!may_be_left_out(capture) || !is_held(payload))) continue;
      const auto original = originals_.find({warc::url_key(capture.url), capture.digest});
      if (original == originals_.end()) continue;
      auto record = warc::revisit_of(file, capture, original->second);
      if (!record || (!repeats && record->size() >= capture.length)) continue;
      if (!repeats) left_out.insert(payload);
      replaced.push_back({capture.offset, capture.length, std::move(*record)});
    }
    if (replaced.empty()) return;
    try {
      const auto before = file_size(file, path);
      done_.bytes_saved += before - std::min(before, write(directory, name, path, file, replaced, cancelled_));
      done_.left_out.merge(left_out);
    } catch (const base::Error& error) { // a hook may have locked its directory
      if (error.error_class() == base::ErrorClass::temporary) throw;
      spdlog::debug("not deduplicated: {}", error.what());
    }
  }

  Deduplicated take() { return std::move(done_); }

private:
  // Returns true if the archive has this payload, and it can be read.
  bool is_held(const Payload& payload) {
    const auto [known, is_new] = held_.try_emplace(payload, false);
    if (!is_new) return known->second;
    const auto found = originals_.find(payload);
    if (found == originals_.end()) return false;
    check_cancelled(cancelled_);
    const auto& original = found->second;
    const int file = open(original.file);
    return known->second = file >= 0 && warc::holds_payload(file, original.offset, original.length, original.digest);
  }

  // Originals of a page are often neighbours.
  int open(const std::string& path) {
    if (path != open_path_) {
      open_file_ = root_.open_file(path);
      open_path_ = path;
    }
    return open_file_ ? open_file_.get() : -1;
  }

  static std::uint64_t write(int directory, const std::string& name, const std::string& path, int from,
                             const std::vector<Replaced>& replaced, Cancelled cancelled) {
    std::uint64_t written = 0;
    const auto size = file_size(from, path);
    const auto fill = [&](int to) {
      const auto put = [&](std::string_view bytes) {
        write_all(to, bytes, path);
        written += bytes.size();
      };
      std::uint64_t at = 0;
      for (const auto& one : replaced) {
        check_cancelled(cancelled);
        read_range(from, at, one.offset, path, put);
        put(one.record);
        at = one.offset + one.length;
      }
      read_range(from, at, size, path, put);
    };
    write_file_at(directory, name, fill, path, false);
    return written;
  }

  const Root& root_;
  const std::map<Payload, warc::Capture>& originals_;
  const Cancelled cancelled_;
  std::map<Payload, bool> held_;
  std::string open_path_;
  Fd open_file_;
  Deduplicated done_;
};

} // namespace

std::vector<Payload> payloads_of(const Captures& captures) {
  std::set<Payload> payloads;
  for (const auto& capture : captures.records)
    if (may_be_left_out(capture)) payloads.emplace(capture.key, capture.digest);
  return {payloads.begin(), payloads.end()};
}

Deduplicated deduplicate(const Root& root, const std::filesystem::path& attempt, const Captures& captures,
                         const std::map<Payload, warc::Capture>& originals, Cancelled cancelled) {
  Deduplicator work(root, originals, cancelled);
  const auto& records = captures.records;
  for (auto begin = records.begin(); begin != records.end();) {
    const auto end = std::find_if(begin, records.end(), [&](const auto& record) { return record.file != begin->file; });
    const std::filesystem::path path = begin->file;
    const Fd directory = open_below(attempt, path.parent_path(), O_RDONLY | O_DIRECTORY);
    struct stat about {};
    if (const Fd file = directory ? open_file_at(directory.get(), path.filename(), about) : Fd())
      work.file(directory.get(), path.filename(), begin->file, file.get(), {begin, end});
    begin = end;
  }
  return work.take();
}

} // namespace holdfast::archive
