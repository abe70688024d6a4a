#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/encoding.hpp"
#include "lib/formats/html.hpp"
#include "lib/formats/link.hpp"
#include "lib/warc/capture.hpp"
#include "lib/warc/coding.hpp"
#include "services/capture/extract/blocks.hpp"
#include "services/capture/extract/doubt.hpp"
#include "services/capture/extract/icon.hpp"
#include "services/capture/extract/links.hpp"
#include "services/capture/extract/readable.hpp"
#include "services/capture/fetch/wget_log.hpp"
#include "services/capture/replay/replay.hpp"
#include "services/capture/replay/replay_source.hpp"
#include "tests/support/packed_zeros.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>

#include <fstream>

using namespace holdfast;
using namespace holdfast::capture;
using holdfast::warc::decode_body, holdfast::warc::without_chunks;

namespace {

std::string tags(std::string_view html) {
  std::string result;
  formats::scan_html(html, [&](const formats::Token& token) {
    if (token.kind != formats::Token::Kind::start) return true;
    result += (result.empty() ? "" : " ") + token.text;
    for (const auto& [name, value] : token.attributes)
      result += "[" + name + "=" + value + "]";
    return true;
  });
  return result;
}

std::string text_in(std::string_view html) {
  std::string result;
  formats::scan_html(html, [&](const formats::Token& token) {
    if (token.kind == formats::Token::Kind::text) result += token.text;
    return true;
  });
  return result;
}

std::string repeated(std::string_view piece, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i)
    result += piece;
  return result;
}

std::string unhex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(holdfast::base::hex_value(digits[i]) * 16 + holdfast::base::hex_value(digits[i + 1]));
  return bytes;
}

std::string urls_in(const std::string& bytes, const std::string& type) {
  std::string result;
  find_links({"http://example.org/", type, bytes, ""}, [&](const Link& link) {
    result += link.url + "\n";
    return true;
  });
  return result;
}

} // namespace

TEST_SUITE("content codings") {
  const std::string kText =
      "<p>an osprey over the lake</p><p>an osprey over the lake</p><p>an osprey over the lake</p>";
  const std::pair<const char*, const char*> kCoded[] = {
      {"gzip",
       "1f8b0800000000000203b329b04bcc53c82f2e284aad54c82f4b2d5228c94855c849cc4eb5d12fb0b3a140160052b161925a000000"},
      {"deflate", "789cb329b04bcc53c82f2e284aad54c82f4b2d5228c94855c849cc4eb5d12fb0b3a1401600a9ff1fab"},
      {"Deflate ", "b329b04bcc53c82f2e284aad54c82f4b2d5228c94855c849cc4eb5d12fb0b3a1401600"},
      {"br", "1b5900009c07768c980c2dc557bc21f492272caf5ede1a0ea44c6efab8cda520ef1c9416c63daafb2eec640504"},
      {"zstd", "28b52ffd00582d0100f03c703e616e206f7370726579206f76657220746865206c616b653c2f703e01002648ca09"},
  };
  TEST_CASE("each is undone, and what is cut off, damaged or too large is told") {
    for (const auto& [coding, hex] : kCoded) {
      CAPTURE(coding);
      const auto bytes = unhex(hex);
      const auto whole = decode_body(bytes, coding, kText.size());
      CHECK(whole.bytes == kText);
      CHECK(whole.whole);
      for (std::size_t length = 0; length < bytes.size(); ++length) {
        const auto cut = decode_body(bytes.substr(0, length), coding, 1000);
        CHECK(kText.starts_with(cut.bytes));
        CHECK((!cut.whole || cut.bytes == kText));
        if (length + 8 < bytes.size()) CHECK(!cut.whole);
      }
      const auto limited = decode_body(bytes, coding, 10);
      CHECK(limited.bytes == kText.substr(0, 10));
      CHECK(!limited.whole);
      CHECK(!decode_body("\x1f\x8b no such thing", coding, 1000).whole);
      CHECK(!decode_body("", coding, 1000).whole);
    }
  }
  TEST_CASE("several, none and unknown ones") {
    const auto coded = unhex(kCoded[0].second);
    CHECK(decode_body(coded + coded, "x-gzip", 1000).bytes == kText + kText);
    CHECK(decode_body(coded, "identity, gzip", 1000).bytes == kText);
    CHECK(decode_body(kText, "", 1000).whole);
    CHECK(decode_body(kText, "", 10).bytes == kText.substr(0, 10));
    CHECK(!decode_body(kText, "", 10).whole);
    CHECK(!decode_body(kText, "compress", 1000).whole);
    CHECK(!decode_body(coded, "identity,identity,identity,identity,gzip,identity,", 1000).whole);
    const auto bomb = decode_body(test::packed_zeros(64), "gzip", std::size_t{1} << 30);
    CHECK(bomb.bytes.size() == std::size_t{16} << 20);
    CHECK(!bomb.whole);
  }
}

