#include "lib/archive/attempt.hpp"

#include "lib/archive/bucket.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/encoding.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace holdfast::archive {

using base::Error;
using base::ErrorClass;

namespace {

// A link that stays inside is listed like the file that it leads to; its bytes are counted there only.
Fd open_output(int top, const TreeEntry& entry, struct stat& status) {
  if (entry.type != S_IFLNK) return open_file_at(entry.directory, entry.name, status);
  Fd fd = open_beneath(top, entry.path, O_RDONLY);
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return fd;
}

Trace::mapped_type trace_of(const struct stat& status) {
  return {static_cast<std::int64_t>(status.st_ino),         static_cast<std::int64_t>(status.st_size),
          static_cast<std::int64_t>(status.st_mtim.tv_sec), static_cast<std::int64_t>(status.st_mtim.tv_nsec),
          static_cast<std::int64_t>(status.st_ctim.tv_sec), static_cast<std::int64_t>(status.st_ctim.tv_nsec)};
}

Trace::mapped_type trace_of(const TreeEntry& entry) {
  struct stat status {};
  ::fstatat(entry.directory, entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW);
  return trace_of(status);
}

} // namespace

std::vector<std::string> tidy(const Root& root, const std::filesystem::path& attempt,
                              const std::filesystem::path& snapshot_directory, std::int64_t fence,
                              Cancelled cancelled) {
  const Fd top = open_own_directory(attempt);
  auto lost = tidy_tree(top.get(), attempt, 0, cancelled).lost;
  if (root.bucket() != nullptr) {
    const auto key = (snapshot_directory / ("a" + std::to_string(fence))).native();
    shorten_paths(top.get(), attempt, root.bucket()->location().prefix.size() + key.size() + 1);
  }
  return lost;
}

ScanReport scan_outputs(const std::filesystem::path& directory, const ScanLimits& limits) {
  const Fd top = open_own_directory(directory);
  ScanReport report;
  auto removed = tidy_tree(top.get(), directory, 1, limits.cancelled);
  report.skipped = removed.special;
  report.lost = std::move(removed.lost);
  walk_tree(top.get(), directory, [&](const TreeEntry& entry) {
    if (entry.depth == 0 && base::is_runner_file(entry.name)) return;
    check_cancelled(limits.cancelled);
    struct stat status {};
    const Fd fd = open_output(top.get(), entry, status);
    report.trace[entry.path] = entry.type == S_IFREG && fd ? trace_of(status) : trace_of(entry);
    if (!fd) return; // a link to a directory, or gone
    if (report.files.size() >= limits.files) {
      ++report.skipped;
      return;
    }
    std::array<char, 512> head{};
    const ssize_t got = ::pread(fd.get(), head.data(), head.size(), 0);
    const auto head_size = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    OutputFile file;
    file.path = entry.path;
    file.type = media_type(entry.name, {head.data(), head_size});
    file.size = static_cast<std::uint64_t>(status.st_size);
    if (entry.type != S_IFLNK) report.bytes += file.size;
    report.files.push_back(std::move(file));
  });
  std::sort(report.files.begin(), report.files.end(),
            [](const OutputFile& a, const OutputFile& b) { return a.path < b.path; });
  return report;
}

namespace {

// Makes a trace one that is like no other.
void spoil(Trace& trace) {
  static std::atomic<std::int64_t> unique{0};
  trace[""] = {++unique};
}

void survey_entry(int parent, const std::string& name, const std::filesystem::path& where, const std::string& path,
                  int depth, Outputs& outputs);

// Deeper directories are never kept, so they are not looked into.
void survey_directory(int parent, const std::string& name, mode_t mode, const std::filesystem::path& where,
                      const std::string& path, int depth, Outputs& outputs) {
  if ((mode & 0700) != 0700) ::fchmodat(parent, name.c_str(), 0755, AT_SYMLINK_NOFOLLOW);
  const Fd directory = depth < kMaximumDepth ? open_directory_at(parent, name) : Fd();
  if (!directory) return spoil(outputs.trace);
  for (const auto& inner : list_names(directory.get(), (where / path).native()))
    survey_entry(directory.get(), inner, where, path.empty() ? inner : path + "/" + inner, depth + 1, outputs);
}

void survey_entry(int parent, const std::string& name, const std::filesystem::path& where, const std::string& path,
                  int depth, Outputs& outputs) {
  struct stat status {};
  if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (S_ISDIR(status.st_mode)) return survey_directory(parent, name, status.st_mode, where, path, depth, outputs);
  const bool of_runner = depth == 1 && base::is_runner_file(name);
  if (!of_runner) outputs.trace[path] = trace_of(status);
  if (!S_ISREG(status.st_mode)) return;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  outputs.apparent += size;
  outputs.allocated += static_cast<std::uint64_t>(status.st_blocks) * 512;
  if (of_runner) outputs.logs += size;
}

} // namespace

