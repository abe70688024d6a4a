#include "lib/warc/capture.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/pack.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/writer.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <iterator>

using namespace holdfast::warc;
using holdfast::test::TempDir;

namespace {

std::string record(const std::string& url, const std::string& body, const std::string& length = "",
                   const std::string& type = "response", const std::string& date = "2026-01-31T23:59:59Z") {
  const auto block = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + body;
  return "WARC/1.1\r\nWARC-Type: " + type + "\r\nWARC-Target-URI: " + url + "\r\nWARC-Date: " + date +
         "\r\nWARC-Record-ID: <urn:" + url +
         ">\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: " +
         (length.empty() ? std::to_string(block.size()) : length) + "\r\n\r\n" + block + "\r\n\r\n";
}

// What a file holds: "offset+length url" for each capture, "offset! what" for each damage.
std::string told(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY);
  REQUIRE(fd >= 0);
  struct stat about {};
  REQUIRE(::fstat(fd, &about) == 0);
  std::string text;
  each_capture(
      fd, 0, static_cast<std::uint64_t>(about.st_size),
      [&](const Capture& capture) {
        text += std::to_string(capture.offset) + "+" + std::to_string(capture.length) + " " + capture.url + "\n";
        return true;
      },
      [&](const Damaged& damage) { text += std::to_string(damage.offset()) + "! " + damage.what() + "\n"; });
  ::close(fd);
  return text;
}

std::string line(std::size_t offset, std::size_t length, const std::string& url) {
  return std::to_string(offset) + "+" + std::to_string(length) + " " + url + "\n";
}

} // namespace