TEST_SUITE("HTML") {
  TEST_CASE("attributes in every style") {
    CHECK(tags("<A HREF=a b='&lt;' c=\"x>y\" d e = f g=1/><br/>") == "a[href=a][b=<][c=x>y][d=][e=f][g=1/] br");
    CHECK(tags("<a href=1 href=2>") == "a[href=1]");
  }
  TEST_CASE("scripts and comments hold no tags") {
    CHECK(tags("<!-- <a> --><script>'<b>'</script><!doctype x><i>") == "script i");
    CHECK(tags("<!--> <a> <!-- never closed <b>") == "a");
  }
  TEST_CASE("text around odd brackets") { CHECK(text_in("1 < 2 &amp; 3 </> 4 <5") == "1 < 2 & 3  4 <5"); }
  TEST_CASE("character references") {
    CHECK(formats::unescape_html("&lt;&#65;&#x42;&copy&notin;&noti &#150; &#xD800; &nope; &") ==
          "<AB©∉¬i – \uFFFD &nope; &");
  }
  TEST_CASE("text that ends inside anything") {
    for (const char* text : {"<", "<a", "<a ", "<a href", "<a href=", "<a href='x", "<!", "<!-", "<!--", "</", "</a",
                             "<title>x", "&", "&#", "&#x"})
      tags(text);
  }
  TEST_CASE("time grows with the size and no faster") {
    // A scan in quadratic time would not end within the time limit of the test.
    for (const std::string_view piece :
         {"<!--", "<a ", "<a b='", "<a/", "</", "<title>", "<a b=\"", "<div>", "& ", "<a b =  ", "<![CDATA["})
      tags(repeated(piece, 4'000'000 / piece.size()));
  }
  TEST_CASE("readable text of deep nesting") {
    const auto blocks =
        readable_blocks(repeated("<div>", 100'000) + "<p>bottom" + repeated("</span></nav></div>", 100'000));
    REQUIRE(blocks.size() == 1);
    CHECK(blocks[0].text() == "bottom");
  }
  TEST_CASE("a post is not dropped for its comments") {
    const auto words = [](const char* of) { return repeated(std::string("The keeper wrote about ") + of + ". ", 20); };
    const auto text = [](const std::string& html) { return blocks_as_text(readable_blocks(html)); };
    const auto comments = "<article>" + words("thanks") + "</article><article>" + words("copies") + "</article>";
    const auto post = "<div><h1>Horn</h1><p>" + words("fog") + "</div>";
    CHECK(text(post + comments).find("about fog") != std::string::npos);
    CHECK(text(post + "<main>" + comments + "</main>").find("about fog") == std::string::npos);
    CHECK(text("<p>Aside<article>" + words("fog") + "</article>").find("Aside") == std::string::npos);
    const auto page =
        "<nav><h1>Room</h1>Home<h2>Pages</h2></nav><p>Row<aside>Note</aside><ul><li><a>Way</a></ul><article>" +
        words("fog") + "</article><footer>Law</footer>";
    CHECK(blocks_as_text(blocks_beside(page)) == "Room\n\nRow\n\nNote\n\n- Way\n"); // not in the article
    CHECK(text("<p>Aside" + comments).find("Aside") != std::string::npos); // a page of articles: none is the page
    CHECK(text("<article>" + words("tea") + "</article>" + repeated(post, 5)).find("about fog") != std::string::npos);
  }
  TEST_CASE("a heading may be a button") {
    const auto text =
        blocks_as_text(readable_blocks("<h2><button>When is it lit?</button></h2><p>At "
                                       "dusk.<button>Share</button><h3><span><button>Why?</button></span>"
                                       "</h3><p>For ships.<dl><dt><button>Where?</button><dd>There.</dl>"));
    CHECK(text == "When is it lit?\n\nAt dusk.\n\nWhy?\n\nFor ships.\n\nWhere?\n\nThere.\n");
  }
  TEST_CASE("readable text of a table") {
    const auto blocks = readable_blocks("<p>Tides<table><thead><tr><th>Moon<th>High water</tr></thead><tr><td>New</td>"
                                        "<td></td><td>a &lt; <b>b</b></td></tr></table><p>So it is.");
    CHECK(blocks_as_text(blocks) == "Tides\n\nMoon\tHigh water\nNew\t\ta < b\n\nSo it is.\n");
    CHECK(blocks_as_html(blocks, "", "")
              .find("<table>\n<tr><td>Moon</td><td>High water</td></tr>\n<tr><td>New</td>"
                    "<td></td><td>a &lt; b</td></tr>\n</table>\n<p>So") != std::string::npos);
  }
  TEST_CASE("readable text of a table that only places blocks") {
    const auto blocks = readable_blocks("<table><tr><td><h1>A</h1><p>b<p>c</td><td>d</table>e");
    CHECK(blocks_as_text(blocks) == "A\n\nb\n\nc\n\nd\n\ne\n");
  }
}