Survey survey_attempt(const std::filesystem::path& attempt) {
  const Fd top = open_own_directory(attempt);
  Survey survey;
  for (const auto& name : list_names(top.get(), attempt.native()))
    survey_entry(top.get(), name, attempt / name, "", 0, survey[name]);
  return survey;
}

void drop_outputs(const std::filesystem::path& directory) {
  const Fd top = open_own_directory(directory);
  for (const std::string& name : list_names(top.get(), directory.native()))
    if (!base::is_runner_file(name)) remove_tree_at(top.get(), name, (directory / name).native());
}

void remove_directory(const std::filesystem::path& directory) {
  if (const Fd parent = find_own_directory(directory.parent_path()))
    remove_tree_at(parent.get(), directory.filename().native(), directory.native());
}

void remove_attempt(const std::filesystem::path& attempt) {
  remove_directory(attempt);
  const auto parent = attempt.parent_path();
  if (const Fd above = find_own_directory(parent.parent_path()))
    ::unlinkat(above.get(), parent.filename().c_str(), AT_REMOVEDIR); // only if no other attempt is there
}

std::filesystem::path snapshot_directory(std::string_view created_at_utc, std::string_view host_directory,
                                         std::string_view snapshot_id) {
  const auto digits = [](std::string_view text) {
    return text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (created_at_utc.size() < 10 || !digits(created_at_utc.substr(0, 4)) || created_at_utc[4] != '-' ||
      !digits(created_at_utc.substr(5, 2)) || created_at_utc[7] != '-')
    throw Error(ErrorClass::bug, "no date to file the snapshot under: '" + printable(created_at_utc) + "'");
  constexpr std::string_view kHostCharacters = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
  if (host_directory.empty() || host_directory == "." || host_directory == ".." ||
      host_directory.find_first_not_of(kHostCharacters) != std::string_view::npos)
    throw Error(ErrorClass::bug, "not a host's directory name: '" + printable(host_directory) + "'");
  constexpr std::string_view kIdCharacters = "0123456789abcdefABCDEF-";
  if (snapshot_id.empty() || snapshot_id.find_first_not_of(kIdCharacters) != std::string_view::npos)
    throw Error(ErrorClass::bug, "not a snapshot's id: '" + printable(snapshot_id) + "'");
  return std::filesystem::path(created_at_utc.substr(0, 4)) / created_at_utc.substr(5, 2) / host_directory /
         snapshot_id;
}

std::string sha256_file(const std::filesystem::path& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    throw Error(ErrorClass::input_output, "cannot read " + printable(file.native()) + ": " + base::errno_text(errno));
  }
  std::uint64_t bytes = 0;
  return hash_rest(fd.get(), file.native(), bytes);
}

