#include "lib/archive/attempt.hpp"

#include <doctest/doctest.h>

using holdfast::archive::media_type;

TEST_SUITE_BEGIN("media type");

TEST_CASE("an extension decides, in either case and with double extensions") {
  CHECK(media_type("output.html", "") == "text/html");
  CHECK(media_type("OUTPUT.PDF", "") == "application/pdf");
  CHECK(media_type("20260801.warc.gz", "\x1f\x8b") == "application/warc");
  CHECK(media_type("dump.gz", "") == "application/gzip");
  CHECK(media_type("urls.jsonl", "{}") == "application/x-ndjson");
}

TEST_CASE("a name without a known extension is told by its first bytes") {
  CHECK(media_type("index", "  \n<!DOCTYPE HTML><p>") == "text/html");
  CHECK(media_type("index", "\xef\xbb\xbf<html>") == "text/html");
  CHECK(media_type("file", "%PDF-1.7\n") == "application/pdf");
  CHECK(media_type("file", "\x89PNG\r\n\x1a\n") == "image/png");
  CHECK(media_type("file", "\xff\xd8\xff\xe0") == "image/jpeg");
  CHECK(media_type("file", "GIF89a") == "image/gif");
  CHECK(media_type("file", "RIFF\x10\x20\x30\x40WEBPVP8 ") == "image/webp");
  CHECK(media_type("file", "\x1f\x8b\x08") == "application/gzip");
  CHECK(media_type("file", "WARC/1.1\r\n") == "application/warc");
  CHECK(media_type("file", "{\"a\": 1}") == "application/json");
  CHECK(media_type("file", "[1, 2]") == "application/json");
  CHECK(media_type("file", "[sic] is not JSON") == "text/plain");
  CHECK(media_type("file", "Gr\xc3\xbc\xc3\x9f"
                           "e") == "text/plain");
  CHECK(media_type("file", "") == "text/plain");
}

TEST_CASE("a dot file is a name, not an extension, and bytes that are no text stay unknown") {
  CHECK(media_type(".html", "%PDF-1.4") == "application/pdf");
  CHECK(media_type("blob", std::string_view("a\0b", 3)) == "application/octet-stream");
  CHECK(media_type("blob", "a\x02\xfe"
                           "bcdef") == "application/octet-stream");
}

TEST_CASE("a character cut off by the end of the first bytes does not make a text binary") {
  CHECK(media_type("note", "three euros: 3 \xe2\x82") == "text/plain");
}

TEST_SUITE_END();