TEST_SUITE("charsets") {
  TEST_CASE("what decides") {
    CHECK(formats::decode_page("\xC3\xA9", "text/html; charset=latin1") == "Ã©");
    CHECK(formats::decode_page("\xEF\xBB\xBF\xC3\xA9", "text/html; charset=latin1") == "é");
    CHECK(formats::decode_page("<meta charset=koi8-r>\xC1", "") == "<meta charset=koi8-r>а");
    CHECK(formats::decode_page("<script>'<meta charset=greek>'</script><!--<meta charset=greek>-->" +
                                   repeated(" ", 20'000) +
                                   "<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>\xC1",
                               "")
              .ends_with("а"));
    CHECK(formats::decode_page("caf\xE9", "") == "café");
    CHECK(formats::decode_page("\xC3\xA9", "") == "é");
  }
  TEST_CASE("labels that are no encodings of pages") {
    for (const std::string label :
         {"rot13", "base64", "utf-7", "idna", "unicode_escape", "no-such-thing", "", "cp99999", "//IGNORE"})
      CHECK(formats::decode_page("a+b\\u0041", "text/html; charset=" + label) == "a+b\\u0041");
  }
  TEST_CASE("labels of the Encoding standard") {
    const std::tuple<const char*, const char*, const char*> known[] = {{"iso-8859-8-i", "\xF9\xEC\xE5\xED", "שלום"},
                                                                       {"visual", "\xF9", "ש"},
                                                                       {"latin2", "\xB9", "š"},
                                                                       {" \"Latin1\" ", "\x80", "€"},
                                                                       {"x-sjis", "\x93\x94", "灯"},
                                                                       {"csisolatin9", "\xA4", "€"},
                                                                       {"unicodefffe", "\x70\x6F", "灯"},
                                                                       {"dos-874", "\xA1", "ก"},
                                                                       {"greek8", "\xE1", "α"}};
    for (const auto& [label, bytes, text] : known)
      CHECK(formats::decode_page(bytes, std::string("text/plain; charset=") + label) == text);
  }
  TEST_CASE("every byte decodes to something") {
    std::string bytes;
    for (int i = 0; i < 1024; ++i)
      bytes += static_cast<char>(i);
    for (const std::string label :
         {"utf-8", "utf-16", "shift_jis", "big5", "gbk", "euc-kr", "windows-1252", "iso-2022-jp"})
      CHECK_FALSE(formats::decode_page(bytes, "text/html; charset=" + label).empty());
  }
}

TEST_SUITE("links") {
  TEST_CASE("as the URL standard reads them") {
    const std::string base = "http://example.org/a/b?c#d";
    const std::pair<std::string, std::string> all[] = {{"\\\\other.example\\x?a\\b", "http://other.example/x?a\\b"},
                                                       {"\\x\\y", "http://example.org/x/y"},
                                                       {"///other.example/x", "http://other.example/x"},
                                                       {"https:\\\\other.example", "https://other.example"},
                                                       {"https:other.example", "https://other.example"},
                                                       {"http:x", "http://example.org/a/x"},
                                                       {"\x01 x \x1f", "http://example.org/a/x"},
                                                       {"#/second", "http://example.org/a/b?c#/second"},
                                                       {"#!second", "http://example.org/a/b?c#!second"},
                                                       {"mailto:a\\b", ""}};
    for (const auto& [href, url] : all)
      CHECK(formats::absolute_link(base, href).value_or("") == url);
  }
  TEST_CASE("queries in the encoding of the page") {
    const auto href = [](const std::string& bytes, const std::string& type) {
      std::string url;
      find_links({"http://example.org/", type, "<a href='/ü?q=" + bytes + "'>", ""}, [&](const Link& link) {
        url = link.url.substr(link.url.find('?'));
        return true;
      });
      return url;
    };
    CHECK(href("caf\xE9", "text/html; charset=iso-8859-1") == "?q=caf%E9");
    CHECK(href("\x93\x94", "text/html; charset=shift_jis") == "?q=%93%94");
    CHECK(href("\xC1", "text/html; charset=koi8-r") == "?q=%C1");
    CHECK(href("&#8364;&#x4E2D;", "text/html; charset=iso-8859-2") == "?q=%26%238364%3B%26%2320013%3B");
    CHECK(href("caf\xC3\xA9", "text/html; charset=utf-8") == "?q=café");
  }
  TEST_CASE("where a refresh leads") {
    for (const char* content : {"0; url=/next", "5;URL='/next'", "0 , /next", "1.5;url = \"/next\" x", "0 /next"}) {
      std::string quoted = content;
      for (auto at = quoted.find('"'); at != std::string::npos; at = quoted.find('"', at))
        quoted.replace(at, 1, "&quot;");
      CHECK(urls_in("<meta http-equiv=Refresh content=\"" + quoted + "\">", "text/html") ==
            "http://example.org/next\n");
    }
    CHECK(urls_in("<meta http-equiv=refresh content=5>", "text/html").empty());
  }
  TEST_CASE("XHTML") {
    const std::string page =
        "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><script src='x'/>"
        "<title>T</title></head><body><textarea/><p><![CDATA[5 < 6]]></p><a href='1'>one</a></body></html>";
    for (const char* type : {"application/xhtml+xml", "application/xml", "text/xml"}) {
      CHECK(urls_in(page, type) == "http://example.org/1\n");
      CHECK(blocks_as_text(readable_blocks(Page{"", type, page, ""}.text())) == "5 < 6\n");
    }
  }
  TEST_CASE("what the bytes are") {
    const std::tuple<const char*, std::string, const char*> all[] = {
        {"html", "<!doctype html><p>", "text/html"},
        {"", " \n<P>x", "text/html"},
        {"", "<price>1</price>", "text/plain"},
        {"unknown/unknown", "<!-- -->", "text/html"},
        {"*/*", "%PDF-1.4", "application/pdf"},
        {"text/plain", "PK\3\4\1\2", "application/octet-stream"},
        {"text/plain; charset=koi8-r", "PK\3\4\1\2", "text/plain"},
        {"text/plain", "\xFF\xFEw\x01", "text/plain"},
        {"image/png", "GIF89a", "image/gif"},
        {"image/svg+xml", "GIF89a", "image/svg+xml"},
        {"Text/HTML ; charset=x", "GIF89a", "text/html"},
        {"application/octet-stream", "<html>", "application/octet-stream"}};
    for (const auto& [type, bytes, right] : all)
      CHECK(formats::sniffed_type(type, bytes) == right);
  }
  TEST_CASE("only http and no fragment") {
    const std::string base = "http://example.org/a/b?c#d";
    const std::pair<std::string, std::string> good[] = {{"x#y", "http://example.org/a/x"},
                                                        {"//other.example/", "http://other.example/"},
                                                        {"HTTPS://Example.org", "HTTPS://Example.org"},
                                                        {"../../../x", "http://example.org/x"},
                                                        {"./", "http://example.org/a/"},
                                                        {"", ""}};
    for (const auto& [href, url] : good)
      CHECK(formats::absolute_link(base, href).value_or("") == url);
    for (const std::string href : {"mailto:x@y", "javascript:1", "data:,x", "http://", "http://[", "java\nscript:1"})
      CHECK_FALSE(formats::absolute_link(base, href));
    CHECK(formats::absolute_link(base, std::string(3000, 'x')));
    CHECK_FALSE(formats::absolute_link(base, std::string(70'000, 'x')));
  }
  TEST_CASE("words of a link are parted by its blocks") {
    std::string titles;
    find_links({"http://example.org/", "text/html", "<a href=1><h3>One</h3><p>t<b>w</b>o<br>three</a>", ""},
               [&](const Link& link) {
                 titles += link.title;
                 return true;
               });
    CHECK(titles == " One  two three");
  }
  TEST_CASE("a broken feed is read as text") {
    CHECK(urls_in("<rss><channel><item><link>http://example.org/1</link></item>", "text/xml") ==
          "http://example.org/1\n");
  }
  TEST_CASE("entities of a document's own are not expanded") {
    std::string levels;
    for (int n = 1; n < 12; ++n)
      levels += "<!ENTITY e" + std::to_string(n) + " \"" + repeated("&e" + std::to_string(n - 1) + ";", 10) + "\">";
    CHECK(urls_in("<!DOCTYPE r [<!ENTITY e0 \"ha\">" + levels + "]><rss><item><title>&e11;</title></item></rss>",
                  "text/xml")
              .empty());
  }
  TEST_CASE("deep JSON is refused") { CHECK(urls_in(repeated("[", 100'000), "application/json").empty()); }
  TEST_CASE("a JSON list") {
    CHECK(urls_in(R"(["http://example.org/1", {"href": "2"}, 3])", "application/json") ==
          "http://example.org/1\nhttp://example.org/2\n");
  }
}

TEST_SUITE("wget's log") {
  TEST_CASE("a log that ends anywhere") {
    const std::string log =
        "--2026-01-02 03:04:05--  http://example.org/\n  HTTP/1.1 302 Found\n  Location: /x\n"
        "Location: /x [following]\n--2026-01-02 03:04:05--  http://example.org/x\n  HTTP/1.1 200 OK\n"
        "  Content-Type: text/html\nSaving to: ‘example.org/index.html’\n\n"
        "2026-01-02 03:04:05 (1 MB/s) - ‘example.org/index.html’ saved [10/10]\n\n";
    for (std::size_t end = 0; end < log.size(); ++end)
      parse_wget_log(std::string_view(log).substr(0, end));
    const auto exchanges = parse_wget_log(log);
    REQUIRE(exchanges.size() == 2);
    CHECK(exchanges[0].redirect == "http://example.org/x");
    CHECK(exchanges[1].url == "http://example.org/x");
    CHECK(exchanges[1].status == 200);
    CHECK(exchanges[1].complete);
    CHECK(exchanges[1].saved_to == "example.org/index.html");
    CHECK(exchanges[1].header("content-type") == "text/html");
  }
}

TEST_SUITE("icons") {
  TEST_CASE("kinds") {
    CHECK(icon_kind("<?xml version='1.0'?><!-- a --><svg xmlns=''>") == "svg");
    CHECK(icon_kind("<html><svg>").empty());
    CHECK(icon_kind("").empty());
    CHECK(data_of("data:image/png;base64,iVBOR%77==") == base::base64_decode("iVBORw=="));
    CHECK(data_of("data:image/svg+xml,%3Csvg%3E") == "<svg>");
    CHECK(linked_icons("<link rel=icon href='data:,x'>", "http://example.org/").front() == "data:,x");
  }
}

TEST_CASE("a login form is told where the address does not ask for one") {
  const auto doubt = [](const std::string& asked, const std::string& url, bool alone, std::size_t size = 200) {
    holdfast::capture::Shown now;
    now.title = "Sign in";
    now.words = "Name Password Go";
    now.asked = asked;
    now.url = url;
    now.login = true;
    now.login_alone = alone;
    now.size = size;
    return doubt_about(now, 0).starts_with("the site asks to sign in");
  };
  const std::string page = "https://a.test/reports/7";
  CHECK(doubt(page, page, true));
  CHECK(doubt(page, page + "?from=x", true));
  CHECK(doubt(page, "https://a.test/login", false));
  CHECK(!doubt(page, page, false));
  CHECK(!doubt(page, page, true, 5000));
  for (const char* asked : {"login", "users/sign_in", "wp-login.php", "auth/realms/x", "signin?next=/", "my/Account"})
    CHECK(!doubt("https://a.test/" + std::string(asked), "https://a.test/" + std::string(asked), true));
  CHECK(doubt("https://login.test.a/x?next=/login", "https://a.test/x", true)); // led elsewhere
  CHECK(doubt("https://a.test/x?next=/login", "https://a.test/x?next=/login", true));
}

TEST_CASE("texts are compared word by word") {
  CHECK(same_words("a b c", "c\nb a") == 1);
  CHECK(same_words("a a b", "a b b") == doctest::Approx(4.0 / 6));
  CHECK(same_words("a", "b") == 0);
  CHECK(same_words("", "") == 1);
  CHECK(same_words("", "a") == 0);
}

TEST_CASE("a record that lost its body is no answer") {
  const test::TempDir directory;
  const auto file = (directory.path() / "page.warc").string();
  struct Sent {
    const char *name, *body, *length, *truncated;
    bool found;
  };
  const Sent all[] = {{"whole", "words", "5", "", true}, {"half", "wor", "5", "disconnect", true},
                      {"nothing", "", "5", "", false},   {"cut", "", "", "disconnect", false},
                      {"empty", "", "0", "", true},      {"open", "", "", "", true}};
  const auto url = [](const Sent& sent) { return std::string("http://a.example/") + sent.name; };
  {
    std::ofstream records(file, std::ios::binary);
    for (const auto& sent : all) {
      std::string block = "HTTP/1.1 200 OK\r\n";
      if (*sent.length != '\0') block += std::string("Content-Length: ") + sent.length + "\r\n";
      block += std::string("\r\n") + sent.body;
      records << "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: " << url(sent)
              << "\r\nWARC-Date: 2026-01-31T23:59:59Z\r\nWARC-Record-ID: <urn:" << sent.name
              << ">\r\nContent-Type: application/http;msgtype=response\r\n";
      if (*sent.truncated != '\0') records << "WARC-Truncated: " << sent.truncated << "\r\n";
      records << "Content-Length: " << block.size() << "\r\n\r\n" << block << "\r\n\r\n";
    }
  }
  Json records = Json::array();
  const base::Fd open(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  warc::each_capture(
      open.get(), 0, std::filesystem::file_size(file),
      [&](const warc::Capture& one) {
        records.push_back({{"key", one.key},
                           {"mime", one.mime},
                           {"digest", one.digest},
                           {"file", file},
                           {"offset", one.offset},
                           {"length", one.length}});
        return true;
      },
      [](const warc::Damaged&) {});
  ReplaySource source(records, directory.path() / "requests");
  for (const auto& sent : all) {
    const auto answer = source.answer({{"method", "GET"}, {"url", url(sent)}});
    INFO(std::string(sent.name));
    CHECK(answer.has_value() == sent.found);
    if (answer) CHECK(answer->body == sent.body);
  }
}

TEST_CASE("an answer is the one that players of archives give") {
  const test::TempDir directory;
  const auto file = (directory.path() / "page.warc").string(), site = std::string("http://a.example/");
  struct Sent {
    const char *name, *head, *body;
  };
  const Sent all[] = {{"x?_=111&b=2", "200 OK", "stamped"},
                      {"x?t=111", "200 OK", "timed"},
                      {"code.js?v=1", "200 OK", "versioned"},
                      {"p?callback=jQuery1_2&_=3", "200 OK", "jQuery1_2({})"},
                      {"back", "302 Found\r\nLocation: /back", ""},
                      {"back", "200 OK", "there"},
                      {"film", "206 Partial Content\r\nContent-Range: bytes 4-5/6", "ef"},
                      {"film", "200 OK", "abcdef"},
                      {"piece", "206 Partial Content\r\nContent-Range: bytes 4-5/6", "ef"}};
  {
    std::ofstream records(file, std::ios::binary);
    for (const auto& sent : all) {
      const auto block = std::string("HTTP/1.1 ") + sent.head + "\r\n\r\n" + sent.body;
      records << "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: " << site << sent.name
              << "\r\nWARC-Date: 2026-01-31T23:59:59Z\r\nWARC-Record-ID: <urn:" << sent.name
              << ">\r\nContent-Type: application/http;msgtype=response\r\nContent-Length: " << block.size()
              << "\r\n\r\n"
              << block << "\r\n\r\n";
    }
  }
  Json records = Json::array();
  const base::Fd open(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  warc::each_capture(
      open.get(), 0, std::filesystem::file_size(file),
      [&](const warc::Capture& one) { return records.push_back(warc::replay_record(one, file)), true; },
      [](const warc::Damaged&) {});
  ReplaySource source(records, directory.path() / "requests");
  struct Row {
    const char *name, *range, *body;
  };
  const Row rows[] = {{"x?_=999&b=2", "", "stamped"}, {"x?_=999&b=3", "", nullptr},
                      {"x?t=999", "", nullptr},       {"code.js?v=2", "", "versioned"},
                      {"code.js", "", "versioned"},   {"p?callback=jQuery8_9&_=4", "", "jQuery8_9({})"},
                      {"back", "", "there"},          {"film", "bytes=1-2", "bc"},
                      {"film", "bytes=-2", "ef"},     {"film", "bytes=4-", "ef"},
                      {"film", "bytes=9-", "abcdef"}, {"film", "", "abcdef"},
                      {"piece", "bytes=4-5", "ef"}};
  for (const auto& row : rows) {
    INFO(std::string(row.name) << " " << row.range);
    const auto answer =
        source.answer({{"method", "GET"}, {"url", site + row.name}, {"headers", {{"Range", row.range}}}});
    REQUIRE(answer.has_value() == (row.body != nullptr));
    if (answer) CHECK(answer->body == row.body);
  }
}

TEST_CASE("chunks are taken as far as they can be read") {
  CHECK(without_chunks("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n") == "abcde");
  CHECK(without_chunks("5\r\nab") == "ab");
  CHECK(without_chunks("FFFFFFFFFFFFFFFF\r\nab") == "ab");
  CHECK(without_chunks("0\r\n\r\n").empty());
  CHECK(without_chunks("").empty());
  // Bodies that are no longer in chunks, under a header that says so.
  for (const char* plain : {"FFFFFFFFFFFFFFFFF\r\nab", "-1\r\nab", "3", "<!doctype html>", "face the\nmusic",
                            "abc\n<p>", "2\r\nabc\r\n0\r\n\r\n"}) {
    CAPTURE(plain);
    CHECK(without_chunks(plain) == plain);
  }
}

namespace {

// The texts of the blocks that count.
std::string chosen(const std::string& html, const char* select, const std::vector<const char*>& ignore = {}) {
  Choice choice;
  choice.name = "a choice";
  if (select != nullptr) choice.selected.emplace_back(select);
  for (const auto* one : ignore)
    choice.ignored.emplace_back(one);
  const Page page{"http://a.test/", "text/html; charset=utf-8", html, "wget"};
  return facts_of(page_blocks(page, {}, choice), choice).value("selected", "");
}

} // namespace

TEST_CASE("blocks say what a reader sees of forms, of words that are struck through, and of ways to get in touch") {
  const std::vector<std::pair<const char*, const char*>> table{
      {"<p>in <del>March</del> <s>May</s></p>", "in ~~March~~ ~~May~~"},
      {"<button disabled>Buy</button>", "⊘ Buy"},
      {"<label><input type=checkbox checked> Tested</label>", "☑ Tested"},
      {"<label><input type=RADIO disabled> No</label>", "⊘ ☐ No"},
      {"<select><option>Open<option selected>Done</select>", "Open ☑ Done"},
      {"<p>Meter <input value=4711><input type=submit value=Buy></p>", "Meter 4711 Buy"},
      {"<p>Token <input type=hidden value=1><input type=password value=2></p>", "Token"},
      {"<script><s></script><p>x</p>", "x"},
  };
  for (const auto& [html, text] : table)
    CHECK(chosen(std::string("<main>") + html + "</main>", "main") == text);
  const Page page{"http://a.test/", "text/html; charset=utf-8", "<a href='mailto:Bo@a.test'>Write</a>", "wget"};
  CHECK(page_blocks(page, {}).find("\"links\":[\"mailto:bo@a.test\"]") != std::string::npos);
}

TEST_CASE("selectors choose elements by their tags, names and places") {
  const std::string html = "<main id=m><h1 class='big red'>One</h1><ul class=list><li>Two <b class=x>bold</b></li>"
                           "<li><p>Three</p></li></ul></main><p role=note>Four</p><br>";
  CHECK(chosen(html, "#m h1") == "One");
  CHECK(chosen(html, ".red.big, [role=note]") == "One Four");
  CHECK(chosen(html, "ul.list > li") == "Two bold Three");
  CHECK(chosen(html, "main > li") == "");
  CHECK(chosen(html, "main li p") == "Three");
  CHECK(chosen(html, "li .x") == "bold");
  CHECK(chosen(html, "li", {"b"}) == "Two Three");
  CHECK(chosen(html, "*") == "One Two bold Three Four");
  for (const char* wrong : {"", "a:hover", "a >", "#", "a,,b", "[href=x]", "[role=x", "a + b", "> a"})
    CHECK_THROWS_AS(formats::Selector{wrong}, base::Error);
}

TEST_CASE("time to select grows with the size and no faster") {
  std::string html;
  for (int i = 0; i < 100'000; ++i)
    html += "<div class=a>";
  CHECK(chosen(html + "x", ".a .a .a .a .a .a .a .a .b") == "");
}

TEST_CASE("the first number of what is selected") {
  const auto number = [](const std::string& text) {
    Choice choice;
    choice.selected.emplace_back("p");
    return facts_of(R"({"text":")" + text + "\"}\n", choice).value("number", Json()).dump();
  };
  CHECK(number("1.299,00 €") == "1299.0");
  CHECK(number("$1,299.50") == "1299.5");
  CHECK(number("1.299 EUR") == "1299");
  CHECK(number("0.999") == "0.999");
  CHECK(number("12,5 %") == "12.5");
  CHECK(number("1 299 000") == "1299000");
  CHECK(number("2 of 99") == "2");
  CHECK(number("-007") == "-7");
  CHECK(number("none") == "null");
  CHECK(number("1.2.3.4") == "1234");
}