namespace {

// clang-format off
// Sorted by nothing but kinship; a double extension stands before its second half.
constexpr auto kByExtension = std::to_array<std::pair<std::string_view, std::string_view>>({
    {".warc.gz", "application/warc"},     {".warc", "application/warc"},        {".wacz", "application/wacz"},
    {".cdxj", "application/x-ndjson"},    {".tar.gz", "application/gzip"},
    {".html", "text/html"},               {".htm", "text/html"},                {".xhtml", "application/xhtml+xml"},
    {".mhtml", "multipart/related"},      {".mht", "multipart/related"},
    {".txt", "text/plain"},               {".log", "text/plain"},               {".text", "text/plain"},
    {".md", "text/markdown"},             {".csv", "text/csv"},                 {".css", "text/css"},
    {".vtt", "text/vtt"},                 {".srt", "application/x-subrip"},     {".ics", "text/calendar"},
    {".json", "application/json"},        {".jsonl", "application/x-ndjson"},   {".ndjson", "application/x-ndjson"},
    {".xml", "application/xml"},          {".rss", "application/rss+xml"},      {".atom", "application/atom+xml"},
    {".yaml", "application/yaml"},        {".yml", "application/yaml"},
    {".js", "text/javascript"},           {".mjs", "text/javascript"},          {".wasm", "application/wasm"},
    {".pdf", "application/pdf"},          {".epub", "application/epub+zip"},    {".ps", "application/postscript"},
    {".png", "image/png"},                {".jpg", "image/jpeg"},               {".jpeg", "image/jpeg"},
    {".gif", "image/gif"},                {".webp", "image/webp"},              {".avif", "image/avif"},
    {".svg", "image/svg+xml"},            {".ico", "image/x-icon"},             {".bmp", "image/bmp"},
    {".tif", "image/tiff"},               {".tiff", "image/tiff"},
    {".mp4", "video/mp4"},                {".m4v", "video/mp4"},                {".webm", "video/webm"},
    {".mkv", "video/x-matroska"},         {".mov", "video/quicktime"},          {".avi", "video/x-msvideo"},
    {".mp3", "audio/mpeg"},               {".m4a", "audio/mp4"},                {".ogg", "audio/ogg"},
    {".opus", "audio/ogg"},               {".flac", "audio/flac"},              {".wav", "audio/wav"},
    {".woff", "font/woff"},               {".woff2", "font/woff2"},             {".ttf", "font/ttf"},
    {".otf", "font/otf"},
    {".gz", "application/gzip"},          {".tgz", "application/gzip"},         {".zip", "application/zip"},
    {".tar", "application/x-tar"},        {".bz2", "application/x-bzip2"},      {".xz", "application/x-xz"},
    {".zst", "application/zstd"},         {".7z", "application/x-7z-compressed"},
    {".sqlite", "application/vnd.sqlite3"}, {".sqlite3", "application/vnd.sqlite3"}, {".db", "application/vnd.sqlite3"},
    {".pem", "application/x-pem-file"},   {".bundle", "application/x-git"},
    {".doc", "application/msword"},       {".xls", "application/vnd.ms-excel"},
    {".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {".pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {".odt", "application/vnd.oasis.opendocument.text"},
});

// clang-format on

// Types that the standard does not name: files that no browser shows, and kinds of text.
std::string_view sniff(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  if (head.starts_with("WARC/")) return "application/warc";
  if (head.starts_with(std::string_view("SQLite format 3\0", 16))) return "application/vnd.sqlite3";
  const auto type = formats::type_of_bytes(head);
  if (type == "application/x-gzip") return "application/gzip";
  if (type != "text/plain" && type != "text/xml") return type;
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return type;
  const std::string opening = base::lower_case(head.substr(start));
  if (type == "text/xml")
    return opening.find("<html") != std::string::npos ? "application/xhtml+xml" : "application/xml";
  if (opening.starts_with("<svg")) return "image/svg+xml";
  if (opening.front() == '{' || opening.front() == '[') {
    // Enough to tell JSON from prose in brackets; a reader parses it properly.
    const std::size_t next = opening.find_first_not_of(" \t\r\n", 1);
    if (next == std::string::npos) return type;
    const std::string_view starts = opening.front() == '{' ? "\"}" : "\"{[]-0123456789tfn";
    if (starts.find(opening[next]) != std::string_view::npos) return "application/json";
  }
  return type;
}

} // namespace

std::string_view media_type(std::string_view name, std::string_view head) {
  const std::string wanted = base::lower_case(name);
  for (const auto& [extension, type] : kByExtension)
    if (wanted.size() > extension.size() && wanted.ends_with(extension)) return type;
  return sniff(head);
}

} // namespace holdfast::archive
