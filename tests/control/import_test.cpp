// What other programs export, read as they write it.
#include "lib/base/error.hpp"
#include "lib/base/timestamp.hpp"
#include "services/cli/gunzip.hpp"
#include "services/cli/import.hpp"
#include "services/cli/input.hpp"
#include "services/cli/limits.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace holdfast;
using namespace holdfast::cli;

TEST_CASE("bookmarks of a browser") {
  const std::string text = R"(<!DOCTYPE NETSCAPE-Bookmark-file-1>
<TITLE>Bookmarks</TITLE><DL><p>
  <DT><H3>Folder</H3><DL><p>
    <DT><A HREF="https://a.test/?x=1&amp;y=2" ADD_DATE="1" TAGS="one, two">A &lt;b&gt; &#8220;c&#x201d;</A>
    <DT><A
       HREF='https://b.test/'>Two
       lines <b>bold</b></A>
    <DT><A HREF=javascript:alert(1)>no page</A><DT><ABBR>x</ABBR>
  </DL></DL>)";
  CHECK(format_of("auto", text) == Format::html);
  const auto entries = read_html(text);
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].url == "https://a.test/?x=1&y=2");
  CHECK(entries[0].title == "A <b> \u201cc\u201d");
  CHECK(entries[0].tags == std::vector<std::string>{"one", "two"});
  CHECK(entries[0].where == "line 4");
  CHECK(entries[1].url == "https://b.test/");
  CHECK(entries[1].title == "Two        lines bold");
  CHECK(entries[2].url == "javascript:alert(1)");
}

TEST_CASE("an HTML file that ends in the middle of anything is read as far as it goes") {
  const std::string text = "<a href=\"https://a.test/\">A</a><a href='https://b.test/' title=\"b";
  for (std::size_t length = 0; length <= text.size(); ++length)
    CHECK(read_html(std::string_view(text).substr(0, length)).size() <= 2);
  CHECK(read_html(text).size() == 2);
}

TEST_CASE("feeds: RSS, Atom, RDF") {
  const std::string rss = R"(<?xml version="1.0"?><rss version="2.0"><channel><link>https://a.test/</link>
    <item><title>One &amp; only</title><link>https://a.test/1</link><category>x</category></item>
    <item><guid>https://a.test/2</guid></item></channel></rss>)";
  CHECK(format_of("auto", rss) == Format::xml);
  auto entries = read_xml(rss);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].url == "https://a.test/1");
  CHECK(entries[0].title == "One & only");
  CHECK(entries[0].tags == std::vector<std::string>{"x"});
  CHECK(entries[1].url == "https://a.test/2");
  entries = read_xml(R"(<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>T</title>
    <link rel="self" href="https://a.test/feed"/><link href="https://a.test/page"/><category term="y"/></entry></feed>)");
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].url == "https://a.test/page");
  CHECK(entries[0].tags == std::vector<std::string>{"y"});
}

