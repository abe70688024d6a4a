#include "lib/warc/pack.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/fd.hpp"
#include "lib/base/read_at.hpp"
#include "lib/warc/digest.hpp"
#include "lib/warc/file.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string_view>

namespace holdfast::warc {

namespace {

constexpr int kStored = 0, kFast = 1, kUsual = 6;

// Of a record as wget and browsers write it. Bodies may still be in the coding that the server sent.
int level_of(Reader& reader, const Record& record) {
  if (record.type != "response") return kUsual;
  const auto head = reader.read_http_head();
  if (!head) return kUsual;
  const bool coded = !header_of(head->headers, "content-encoding").empty();
  return coded ? kStored : gzip_level(media_type(header_of(head->headers, "content-type")));
}

// The lines of a head but for the fields that `dropped` names.
std::string lines_without(std::string_view head, const std::function<bool(std::string_view)>& dropped) {
  std::string kept;
  bool dropping = false;
  while (!head.empty()) {
    const auto line = head.substr(0, std::min(head.find('\n'), head.size() - 1) + 1);
    head.remove_prefix(line.size());
    if (line[0] != ' ' && line[0] != '\t') // those continue the field before
      dropping = dropped(base::trimmed(line.substr(0, line.find(':'))));
    if (!dropping) kept += line;
  }
  return kept;
}

// The head of an HTTP message, without the empty line that ends it.
std::string_view head_of(std::string_view text) {
  return text.substr(0, std::min(text.find("\r\n\r\n"), text.size() - 2) + 2);
}

// A request record without those fields of its HTTP head; nullopt: it has none of them.
std::optional<std::string> request_without(const Record& record, const std::string& block,
                                           const OmittedHeaders& omitted) {
  const auto http = head_of(block);
  const auto kept =
      lines_without(http, [&](auto name) { return omitted.contain(name); }) + std::string(block, http.size());
  if (kept.size() == block.size()) return std::nullopt;
  Digest digest;
  digest.add(kept);
  return head_without(record.headers, {"content-length", "warc-block-digest"}) +
         "WARC-Block-Digest: " + sha1_text(digest.finish()) + "\r\nContent-Length: " + std::to_string(kept.size()) +
         "\r\n\r\n" + kept + "\r\n\r\n";
}

} // namespace

int gzip_level(const std::string& type) {
  const auto one_of = [&](std::initializer_list<std::string_view> types) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  if (one_of({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "font/woff", "font/woff2",
              "application/font-woff", "application/zip", "application/gzip", "application/x-gzip", "audio/mpeg",
              "audio/mp4", "audio/ogg", "audio/webm", "audio/aac"}) ||
      type.starts_with("video/"))
    return kStored;
  const bool dense = (type.starts_with("image/") && type != "image/svg+xml") || type.starts_with("audio/") ||
                     type.starts_with("font/") || one_of({"application/octet-stream", "application/pdf"});
  return dense ? kFast : kUsual;
}

void pack(const std::string& from, const std::string& to, const OmittedHeaders& omitted) {
  const base::Fd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat about {};
  if (!source || ::fstat(source.get(), &about) != 0) cannot("cannot read the WARC");
  const base::Fd target(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!target) cannot("cannot create the WARC");
  const auto size = static_cast<std::uint64_t>(about.st_size);
  Reader reader(source.get(), 0, size);
  GzipMember member(kUsual);
  const auto put = [&](std::string_view bytes) { write_all(target.get(), bytes); };
  std::string piece(1u << 16, '\0');
  try {
    while (const auto record = reader.next()) {
      const int level = level_of(reader, *record);
      std::string request; // wget's have no body: they fit into memory
      while (const auto got = record->type == "request" ? reader.read(piece.data(), piece.size()) : 0)
        request.append(piece, 0, got);
      const auto length = reader.finish();
      if (reader.was_cut()) {
        mend(source.get(), record->offset, size, true, put);
        continue;
      }
      member.restart(level);
      const auto changed = request_without(*record, request, omitted);
      if (!changed && base::each_piece(source.get(), record->offset, record->offset + length,
                                       [&](auto bytes) { member.add(bytes, put); }) < static_cast<std::int64_t>(length))
        cannot("cannot read the WARC");
      member.add(changed.value_or(""), put, true);
    }
  } catch (const Damaged&) {
    // Its writer was ended within a record.
  }
}

void mend(int file, std::uint64_t offset, std::uint64_t end, bool compressed,
          const std::function<void(std::string_view)>& put) {
  GzipMember member(kUsual);
  const auto add = [&](std::string_view bytes, bool last = false) {
    compressed ? member.add(bytes, put, last) : put(bytes);
  };
  std::uint64_t length = 0;
  std::string piece(1u << 16, '\0');
  for (const bool counting : {true, false}) {
    Reader reader(file, offset, end);
    const auto record = reader.next();
    if (!record) throw Damaged(offset, "is gone");
    if (!counting) {
      add(head_without(record->headers,
                       {"content-length", "warc-truncated", "warc-block-digest", "warc-payload-digest"}) +
          "WARC-Truncated: unspecified\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n");
    }
    while (const auto got = reader.read(piece.data(), piece.size()))
      counting ? void(length += got) : add(std::string_view(piece).substr(0, got));
  }
  add("\r\n\r\n", true);
}

} // namespace holdfast::warc
