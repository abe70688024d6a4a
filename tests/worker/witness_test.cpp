// Bytes that the egress proxy received and no record has, as a table.

#include "services/worker/attempt/steps.hpp"

#include <doctest/doctest.h>

using namespace holdfast;

namespace {

warc::Capture record(const std::string& url, std::uint64_t size, const std::string& mime = "text/html",
                     int status = 200) {
  warc::Capture capture;
  capture.url = url;
  capture.size = size;
  capture.mime = mime;
  capture.status = status;
  return capture;
}

// The hosts with their bytes, "a.example 5000 b.example 7".
std::string told(const std::map<std::string, egress::HostTraffic>& hosts, const std::vector<warc::Capture>& records) {
  egress::Traffic traffic;
  traffic.hosts = hosts;
  std::string text;
  for (const auto& [host, bytes] : worker::unrecorded(traffic, records))
    text += (text.empty() ? "" : " ") + host + " " + std::to_string(bytes);
  return text;
}

} // namespace

TEST_CASE("bytes that the proxy received and no record has") {
  const auto page = record("http://a.example/", 5000);
  CHECK(told({{"a.example", {1, 0, 5000}}}, {page}) == "");
  CHECK(told({{"a.example", {1, 0, 5000}}, {"b.example", {1, 0, 7}}}, {page}) == "b.example 7");
  CHECK(told({{"a.example", {1, 0, 900'000}}}, {page}) == "a.example 895000");

  SUBCASE("a port or capital letters in the URL of a record do not matter") {
    CHECK(told({{"a.example", {1, 0, 5000}}}, {record("http://A.Example:8080/x", 5000)}) == "");
  }
  SUBCASE("a refused host has sent nothing") {
    CHECK(told({{"a.example", {1, 0, 5000}}, {"10.0.0.1", {3, 0, 0}}}, {page}) == "");
  }
  SUBCASE("a connection without a request has a handshake only") {
    CHECK(told({{"b.example", {2, 2, 12'000}}}, {page}) == "");
    CHECK(told({{"b.example", {2, 2, 40'000}}}, {page}) == "b.example 40000");
  }
  SUBCASE("records hold decoded bodies, which are larger") {
    CHECK(told({{"a.example", {9, 0, 200'000}}}, {record("http://a.example/x", 900'000)}) == "");
  }
  SUBCASE("pieces of films, repeated bodies and messages of WebSockets are not compared") {
    CHECK(told({{"a.example", {9, 0, 9'000'000}}}, {record("http://a.example/f", 4'000'000, "video/mp4")}) == "");
    CHECK(told({{"a.example", {9, 0, 9'000'000}}}, {record("http://a.example/r", 300, "warc/revisit")}) == "");
    CHECK(told({{"a.example", {9, 0, 9'000'000}}}, {record("http://a.example/s", 300, "unk", 101)}) == "");
  }
}
