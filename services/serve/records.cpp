#include "services/serve/records.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/formats/link.hpp"
#include "lib/formats/saved_page.hpp"
#include "lib/store/capture.hpp"
#include "lib/warc/coding.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/surt.hpp"

#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

namespace holdfast::serve {

namespace {

constexpr int kMostRedirects = 5;
constexpr std::size_t kMostInMemory = std::size_t{64} << 20; // in memory
constexpr std::uint64_t kLargestFile = std::uint64_t{4} << 30;

// Types of what a document without scripts can show.
std::string shown_type(const std::string& given, const std::string& url, std::string_view begin) {
  constexpr std::array<std::string_view, 6> kFamilies{"image/", "font/", "video/", "audio/", "text/css", "text/html"};
  const auto type = base::lower_case(warc::media_type(given));
  const auto is = [&](std::string_view family) { return type.starts_with(family); };
  if (std::any_of(kFamilies.begin(), kFamilies.end(), is)) return given;
  if (type == "application/xhtml+xml" || type == "application/pdf") return given;
  const auto path = url.substr(0, url.find_first_of("?#"));
  const auto found = archive::media_type(path.substr(path.rfind('/') + 1), begin);
  return found.find("script") == std::string_view::npos ? std::string(found) : "text/plain";
}

// The body of an open record. Throws warc::Damaged.
std::optional<Body> body_of(warc::Reader& reader, warc::Headers headers, std::uint64_t length, const std::string& url) {
  const auto given = warc::header_of(headers, "content-type");
  const bool coded =
      !warc::header_of(headers, "transfer-encoding").empty() || !warc::header_of(headers, "content-encoding").empty();
  Body body;
  if (length <= kMostInMemory || coded) {
    bool whole = true;
    reader.read_rest([&](std::string_view piece) {
      whole = whole && body.bytes.size() + piece.size() <= kMostInMemory;
      if (whole) body.bytes += piece;
    });
    auto plain = whole ? warc::plain_body(std::move(body.bytes), headers, kMostInMemory) : std::nullopt;
    if (!plain) return std::nullopt;
    body.bytes = std::move(*plain);
    body.type = shown_type(given, url, std::string_view(body.bytes).substr(0, 512));
    if (!body.type.starts_with("video/") && !body.type.starts_with("audio/")) return body;
    body.file = base::unnamed_file(std::filesystem::temp_directory_path()); // of which browsers ask for ranges
    if (!body.file || !base::write_all(body.file.get(), body.bytes)) return std::nullopt;
    body.bytes.clear();
    return body;
  }
  body.file = base::unnamed_file(std::filesystem::temp_directory_path());
  bool good = body.file && length <= kLargestFile;
  std::string begin;
  reader.read_rest([&](std::string_view piece) {
    if (begin.empty()) begin = piece.substr(0, 512);
    good = good && base::write_all(body.file.get(), piece);
  });
  if (!good) return std::nullopt;
  body.type = shown_type(given, url, begin);
  return body;
}

struct Answer {
  std::optional<Body> body;
  std::string location; // of a redirect
};

Answer read_answer(const store::Capture& capture, const OpenFile& open, const std::string& url) {
  const auto file = open(capture.file);
  if (!file) return {};
  warc::Reader reader(file.get(), capture.offset, capture.offset + capture.length);
  const auto record = reader.next();
  if (!record) return {};
  const auto head = reader.read_http_head();
  if (!head) return {body_of(reader, record->headers, record->length, url), ""};
  const auto location = warc::header_of(head->headers, "location");
  if (head->status >= 300 && head->status < 400 && !location.empty()) return {std::nullopt, location};
  return {body_of(reader, head->headers, record->length, url), ""};
}

} // namespace

std::optional<RecordPath> record_path(std::string_view path) {
  const auto at = path.find(kRecords);
  if (at == std::string_view::npos) return std::nullopt;
  const auto parts = base::split(std::string(path.substr(0, at)), "/"); // year, month, host, snapshot, attempt
  if (parts.size() != 5 || !base::is_uuid(parts[3])) return std::nullopt;
  return RecordPath{parts[3], std::string(path.substr(at + kRecords.size()))};
}

std::optional<Body> read_record(pg::Connection& connection, const OpenFile& open, const RecordPath& path) {
  auto url = path.url;
  try {
    for (int count = 0; count <= kMostRedirects; ++count) {
      const auto capture = store::capture_in(connection, path.snapshot, warc::url_key(url));
      if (!capture) return std::nullopt;
      auto answer = read_answer(*capture, open, url);
      if (answer.location.empty()) {
        if (answer.body && answer.body->type.starts_with("text/css"))
          answer.body->bytes = formats::with_records(answer.body->bytes, url);
        return std::move(answer.body);
      }
      const auto next = formats::join_url(url, answer.location);
      if (!next) return std::nullopt;
      url = *next;
    }
  } catch (const warc::Damaged& damaged) {
    spdlog::warn("the record of {} in snapshot {} cannot be read: {}", url, path.snapshot, damaged.what());
  }
  return std::nullopt;
}

} // namespace holdfast::serve
