#include "lib/archive/captures.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/warc/surt.hpp"

#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

namespace holdfast::archive {

namespace {

constexpr std::size_t kMostProblems = 20;

class Collector {
public:
  explicit Collector(Cancelled cancelled) : cancelled_(cancelled) {}

  void read(int file, const std::string& path) {
    warc::each_capture(
        file, 0, file_size(file, path), [&](warc::Capture capture) { return add(std::move(capture), path); },
        [&](const warc::Damaged& damage) {
          check_cancelled(cancelled_);
          if (found_.problems.size() < kMostProblems)
            found_.problems.push_back(printable(path) + " at " + std::to_string(damage.offset()) + ": " +
                                      damage.what());
        });
  }

  Captures take() { return std::move(found_); }

private:
  bool add(warc::Capture capture, const std::string& path) {
    check_cancelled(cancelled_);
    if (found_.records.size() == kMostCaptures) {
      found_.problems.push_back(printable(path) + ": more than " + std::to_string(kMostCaptures) + " captures");
      return false;
    }
    capture.file = path;
    found_.records.push_back(std::move(capture));
    return true;
  }

  Cancelled cancelled_;
  Captures found_;
};

// Compares the index with the files of one attempt. Of each file and kind of defect it reports the first, and the
// number.
class Comparison {
public:
  Comparison(const std::string& directory, const std::vector<warc::Capture>& indexed) : directory_(directory) {
    for (const auto& capture : indexed)
      rows_[{capture.file.substr(directory.size() + 1), capture.offset}] = &capture;
    full_ = rows_.size() >= kMostCaptures; // the index has no more
  }

  void read(int file, const std::string& path) {
    warc::each_capture(
        file, 0, file_size(file, path), [&](const warc::Capture& capture) { return compare(capture, path), true; },
        [](const warc::Damaged&) {}); // reported when it was sealed
  }

  std::vector<Defect> take() {
    for (const auto& [place, row] : rows_)
      add("no record", place.first, place.second);
    std::vector<Defect> defects;
    for (const auto& [kind_and_path, found] : found_) {
      const auto more = found.count == 1 ? "" : ", and " + std::to_string(found.count - 1) + " more";
      defects.push_back(
          {kind_and_path.first, directory_ + "/" + kind_and_path.second + " at " + std::to_string(found.first) + more});
    }
    return defects;
  }

private:
  struct Found {
    std::uint64_t first{0};
    std::size_t count{0};
  };

  void compare(const warc::Capture& record, const std::string& path) {
    const auto found = rows_.find({path, record.offset});
    if (found == rows_.end()) {
      if (!full_) add("not indexed", path, record.offset);
      return;
    }
    const auto& row = *found->second;
    const bool same = row.length == record.length && row.key == record.key && row.url == record.url &&
                      row.date == record.date && row.status == (record.status >= 100 ? record.status : 0) &&
                      row.mime == record.mime && row.digest == record.digest && row.refers_to == record.refers_to;
    if (!same) add("other record", path, record.offset);
    rows_.erase(found);
  }

  void add(const std::string& kind, const std::string& path, std::uint64_t offset) {
    auto& found = found_[{kind, path}];
    if (found.count++ == 0) found.first = offset;
  }

  const std::string directory_;
  bool full_{false};
  std::map<std::pair<std::string, std::uint64_t>, const warc::Capture*> rows_; // by file and offset
  std::map<std::pair<std::string, std::string>, Found> found_;                 // by kind and file
};

} // namespace

bool is_warc(std::string_view path) {
  return (path.ends_with(".warc.gz") || path.ends_with(".warc")) && base::is_utf8(path);
}

std::string captures_json(const Captures& captures) {
  auto rows = nlohmann::json::array();
  for (const auto& capture : captures.records) {
    nlohmann::json row = {{"file", capture.file},
                          {"record_offset", capture.offset},
                          {"record_length", capture.length},
                          {"url_key", capture.key},
                          {"at", capture.date},
                          {"url", capture.url},
                          {"mime", capture.mime},
                          {"digest", capture.digest}};
    if (capture.status >= 100) row["status"] = capture.status;
    if (!capture.refers_to.empty()) row["refers_to"] = capture.refers_to;
    rows.push_back(std::move(row));
  }
  return base::json_text(rows);
}

Captures read_captures(const std::filesystem::path& attempt, Cancelled cancelled) {
  Collector collector(cancelled);
  each_file(attempt, is_warc, [&](int file, const std::string& path) { collector.read(file, path); });
  return collector.take();
}

Captures read_captures(const Root& root, const std::string& directory) {
  Collector collector(nullptr);
  each_file(root, directory, is_warc, [&](int file, const std::string& path) { collector.read(file, path); });
  return collector.take();
}

bool keep_record(const Root& root, const std::string& from, std::uint64_t offset, std::uint64_t length,
                 const std::string& to) {
  const Fd file = root.open_file(from);
  if (!file) return false;
  const auto size = file_size(file.get(), from);
  if (offset > size || length > size - offset) return false;
  const auto end = offset + length;
  root.write_file(to, length, "application/gzip", [&](char* buffer, std::size_t room) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(room, end - offset));
    const auto got = base::read_at(file.get(), buffer, most, offset);
    if (got < 0) throw_errno(errno, "read", from);
    offset += static_cast<std::uint64_t>(got);
    return static_cast<std::size_t>(got);
  });
  return true;
}

std::vector<Defect> verify_captures(const Root& root, const std::string& directory,
                                    const std::vector<warc::Capture>& indexed) {
  Comparison comparison(directory, indexed);
  try {
    each_file(root, directory, is_warc, [&](int file, const std::string& path) { comparison.read(file, path); });
  } catch (const base::Error&) { // verify_attempt() reports files that cannot be read
  }
  return comparison.take();
}

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
