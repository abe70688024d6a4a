// What an archive holds already leaves the WARC files of an attempt, and only that.
#include "lib/archive/captures.hpp"
#include "lib/base/file.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/spool.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <tuple>

using namespace holdfast;
using test::TempDir;

namespace {

const std::string kUrl = "https://site.test/picture";

// Bytes that gzip cannot make shorter.
std::string noise(std::uint32_t seed) {
  std::string bytes;
  for (int i = 0; i < 3000; ++i)
    bytes += static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return bytes;
}
const std::string kBody = noise(1);

std::string sha1(const std::string& bytes) {
  warc::Digest digest;
  digest.add(bytes);
  return digest.finish();
}

std::string response(const std::string& body, const std::string& digest, const std::string& more = "") {
  const auto block = "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nX-Of: this\r\n\r\n" + body;
  return "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026-02-02T00:00:00Z\r\n"
         "WARC-Target-URI: " +
         kUrl + "\r\nWARC-Payload-Digest: " + digest + "\r\n" + more +
         "Content-Type: application/http;msgtype=response\r\nContent-Length: " + std::to_string(block.size()) +
         "\r\n\r\n" + block + "\r\n\r\n";
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

struct Place {
  TempDir dir;
  archive::Root root = archive::Root::open(dir / "archive", "0198f7c2-5a10-7c33-9a5e-2b1f6c0d9e21", true);
  std::filesystem::path attempt = dir / "attempt";
  std::filesystem::path warc = attempt / "browser/page.warc.gz";

  // The archive's own record, found as the database would.
  std::map<archive::Payload, warc::Capture> stored(const std::string& record) {
    write(dir / "archive/old.warc.gz", record);
    std::map<archive::Payload, warc::Capture> originals;
    for (const auto& payload : archive::payloads_of(archive::read_captures(attempt))) {
      warc::Capture original;
      original.url = kUrl;
      original.date = "2026-01-01T00:00:00Z";
      original.file = "old.warc.gz";
      original.length = record.size();
      std::tie(original.key, original.digest) = payload;
      originals.emplace(payload, original);
    }
    return originals;
  }
  archive::Deduplicated deduplicate(const std::string& record) {
    return archive::deduplicate(root, attempt, archive::read_captures(attempt), stored(record), nullptr);
  }
};

// The types of its records; `last`: headers of the last one.
std::string records_in(const std::filesystem::path& path, warc::Headers* last = nullptr) {
  const base::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  warc::Reader reader(file.get(), 0, std::filesystem::file_size(path));
  std::string told;
  while (const auto record = reader.next()) {
    told += record->type + " ";
    if (last != nullptr) *last = record->headers;
  }
  return told;
}

} // namespace

TEST_CASE("a response that the archive holds becomes a revisit record; what is around it stays") {
  for (const auto& packed : {std::function([](std::string_view text) { return warc::gzip(text); }),
                             std::function([](std::string_view text) { return std::string(text); })}) {
    Place place;
    const auto other = packed(response(std::string(2000, 'o'), sha1("other")));
    const auto picture = packed(response(kBody, sha1(kBody)));
    write(place.warc, other + picture + other);
    const auto done = place.deduplicate(picture);
    CHECK(done.left_out.size() == 1);
    const auto now = read(place.warc);
    CHECK(now.size() + done.bytes_saved == other.size() * 2 + picture.size());
    CHECK(now.starts_with(other));
    CHECK(now.ends_with(other));
    CHECK(records_in(place.warc) == "response revisit response ");
    write(place.warc, now.substr(other.size(), now.size() - 2 * other.size()));
    warc::Headers headers;
    CHECK(records_in(place.warc, &headers) == "revisit ");
    CHECK(warc::header_of(headers, "warc-refers-to-target-uri") == kUrl);
    CHECK(warc::header_of(headers, "warc-refers-to-date") == "2026-01-01T00:00:00Z");
    CHECK(warc::header_of(headers, "warc-date") == "2026-02-02T00:00:00Z");
    CHECK(warc::header_of(headers, "warc-payload-digest") == sha1(kBody));
    CHECK(warc::header_of(headers, "warc-record-id") == "<urn:uuid:1>");
  }
}

TEST_CASE("a digest that a header claims is not believed") {
  Place place;
  const auto honest = warc::gzip(response(kBody, sha1(kBody)));
  const auto forged = warc::gzip(response(noise(2), sha1(kBody)));
  write(place.warc, honest);
  CHECK(place.deduplicate(forged).left_out.empty()); // the archive's record has another payload
  CHECK(place.deduplicate(honest.substr(0, honest.size() / 2)).left_out.empty());
  write(place.warc, forged);
  CHECK(place.deduplicate(honest).left_out.empty());
  CHECK(read(place.warc) == forged);
}

TEST_CASE("what is short, truncated, or answers something else than GET is not looked up or left out") {
  Place place;
  write(place.warc, warc::gzip(response("short", sha1("short"))));
  CHECK(archive::payloads_of(archive::read_captures(place.attempt)).empty());
  const auto honest = warc::gzip(response(kBody, sha1(kBody)));
  write(place.warc, warc::gzip(response(kBody, sha1(kBody), "WARC-Truncated: length\r\n")));
  CHECK(place.deduplicate(honest).left_out.empty());
  write(place.warc,
        warc::gzip(response(kBody, sha1(kBody))) +
            warc::gzip("WARC/1.0\r\nWARC-Type: request\r\nWARC-Concurrent-To: <urn:uuid:1>\r\n"
                       "WARC-Date: 2026-02-02T00:00:00Z\r\nContent-Type: application/http;msgtype=request\r\n"
                       "Content-Length: 27\r\n\r\nPOST /picture HTTP/1.1\r\n\r\n \r\n\r\n"));
  CHECK(archive::payloads_of(archive::read_captures(place.attempt)).empty());
}

TEST_CASE("a file that cannot be written again stays as it is") {
  Place place;
  const auto picture = warc::gzip(response(kBody, sha1(kBody)));
  write(place.warc, picture);
  const auto originals = place.stored(picture);
  if (::geteuid() == 0) return; // no mode keeps root out
  ::chmod(place.warc.parent_path().c_str(), 0500);
  CHECK(archive::deduplicate(place.root, place.attempt, archive::read_captures(place.attempt), originals, nullptr)
            .left_out.empty());
  ::chmod(place.warc.parent_path().c_str(), 0700);
  CHECK(read(place.warc) == picture);
}