TEST_CASE("when the entry of a feed was published is when it was bookmarked") {
  const auto time_of = [](const std::string& item) {
    const auto entries = read_xml("<rss><item><link>https://a.test/</link>" + item + "</item></rss>");
    return entries.at(0).bookmarked_at;
  };
  CHECK(time_of("<pubDate>Thu, 04 Mar 2021 06:06:07 +0100</pubDate>") == "2021-03-04T05:06:07.000Z");
  CHECK(time_of("<dc:date>2021-03-04T05:06:07Z</dc:date>") == "2021-03-04T05:06:07.000Z");
  CHECK(time_of("<updated>2022-01-01T00:00:00Z</updated><published>2021-03-04T05:06:07Z</published>") ==
        "2021-03-04T05:06:07.000Z");
  CHECK(time_of("<pubDate>soon</pubDate><updated>2022-01-01</updated>") == "2022-01-01T00:00:00.000Z");
  CHECK(time_of("").empty());
  CHECK(read_xml(R"(<posts><post href="https://a.test/" time="2021-03-04T05:06:07Z"/></posts>)").at(0).bookmarked_at ==
        "2021-03-04T05:06:07.000Z");
}

TEST_CASE("dates of mail and RSS") {
  const std::vector<std::pair<std::string, std::string>> dates = {
      {"Thu, 04 Mar 2021 05:06:07 GMT", "2021-03-04T05:06:07.000Z"},
      {"4 Mar 2021 00:06 EST", "2021-03-04T05:06:00.000Z"},
      {"4 Mar 21 05:06:07", "2021-03-04T05:06:07.000Z"},
      {"4 Mar 99 05:06:07 UT", "1999-03-04T05:06:07.000Z"},
      {"31 Dec 2021 23:30:00 -0200", "2022-01-01T01:30:00.000Z"},
      {"31 Feb 2021 05:06:07 GMT", ""},
      {"4 Mrz 2021 05:06:07 GMT", ""},
      {"4 anF 2021 05:06:07 GMT", ""},
      {"4 Mar 2021 25:06:07 GMT", ""},
      {"4 Mar 2021 05:06: GMT", ""},
      {"4 Mar 2021 05:06:07 MARS", ""},
      {"4 Mar 2021 05:06:07GMT", ""},
      {"Thu, ", ""},
      {"", ""}};
  for (const auto& [text, time] : dates) {
    CAPTURE(text);
    CHECK(base::canonical_timestamp(text) == time);
  }
}

TEST_CASE("dates far ahead are refused, they would come out as others") {
  const std::vector<std::pair<std::string, std::string>> dates = {
      {"2261-12-31T23:59:59-14:00", "2262-01-01T13:59:59.000Z"},
      {"2262-01-01", ""},
      {"9999-12-31 23:59:59", ""},
      {"31 Dec 9999 23:59:59 GMT", ""},
      {"9214646399", "2261-12-31T23:59:59.000Z"},
      {"9214646400", ""},
      {"1.7e10", ""}};
  for (const auto& [text, time] : dates) {
    CAPTURE(text);
    CHECK(base::canonical_timestamp(text) == time);
  }
}

TEST_CASE("sitemaps, but not an index of them") {
  const auto entries = read_xml("<?xml version='1.0'?><urlset><url><loc> https://a.test/1 </loc></url>"
                                "<url><loc>https://a.test/2</loc></url></urlset>");
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].url == "https://a.test/1");
  CHECK_THROWS_AS(read_xml("<sitemapindex><sitemap><loc>https://a.test/s.xml</loc></sitemap></sitemapindex>"),
                  base::Error);
}

TEST_CASE("XML that is none, or bites, is refused or harmless") {
  CHECK_THROWS_AS(read_xml("<rss><item>"), base::Error);
  // No external entity is read, none of one's own multiplies.
  const auto entries =
      read_xml(R"(<?xml version="1.0"?><!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd"><!ENTITY f "&e;&e;">]>
    <rss><item><title>&e;&f;</title><link>https://a.test/</link></item></rss>)");
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].title.find("root") == std::string::npos);
}

TEST_CASE("JSON: lists, JSON Feed, Pinboard, Pocket") {
  auto entries = read_json(R"(["https://a.test/", {"url": "https://b.test/", "title": "B", "tags": ["x"]}])");
  REQUIRE(entries.size() == 2);
  CHECK(entries[1].tags == std::vector<std::string>{"x"});
  entries = read_json(R"([{"href": "https://a.test/", "description": "A", "tags": "one two"}])");
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].title == "A");
  CHECK(entries[0].tags == std::vector<std::string>{"one", "two"});
  entries = read_json(R"({"status": 1, "list": {"7": {"resolved_url": "https://p.test/", "resolved_title": "P",
    "tags": {"late": {"item_id": "7"}}}}})");
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].url == "https://p.test/");
  CHECK(entries[0].tags == std::vector<std::string>{"late"});
  CHECK(read_json(R"({"items": [{"url": "https://f.test/"}]})").size() == 1);
  CHECK_THROWS_AS(read_json("[{"), base::Error);
  CHECK_THROWS_AS(read_json(R"([{"url": "https://a.test/", "time": 1e999}])"), base::Error);
}

TEST_CASE("Pocket's table, and Pinboard's XML") {
  const std::string csv = "title,url,time_added,tags,status\n\"One, \"\"two\"\"\",https://a.test/,1,x|y,unread\r\n\n";
  CHECK(format_of("auto", csv) == Format::csv);
  auto entries = read_csv(csv);
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].title == "One, \"two\"");
  CHECK(entries[0].tags == std::vector<std::string>{"x", "y"});
  entries = read_xml(R"(<posts user="u"><post href="https://a.test/" description="A" tag="one two"/></posts>)");
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].tags == std::vector<std::string>{"one", "two"});
}

