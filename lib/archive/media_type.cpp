#include "lib/archive/media_type.hpp"

#include "lib/base/text/characters.hpp"
#include "lib/formats/sniff.hpp"

#include <array>
#include <string>
#include <utility>

namespace holdfast::archive {

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