TEST_SUITE("reading WARC files") {
  TEST_CASE("plain and compressed, with offsets and lengths") {
    const TempDir directory;
    const auto one = record("http://example.com/1", "one"),
               two = record("http://example.com/2", std::string(200000, 'x'));
    CHECK(told(directory.write("plain.warc", one + two)) ==
          line(0, one.size(), "http://example.com/1") + line(one.size(), two.size(), "http://example.com/2"));
    const auto first = gzip(one), second = gzip(two);
    CHECK(told(directory.write("members.warc.gz", first + second)) ==
          line(0, first.size(), "http://example.com/1") + line(first.size(), second.size(), "http://example.com/2"));
    CHECK(told(directory.write("empty.warc", "")).empty());
  }
  TEST_CASE("a plain file is packed record by record; what was cut off is mended") {
    const TempDir directory;
    const auto page = record("http://example.com/page", std::string(5000, 'x'));
    auto picture = record("http://example.com/picture", "\1\2 the bytes of a picture");
    picture.replace(picture.find("text/html"), 9, "image/png");
    const auto whole = page + picture;
    const auto plain = directory.write("page.warc", whole + page.substr(0, 300));
    const auto packed = directory / "page.warc.gz";
    pack(plain, packed);
    std::ifstream file(packed, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    CHECK(bytes.size() < whole.size() / 3);
    CHECK(bytes.find("\1\2 the bytes of a picture") != std::string::npos); // stored
    const auto second = bytes.find("\x1f\x8b", 1);
    const auto third = bytes.find("\x1f\x8b", second + 1);
    CHECK(told(packed) == line(0, second, "http://example.com/page") +
                              line(second, third - second, "http://example.com/picture") +
                              line(third, bytes.size() - third, "http://example.com/page"));
    CHECK_THROWS(pack(directory / "none", packed));
  }
  TEST_CASE("a request is packed without what identifies who asked, and with its new length and digest") {
    const TempDir directory;
    const std::string head = "GET / HTTP/1.1\r\nHost: example.com\r\n", tail = "Accept: */*\r\n\r\n";
    const std::string secret = "Cookie: a=secret;\r\n b=secret\r\nauthorization: Basic secret\r\nX-Mine: secret\r\n";
    const auto request = [](const std::string& block) {
      return "WARC/1.0\r\nWARC-Type: request\r\nWARC-Block-Digest: sha1:OLD\r\nContent-Length: " +
             std::to_string(block.size()) + "\r\nWARC-Record-ID: <urn:uuid:1>\r\n\r\n" + block + "\r\n\r\n";
    };
    const auto packed = directory / "page.warc.gz";
    pack(directory.write("page.warc", request(head + secret + tail) + request(head + tail)), packed,
         OmittedHeaders("x-mine, X-Other"));
    const int fd = ::open(packed.c_str(), O_RDONLY);
    Reader reader(fd, 0, std::filesystem::file_size(packed));
    Digest digest;
    digest.add(head + tail);
    for (const std::string& expected : {digest.finish(), std::string("sha1:OLD")}) {
      const auto record = reader.next();
      REQUIRE(record);
      CHECK(record->length == (head + tail).size());
      CHECK(header_of(record->headers, "warc-block-digest") == expected);
      CHECK(header_of(record->headers, "warc-record-id") == "<urn:uuid:1>");
      std::string block(1000, '\0');
      block.resize(reader.read(block.data(), block.size()));
      CHECK(block == head + tail);
      reader.finish();
    }
    CHECK_FALSE(reader.next());
    ::close(fd);
  }
  TEST_CASE("what a record says is in its capture") {
    const TempDir directory;
    const auto file = directory.write("one.warc.gz", gzip(record("http://www.example.com/A b", "abc")));
    const int fd = ::open(file.c_str(), O_RDONLY);
    std::vector<Capture> found;
    each_capture(
        fd, 0, std::filesystem::file_size(file), [&](const Capture& capture) { return found.push_back(capture), true; },
        [](const Damaged& damage) { FAIL(damage.what()); });
    ::close(fd);
    REQUIRE(found.size() == 1);
    found[0].file = "x.warc.gz";
    found[0].length = 7;
    CHECK(cdxj_line(found[0]) ==
          "com,example)/a%20b 20260131235959 {\"url\":\"http://www.example.com/A%20b\",\"mime\":\"text/html\","
          "\"status\":\"200\",\"digest\":\"sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5\",\"length\":\"7\","
          "\"offset\":\"0\",\"filename\":\"x.warc.gz\"}");
  }
  TEST_CASE("damaged records are named, and the others are found") {
    const TempDir directory;
    const auto good = gzip(record("http://example.com/good", "good"));
    const auto end = [&](std::size_t at) { return line(at, good.size(), "http://example.com/good"); };
    const auto with = [&](const std::string& bad) { return told(directory.write("bad.warc.gz", bad + good)); };
    const auto member = gzip(record("http://example.com/bad", std::string(5000, 'y')));

    auto flipped = member;
    flipped[flipped.size() - 6] = static_cast<char>(flipped[flipped.size() - 6] ^ 1); // of the checksum
    const auto bad = [](const std::string& packed) { return line(0, packed.size(), "http://example.com/bad"); };
    CHECK(with(flipped) == bad(flipped) +
                               "0! has wrong gzip data: incorrect data check, after 5059 of the 5059 bytes\n" +
                               end(flipped.size()));
    const auto cut = member.substr(0, member.size() - 9);
    CHECK(with(cut).starts_with(bad(cut) + "0! has wrong gzip data: "));
    CHECK(with(cut).ends_with(end(cut.size())));
    CHECK(told(directory.write("cut.warc.gz", good + cut)) ==
          line(0, good.size(), "http://example.com/good") + line(good.size(), cut.size(), "http://example.com/bad") +
              std::to_string(good.size()) + "! ends within its gzip data, after 5059 of the 5059 bytes\n");
    const auto plain = record("http://example.com/bad", "abc", "5000");
    CHECK(with(plain) ==
          bad(plain) + "0! ends after 62 of the 5000 bytes that its Content-Length names\n" + end(plain.size()));

    const auto next = record("http://example.com/good", "good");
    const auto over = record("http://example.com/bad", "abc", "70"); // ends within the next record
    CHECK(told(directory.write("over.warc", over + next + next)) ==
          line(0, over.size(), "http://example.com/bad") +
              "0! ends after 62 of the 70 bytes that its Content-Length names\n" +
              line(over.size(), next.size(), "http://example.com/good") +
              line(over.size() + next.size(), next.size(), "http://example.com/good"));

    const auto long_ = gzip(record("http://example.com/bad", "abc", "5000"));
    CHECK(with(long_) ==
          bad(long_) + "0! ends after 66 of the 5000 bytes that its Content-Length names\n" + end(long_.size()));
    const auto short_ = gzip(record("http://example.com/bad", "abcdefgh", "62"));
    CHECK(with(short_) == bad(short_) + "0! is longer than its Content-Length\n" + end(short_.size()));
    for (const std::string length :
         {"9223372036854775808", "18446744073709551616", "-1", "0x10", "4611686018427387904"}) {
      const auto huge = record("http://example.com/bad", "abc", length);
      const auto problem = "0! Content-Length is \"" + length + "\", which no file holds\n";
      CHECK(with(gzip(huge)) == problem + end(gzip(huge).size()));
      CHECK(with(huge) == problem + end(huge.size()));
    }
    CHECK(with("garbage\n") == "0! no WARC record begins here, or its header does not end\n" + end(8));
    CHECK(with(gzip("not a record")) ==
          "0! no WARC record begins here, or its header does not end\n" + end(gzip("not a record").size()));
    const auto undated = gzip(record("http://example.com/bad", "abc", "", "response", "yesterday"));
    CHECK(with(undated) == "0! has no WARC-Date\n" + end(undated.size()));
    const auto endless = "WARC/1.1\r\nWARC-Type: response\r\nX: " + std::string(1u << 20, 'x');
    CHECK(with(gzip(endless)).starts_with("0! no WARC record begins here, or its header does not end\n"));
  }
  TEST_CASE("dates of WARC 1.1, of indexes, of ARC and of HTTP") {
    const std::pair<const char*, const char*> dates[] = {{"2026-01-31T23:59:59Z", "20260131235959"},
                                                         {"2026-01-31T23:59:59.123456Z", "20260131235959"},
                                                         {"2026-01-31T23:59Z", "20260131235900"},
                                                         {"2026-01-31", "20260131000000"},
                                                         {"2026-01", "20260101000000"},
                                                         {"2026", "20260101000000"},
                                                         {"2026-01-31T23:59:59z", "20260131235959"},
                                                         {" 2026-01-31T23:59:59Z ", "20260131235959"},
                                                         {"2026-02-01T00:59:59+01:00", "20260131235959"},
                                                         {"20260131235959", "20260131235959"},
                                                         {"2026-02-30T00:00:00Z", ""},
                                                         {"2026-01-31T25:00:00Z", ""},
                                                         {"Sun, 06 Nov 1994 08:49:37 GMT", "19941106084937"},
                                                         {"Sunday, 06-Nov-94 08:49:37 GMT", "19941106084937"},
                                                         {"Sun Nov  6 08:49:37 1994", "19941106084937"},
                                                         {"Sun Foo  6 08:49:37 1994", ""},
                                                         {"yesterday", ""},
                                                         {"", ""}};
    for (const auto& [date, digits] : dates) {
      CAPTURE(date);
      CHECK(timestamp_of(date) == digits);
    }
  }
  TEST_CASE("a file compressed as a whole is not taken for one record") {
    const TempDir directory;
    const auto text = told(directory.write(
        "whole.warc.gz", gzip(record("http://example.com/1", "a") + record("http://example.com/2", "b"))));
    CHECK(text == "0! is one of several in a gzip member: the file is compressed as a whole\n");
  }
  TEST_CASE("a zip bomb ends early") {
    const TempDir directory;
    const auto path = directory / "bomb.warc.gz";
    z_stream stream{};
    REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    std::ofstream out(path, std::ios::binary);
    std::string buffer(1u << 16, '\0');
    const auto put = [&](std::string_view text, int flush) {
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
      stream.avail_in = static_cast<uInt>(text.size());
      do {
        stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
        stream.avail_out = static_cast<uInt>(buffer.size());
        deflate(&stream, flush);
        out.write(buffer.data(), static_cast<std::streamsize>(buffer.size() - stream.avail_out));
      } while (stream.avail_out == 0);
    };
    const auto head = record("http://example.com/bomb", "", "1400000000");
    put(std::string_view(head).substr(0, head.size() - 4), Z_NO_FLUSH);
    const std::string zeros(1u << 20, '\0');
    for (int i = 0; i < 1300; ++i)
      put(zeros, Z_NO_FLUSH);
    put("", Z_FINISH);
    deflateEnd(&stream);
    out.close();
    CHECK(told(path) == "0! expands more than 500-fold: a zip bomb\n");
  }
  TEST_CASE("every cut and every flipped byte of a file ends in an answer") {
    const TempDir directory;
    const auto whole = gzip(record("http://example.com/1", "one")) + record("http://example.com/2", "two") +
                       gzip(record("http://example.com/3", "three"));
    for (std::size_t size = 0; size < whole.size(); ++size)
      told(directory.write("cut", std::string_view(whole).substr(0, size)));
    for (std::size_t at = 0; at < whole.size(); ++at) {
      auto changed = whole;
      changed[at] = static_cast<char>(~changed[at]);
      told(directory.write("flipped", changed));
    }
  }
  TEST_CASE("what the writer wrote, with the methods of its requests") {
    const TempDir directory;
    const auto path = directory / "own.warc.gz";
    {
      Writer writer(path.string(), {{"date", "2026-01-31T23:59:59Z"}, {"software", "test"}});
      Spool body;
      body.add("answer");
      for (const char* method : {"GET", "POST"}) {
        Exchange exchange;
        exchange.url = "http://example.com/form";
        exchange.method = method;
        exchange.date = "2026-01-31T23:59:59Z";
        exchange.status = 200;
        exchange.reason = "OK";
        if (exchange.method == "POST") exchange.request_body = "a=b";
        writer.add(exchange, body);
      }
      writer.close();
    }
    const int fd = ::open(path.c_str(), O_RDONLY);
    std::string keys;
    each_capture(
        fd, 0, std::filesystem::file_size(path),
        [&](const Capture& capture) { return keys += capture.key + " " + capture.mime + "\n", true; },
        [](const Damaged& damage) { FAIL(damage.what()); });
    ::close(fd);
    CHECK(keys == "com,example)/form unk\ncom,example)/form?__wb_method=post&__wb_post_data=yt1i warc/revisit\n");
  }
}