TEST_CASE("what gzip has packed") {
  const unsigned char bytes[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xb3, 0x29, 0x2d,
                                 0xca, 0x29, 0x4e, 0x2d, 0xb1, 0xb3, 0x01, 0xd2, 0x76, 0x36, 0x39, 0xf9, 0xc9,
                                 0x76, 0x19, 0x25, 0x25, 0x05, 0xc5, 0x56, 0xfa, 0xfa, 0xa9, 0x7a, 0x25, 0xa9,
                                 0xc5, 0x25, 0xfa, 0x36, 0xfa, 0x20, 0x41, 0x1b, 0x7d, 0xb0, 0xbc, 0x3e, 0x54,
                                 0x35, 0x00, 0x1d, 0x0b, 0xd5, 0x32, 0x36, 0x00, 0x00, 0x00};
  const std::string packed(reinterpret_cast<const char*>(bytes), sizeof bytes);
  const std::string text = "<urlset><url><loc>https://e.test/</loc></url></urlset>";
  CHECK(is_gzip(packed));
  CHECK_FALSE(is_gzip(text));
  CHECK(gunzip(packed, 1000) == text);
  CHECK(gunzip(packed + packed, 1000) == text + text);
  CHECK(gunzip(packed + std::string(10, '\0'), 1000) == text);
  CHECK_THROWS_AS(gunzip(packed, text.size() - 1), base::Error);
  for (std::size_t size = 2; size < packed.size(); ++size) {
    CAPTURE(size);
    CHECK_THROWS_AS(gunzip(packed.substr(0, size), 1000), base::Error);
  }
  auto broken = packed;
  broken[30] ^= 0x55;
  CHECK_THROWS_AS(gunzip(broken, 1000), base::Error);
}

TEST_CASE("lists that people write: only URLs, a title behind them, or sentences") {
  const auto directory = std::filesystem::temp_directory_path() / ("holdfast-import-" + std::to_string(getpid()));
  std::filesystem::create_directory(directory);
  const auto urls = [&](const std::string& text) {
    std::ofstream(directory / "list.txt") << text;
    std::vector<std::string> found;
    for (const auto& seed : read_seeds({(directory / "list.txt").string()}, {}).seeds)
      found.push_back(seed.url);
    return found;
  };
  using List = std::vector<std::string>;
  CHECK(urls("# reading\n\nhttps://a.test/x\n") == List{"https://a.test/x"});
  CHECK(urls("https://a.test/x  A title\n") == List{"https://a.test/x"});
  CHECK(urls("See https://a.test/x, (https://b.test/y_(z)) and <https://c.test/>.\n") ==
        List{"https://a.test/x", "https://b.test/y_(z)", "https://c.test/"});
  CHECK_THROWS_AS(urls("a.test/x\n"), base::Error); // not a guess
  CHECK_THROWS_AS(urls("nothing here\n"), base::Error);
  std::filesystem::remove_all(directory);
}

TEST_CASE("the format is seen from the text") {
  CHECK(format_of("auto", "https://a.test/\nhttps://b.test/\n") == Format::lines);
  CHECK(format_of("auto", "{\"url\": \"https://a.test/\"}\n{\"url\": \"https://b.test/\"}\n") == Format::lines);
  CHECK(format_of("auto", "{\n  \"items\": []\n}") == Format::json);
  CHECK(format_of("auto", "\xef\xbb\xbf[\"https://a.test/\"]") == Format::json);
  CHECK(format_of("auto", "https://a.test/?url=1,2\n") == Format::lines);
  CHECK(format_of("auto", "") == Format::lines);
  CHECK(format_of("jsonl", "[") == Format::lines);
}

TEST_CASE("the part of a host name that can be registered") {
  CHECK(registrable_domain("www.example.com") == "example.com");
  CHECK(registrable_domain("a.b.example.co.uk") == "example.co.uk");
  CHECK(registrable_domain("127.0.0.1") == "127.0.0.1");
  CHECK(registrable_domain("localhost") == "localhost");
}
