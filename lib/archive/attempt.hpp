#pragma once
// One attempt at a snapshot on disk: scanned, described, published. Blocking file work;
// used by the "files" thread. Hostile input: file names and contents come from hooks.

#include "lib/archive/root.hpp"
#include "lib/base/text/facts.hpp"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::archive {

struct OutputFile {
  std::string path; // relative to the scanned directory, "/" separated, valid UTF-8 (other bytes percent-encoded)
  std::string type; // MIME type by extension and first bytes: "text/html"
  std::uint64_t size{0};
  std::string sha256; // 64 hex digits; empty until it is published
};

struct ScanLimits {
  std::size_t files{20000};
  const std::atomic<bool>* cancelled{nullptr}; // once true, the scan ends with Error(temporary)
};

// Fingerprint of a directory, cheaply: inode, size and times of every file, the runner's left out. An unchanged
// fingerprint means unchanged files; a directory that cannot be read, or is none, equals no other.
using Trace = std::map<std::string, std::array<std::int64_t, 6>>;

struct ScanReport {
  std::vector<OutputFile> files; // sorted by path; runner files left out
  Trace trace;                   // of the directory as it was scanned
  std::uint64_t bytes{0};
  std::size_t skipped{0};        // beyond the limit, sockets, devices
  std::vector<std::string> lost; // paths that are too long or too deep: removed
};

// Walks a plugin's directory: strips executable and set-id bits, replaces every symbolic link that leaves the directory
// (or dangles) by a text file "<name>.broken-symlink.txt" saying where it pointed, removes sockets, fifos and devices,
// and tells the type of every file. Never follows a link out, never leaves the directory. Names that are not UTF-8 are
// renamed to the path reported, hard links are replaced by copies, an absolute link to inside becomes a relative one; a
// link to a file inside is listed like that file. What would lie more than 100 directories deep in the attempt, or have
// a path over 3000 bytes there, is removed and named.
ScanReport scan_outputs(const std::filesystem::path& directory, const ScanLimits& limits = {});

// Makes a whole attempt one that may be published, once its hooks have all ended: as above, also outside of the
// plugins' directories, and with paths that fit into the keys of a bucket. Returns what is removed because its path is
// too long or too deep.
std::vector<std::string> tidy(const Root& root, const std::filesystem::path& attempt,
                              const std::filesystem::path& snapshot_directory, std::int64_t fence,
                              const std::atomic<bool>* cancelled = nullptr);

// Files below one name in an attempt's directory, counted without reading them. A file with several names counts for
// each, since each gets a body of its own.
struct Outputs {
  std::uint64_t apparent{0};  // bytes as files have them, holes included
  std::uint64_t allocated{0}; // bytes on the disk
  std::uint64_t logs{0};      // of the apparent bytes, those in files of the runner
  Trace trace;
  std::uint64_t most() const noexcept { return apparent > allocated ? apparent : allocated; }
};
using Survey = std::map<std::string, Outputs>; // by name
Survey survey_attempt(const std::filesystem::path& attempt);
// Removes everything from a plugin's directory but the runner's own files.
void drop_outputs(const std::filesystem::path& directory);
// Removes an attempt, also what its hooks have locked, and the directory above it if nothing else is there.
void remove_attempt(const std::filesystem::path& attempt);
// Removes a directory of the worker's own, also what hooks have locked in it. A missing one is fine.
void remove_directory(const std::filesystem::path& directory);

struct ResultView {
  std::string plugin, hook, status; // succeeded, failed, skipped, noresults
  std::string title;                // the plugin's title
  std::string output, error;        // one line each, for users
  std::vector<OutputFile> files;    // paths relative to the attempt's directory
  std::chrono::milliseconds wall_time{0};
  std::chrono::milliseconds cpu_time{0};
  std::uint64_t peak_memory_bytes{0};
  std::string ended_at;    // ISO 8601, UTC; only of imported pages
  std::string log;         // tail of stderr of a failed hook, at most 4 KiB
  std::string stderr_path; // relative to the attempt's directory, when kept

  // Adds a sentence to the error.
  void add_error(const std::string& why) { error += (error.empty() ? "" : "; ") + why; }
};

