#include "lib/warc/split.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>

#include <fstream>
#include <map>
#include <vector>

using namespace holdfast::warc;
using holdfast::test::TempDir;

namespace {

struct Response {
  std::string url;
  int second{0};
};

// The URLs that each page gets, of pages that a list names with second 0 each.
std::map<std::string, std::string> shared_out(const std::vector<std::string>& pages,
                                              const std::vector<std::vector<Response>>& files) {
  const TempDir directory;
  const std::string date = "2026-01-31T23:59:0";
  Splitter splitter;
  for (const auto& page : pages)
    REQUIRE(splitter.add_page("http://site.test/" + page, date + "0Z", ""));
  std::map<std::pair<std::size_t, std::uint64_t>, std::string> url_at;
  for (std::size_t number = 0; number < files.size(); ++number) {
    const auto path = directory.path() / std::to_string(number);
    std::string text;
    for (const auto& [url, second] : files[number]) {
      url_at[{number, text.size()}] = url;
      const std::string block = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
      text +=
          "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://site.test/" + url + "\r\nWARC-Date: " + date +
          std::to_string(second) + "Z\r\nWARC-Record-ID: <urn:" + url +
          ">\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: " + std::to_string(block.size()) +
          "\r\n\r\n" + block + "\r\n\r\n";
    }
    std::ofstream(path) << text;
    const int file = ::open(path.c_str(), O_RDONLY);
    REQUIRE(file >= 0);
    splitter.add_file(file, 0, text.size(), [](const Damaged& damage) { FAIL(damage.what()); });
    ::close(file);
  }
  splitter.finish();
  std::map<std::string, std::string> found;
  for (std::size_t page = 0; page < splitter.pages().size(); ++page)
    splitter.each_part(page, [&](std::size_t file, std::uint64_t offset, std::uint64_t) {
      auto& urls = found[pages[splitter.pages()[page].listed]];
      urls += (urls.empty() ? "" : " ") + url_at[{file, offset}];
    });
  return found;
}

using Found = std::map<std::string, std::string>;

} // namespace

TEST_CASE("records of pages that were archived at once go to a page of their own file") {
  const auto found = shared_out({"a", "b"}, {{{"a"}, {"1", 1}}, {{"2"}, {"b"}, {"3", 1}}});
  CHECK(found == Found{{"a", "a 1"}, {"b", "2 b 3"}});
}

TEST_CASE("records of pages that were archived at once go to the page before them in their file") {
  const auto found = shared_out({"a", "b", "c"}, {{{"a"}, {"1"}, {"2", 1}, {"b"}, {"3", 1}}, {{"c"}}});
  CHECK(found == Found{{"a", "a 1 2"}, {"b", "b 3"}, {"c", "c"}});
}

TEST_CASE("records of a file without pages go to the page that was archived last before them") {
  const auto found = shared_out({"a", "b"}, {{{"a"}}, {{"b"}}, {{"1", 1}}});
  CHECK(found == Found{{"a", "a"}, {"b", "b 1"}});
}
