#include "lib/archive/captures.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/archive/published.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/utf8.hpp"
#include "lib/warc/capture.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

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

} // namespace holdfast::archive