struct SnapshotView {
  std::string id, crawl_id, url, title, outcome; // outcome: succeeded, partial, failed
  base::Facts facts;
  int depth{0};
  std::int64_t fence{0};
  std::string started_at, ended_at; // ISO 8601, UTC
  std::vector<std::string> tags;
  std::vector<ResultView> results;
  std::vector<std::string> discovered; // URLs
  std::string worker;                  // host name of the worker
  std::string bookmarked_at;           // ISO 8601, UTC; "": not known
  std::string source;                  // "archivebox:1700000000.5"; "": not imported
  std::uint64_t bytes{0};              // of the whole directory, as published; set by publish()
  std::size_t files{0};
};

struct CrawlView {
  std::string id, label, status, outcome, created_at, sealed_at;
  std::vector<std::string> seeds, tags;
  int max_depth{0};
  struct Entry {
    std::string url, title, outcome, path; // path: link relative to the crawl's page
    std::string thumbnail;                 // relative path of a screenshot, or empty
    int depth{0};
    std::uint64_t bytes{0};
  };
  std::vector<Entry> snapshots;
  std::uint64_t bytes{0};
};

// Renders the page of a snapshot: self-contained HTML, no script needed, no outside assets, light and dark, readable on
// a phone; archived HTML is only ever linked or shown in a sandboxed frame. All text is escaped.
std::string render_snapshot_html(const SnapshotView& view);
std::string render_crawl_html(const CrawlView& view);
// Renders one JSON object a line: the snapshot first, then its results, with "schema_version".
std::string render_index_jsonl(const SnapshotView& view);
// Reads those lines back, as far as the page of a later capture shows them again. nullopt: they are not ours.
std::optional<SnapshotView> read_index_jsonl(std::string_view text);

// <yyyy>/<mm>/<host>/<snapshot-id>
std::filesystem::path snapshot_directory(std::string_view created_at_utc, std::string_view host_directory,
                                         std::string_view snapshot_id);

struct Published {
  std::filesystem::path directory; // relative to the root: .../a<fence>
  std::string manifest_sha256;     // of manifest-sha256.txt
  std::uint64_t bytes{0};
  std::size_t files{0};
};

// Hashes every file of `attempt`, which is tidy, and fills in sizes and digests of those that `view` lists. Writes
// index.jsonl, index.html and manifest-sha256.txt (every file of the attempt but the manifest itself, checkable with
// `sha256sum -c`) there, makes everything durable and moves it to
// <root>/<snapshot_directory>/a<fence>: rename on the same file system, else copy to a temporary name beside the
// target, fsync, rename. An a<fence> that exists already is of this very attempt (fences are unique): it is replaced.
// Throws Error(cannot_create) on a full disk with nothing half-written under the final name; `attempt` is then still
// there. Holes of files are kept. `cancelled`: once true, it ends with Error(temporary), in the same way.
// Bodies::shared: files may be hard links to files outside. They stay that, and keep their modes.
enum class Bodies { own, shared };
Published publish(const Root& root, const std::filesystem::path& attempt,
                  const std::filesystem::path& snapshot_directory, SnapshotView& view,
                  const std::atomic<bool>* cancelled = nullptr, Bodies bodies = Bodies::own);

// Gives an attempt the files of a published one (`directory`, relative to the root) but for its WARC files and what
// publish() writes: as hard links, or as copies where there can be none. Returns the bytes of the links. Not of a
// bucket.
std::uint64_t link_files(const Root& root, const std::string& directory, const std::filesystem::path& attempt);

// Removes the remains of crashed publications of this snapshot beside its attempts (".a<fence>.partial-*",
// ".a<fence>.replaced-*"; one of the latter whose a<fence> is missing gets its name back). Only for the holder of the
// snapshot's lease, before publishing: `before_fence` spares the publications of later owners.
void remove_partials(const Root& root, const std::filesystem::path& snapshot_directory,
                     std::int64_t before_fence = std::numeric_limits<std::int64_t>::max());

// Hash of one file; throws Error(input_output).
std::string sha256_file(const std::filesystem::path& file);

// MIME types of archived files, by extension first and by the first bytes for other names. Pure functions.

// Returns the type of a file. `head`: its first bytes, 512 are enough. Never empty: "application/octet-stream" if
// unknown.
std::string_view media_type(std::string_view name, std::string_view head);

} // namespace holdfast::archive
