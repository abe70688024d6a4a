#include "lib/base/text/encoding.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/redact.hpp"
#include "lib/warc/writer.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

using namespace holdfast::warc;
using namespace std::string_literals;

namespace {

std::string redacted(const Redactor& redactor, std::string text) {
  const auto size = text.size();
  redactor.apply(text);
  CHECK(text.size() == size);
  return text;
}

} // namespace

TEST_CASE("redaction: a secret in each form becomes a marker of its length and kind") {
  Redactor redactor;
  redactor.add("p\xC3\xA4ss+w\"rd/42&<");
  const std::pair<const char*, const char*> forms[] = {
      {"[p\xC3\xA4ss+w\"rd/42&<]", "[xxxxx+x\"xx/00&<]"},
      {"?q=p%C3%A4ss%2Bw%22rd%2F42%26%3C&a=1", "?q=xxxxxxxxxxxxxxxxxxxxx00xxxxxx&a=1"},
      {"?q=p%c3%a4ss%2bw%22rd/42%26%3c", "?q=xxxxxxxxxxxxxxxxxx/00xxxxxx"},
      {R"({"a":"p\u00e4ss+w\"rd\/42&\u003c"})", R"({"a":"xxxxxxxxx+xxxxxxx00&xxxxxx"})"},
      {"<b title='p\xC3\xA4ss+w&quot;rd/42&amp;&lt;'>", "<b title='xxxxx+xxxxxxxxx/00xxxxxxxxx'>"},
      {"p&#228;ss+w&#34;rd/42&#x26;&#x3c;", "xxxxxxxxx+xxxxxxxx/00xxxxxxxxxxxx"},
      {"p%25C3%25A4ss%252Bw%2522rd%252F42%2526%253C", ""}};
  for (const auto& [text, wanted] : forms) {
    const auto is = redacted(redactor, text);
    if (std::string_view(text).find("%25") == std::string_view::npos)
      CHECK(is == wanted);
    else
      CHECK(is.find("42") == std::string::npos);
  }
  CHECK(redacted(redactor, "p\xC3\xA4ss without the rest") == "p\xC3\xA4ss without the rest");
}

TEST_CASE("redaction: base64 at each place, parts of long secrets, across pieces") {
  Redactor redactor;
  redactor.add("hunter2-hunter2");
  for (const char* coded : {"aHVudGVyMi1odW50ZXIy", "YTpodW50ZXIyLWh1bnRlcjI=", "YWI6aHVudGVyMi1odW50ZXIy",
                            "YWJjOmh1bnRlcjItaHVudGVyMg=="}) {
    const auto is = redacted(redactor, std::string("Basic ") + coded);
    CHECK(is.find(std::string(coded).substr(8, 8)) == std::string::npos);
    CHECK(is.starts_with("Basic "));
  }
  std::string token;
  for (int i = 0; token.size() < 1000; ++i)
    token += std::to_string(i * 7919) + "aZ";
  redactor.add(token);
  const std::string text = std::string((1u << 20) - 100, '.') + token + std::string(3u << 20, '.') + token;
  std::string out;
  Redactor::Stream stream(redactor);
  const auto put = [&](std::string_view bytes) { out += bytes; };
  for (std::size_t at = 0; at < text.size(); at += 777)
    stream.add(std::string_view(text).substr(at, 777), put);
  stream.add("", put, true);
  CHECK(stream.found().any);
  CHECK(out.size() == text.size());
  CHECK(out.find("aZ") == std::string::npos);
}

TEST_CASE("redaction: every form of a secret, in every surrounding") {
  const std::string first = "Begin77x", second = "End88words";
  const std::string secret = first + " \xF0\x9F\x98\x80\xC3\xBC/+\"<" + second;
  Redactor redactor;
  redactor.add(secret);
  const auto utf16 = [](const std::string& ascii, bool little_end) {
    std::string units;
    for (const char letter : ascii)
      units += little_end ? std::string{letter, '\0'} : std::string{'\0', letter};
    return units;
  };
  const std::string middle16 = "\x20\x00\x3D\xD8\x00\xDE\xFC\x00/\x00+\x00\"\x00<\x00"s;
  std::string swapped = middle16;
  for (std::size_t at = 0; at < swapped.size(); at += 2)
    std::swap(swapped[at], swapped[at + 1]);
  std::vector<std::pair<std::string, std::string>> forms{
      {"as it is", secret},
      {"in percent codes", first + "%20%F0%9f%98%80%C3%BC%2F%2B%22%3C" + second},
      {"as a form has it", first + "+%F0%9F%98%80%C3%BC%2F%2B%22%3C" + second},
      {"in percent codes twice", first + "%2520%25F0%259F%2598%2580%25C3%25BC%252F%252B%2522%253C" + second},
      {"in JSON", first + R"( \ud83d\uDE00\u00fc\/+\"\u003c)" + second},
      {"in JSON that a JSON text has", first + R"( \\ud83d\\ude00\\u00fc\\/+\\\"\\u003c)" + second},
      {"in a script", first + R"(\x20\ud83d\ude00\xfc/+\x22\x3c)" + second},
      {"in a script of today", first + R"(\u{20}\u{1f600}\u{fc}/+\u{22}\u{3c})" + second},
      {"in hexadecimal digits", holdfast::base::hex(secret)},
      {"in HTML", first + "&#32;&#128512;&#xFC;/&#43;&quot;&lt;" + second},
      {"in UTF-16", utf16(first, true) + middle16 + utf16(second, true)},
      {"in UTF-16, big end first", utf16(first, false) + swapped + utf16(second, false)}};
  for (const std::string before : {"", "a", "ab"}) {
    forms.emplace_back("in base64 after " + before, holdfast::base::base64_encode(before + secret));
  }
  const auto each_byte = [&](const char* format) {
    std::string written;
    for (const unsigned char byte : secret) {
      std::array<char, 16> one{};
      std::snprintf(one.data(), one.size(), format, unsigned{byte});
      written += one.data();
    }
    return written;
  };
  for (const auto& [name, format] : {std::pair{"in octal digits", "\\%03o"},
                                     {"in hexadecimal escapes of bytes", "\\x%02x"},
                                     {"in quoted-printable", "=%02X"},
                                     {"in hexadecimal digits with blanks", "%02x "},
                                     {"in hexadecimal digits with colons", "%02X:"},
                                     {"in percent codes three times", "%%2525%02X"}})
    forms.emplace_back(name, each_byte(format));
  const auto tail = R"( \1f600 \fc /+\22 \00003c)";
  forms.emplace_back("in a style sheet", first + tail + second);
  forms.emplace_back("in HTML without semicolons", first + "&#0032&#128512&uuml/&plus;&#34&lt" + second);
  forms.emplace_back("in percent codes of scripts", first + "%u0020%ud83d%ude00%u00fc%2f%2b%22%3c" + second);
  forms.emplace_back("across tags", first + " \xF0\x9F\x98\x80\xC3\xBC<b></b>/+\"&lt;" + second);
  forms.emplace_back("in parts", first + " \" + '\xF0\x9F\x98\x80\xC3\xBC/+\"<" + second);
  forms.emplace_back("with soft hyphens", "Be\xC2\xADgin77x \xF0\x9F\x98\x80\xC3\xBC/+\"<" + second);
  using holdfast::base::base64_encode;
  forms.emplace_back("in base64 twice", base64_encode("a" + base64_encode(secret)));
  forms.emplace_back("in base64 of UTF-16", base64_encode(utf16(first, true) + middle16 + utf16(second, true)));
  for (const auto& [name, form] : forms)
    for (const auto& [before, after] : {std::pair{"", ""},
                                        {"<p>", "</p>"},
                                        {"{\"t\":\"", "\"}"},
                                        {"?t=", "&x=1"},
                                        {"Bearer ", "\r\n"},
                                        {"100% ", "%"}}) {
      CAPTURE(name);
      CAPTURE(before);
      const auto is = redacted(redactor, before + form + after);
      for (std::size_t at = 0; at + 12 <= form.size(); at += 6)
        if (form.find_first_of("%\\&", at) > at + 12) CHECK(is.find(form.substr(at, 12)) == std::string::npos);
      for (const auto& word : {first, second})
        CHECK(is.find(word) == std::string::npos);
      CHECK(is.starts_with(before));
    }
}

TEST_CASE("redaction: base32, other encodings, lines of mail; what is packed is unsure") {
  Redactor redactor;
  redactor.add("k1ttywak3Tok3nZ81xQvB2mW");
  redactor.add("K\xC3\xBCstenwache-4711");
  for (const std::string form :
       {"MFRGWMLUOR4XOYLLGNKG62ZTNZNDQMLYKF3EEMTNK4", "K\xFCstenwache-4711", "K%FCstenwache-4711"})
    CHECK(redacted(redactor, "[" + form + "]").find(form.substr(8, 10)) == std::string::npos);
  std::string mail =
      holdfast::base::base64_encode(std::string(70, '.') + "k1ttywak3Tok3nZ81xQvB2mW" + std::string(40, '.'));
  mail.insert(120, "\r\n");
  CHECK(redacted(redactor, mail) != mail);
  const std::string words =
      "Kittiwakes nest on narrow ledges; guillemots lay one egg. aHR0cDovL2V4YW1wbGU= \\61 =3D %41";
  CHECK(redacted(redactor, words) == words);
  const std::string plain = R"({"token":"k1ttywak3Tok3nZ81xQvB2mW"})";
  std::string packed(1000, '\0');
  auto size = static_cast<uLongf>(packed.size());
  REQUIRE(::compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(plain.data()),
                     static_cast<uLong>(plain.size())) == Z_OK);
  packed.resize(size);
  auto text = "stream\n" + packed;
  CHECK(redactor.apply(text).unsure);
  text = "state=" + holdfast::base::base64_encode(packed);
  CHECK(redactor.apply(text).unsure);
  text = "stream\n" + packed.substr(0, 4);
  CHECK_FALSE(redactor.apply(text).unsure);
}

TEST_CASE("redaction: a body in chunks or codings that several fields name") {
  const auto directory = std::filesystem::temp_directory_path() / ("redact-coded." + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  const auto from = directory / "a.warc", to = directory / "b.warc.gz";
  Redactor redactor;
  redactor.add("tok3n-tok3n-tok3n");
  for (const std::string fields :
       {"Transfer-Encoding: chunked", "Transfer-Encoding: identity\r\ntransfer-encoding: Chunked",
        "Content-Encoding: identity\r\nTRANSFER-ENCODING: identity, chunked"}) {
    const auto block = "HTTP/1.1 200 OK\r\n" + fields + "\r\n\r\n8\r\ntok3n-to\r\n9\r\nk3n-tok3n\r\n0\r\n\r\n";
    std::ofstream(from) << "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: https://press.example/\r\n"
                        << "WARC-Date: 2026-01-31T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:0>\r\n"
                        << "Content-Type: application/http; msgtype=response\r\nContent-Length: " << block.size()
                        << "\r\n\r\n"
                        << block << "\r\n\r\n";
    const int in = ::open(from.c_str(), O_RDONLY), out = ::open(to.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    learn_secrets(in, std::filesystem::file_size(from), redactor);
    redact(in, std::filesystem::file_size(from), out, redactor);
    Reader reader(out, 0, std::filesystem::file_size(to));
    std::string all;
    while (const auto record = reader.next()) {
      std::string read(record->length, '\0');
      reader.read(read.data(), read.size());
      all += read;
      reader.finish();
    }
    CHECK(all.find("200 OK") != std::string::npos);
    CHECK_MESSAGE(all.find("k3n") == std::string::npos, all);
    ::close(in);
    ::close(out);
  }
  std::filesystem::remove_all(directory);
}

TEST_CASE("redaction: fields of passwords are emptied, and what a page's URL has is no secret") {
  Redactor redactor;
  CHECK(redacted(redactor, "<input name=p TYPE='password' value=\"s3cret\"><input type=text value=kept>") ==
        "<input name=p TYPE='password' value=\"x0xxxx\"><input type=text value=kept>");
  redactor.add("article-0815-0815");
  redactor.except("https://press.example/article-0815-0815.html");
  CHECK(redactor.empty() == false); // its base64
  CHECK(redacted(redactor, "article-0815-0815") == "article-0815-0815");
}

TEST_CASE("a short or ordinary word is replaced where secrets stand, and never in running text") {
  for (const char* secret : {"buoy", "harbour", "sea-mark", "sea mark", "gr\xC3\xBCn", "b4oy"}) {
    CAPTURE(secret);
    const std::string word = secret;
    Redactor redactor;
    redactor.add(word);
    CHECK_FALSE(redactor.empty());
    auto page = "<p>Two " + word + "s, one " + word + ". <a href='/" + word + "'>" + word + "</a></p>";
    const auto before = page;
    CHECK_FALSE(redactor.apply(page).any);
    CHECK(page == before);
    auto answer = R"({"user":"pilot","password":")" + word + R"(","words":[")" + word + R"("]})";
    CHECK(redactor.apply(answer).any);
    CHECK(answer.find(word) == answer.rfind(word));
    auto head = "GET /?key=" + word + " HTTP/1.1\r\nX-Key: " + word + "\r\n";
    CHECK(redactor.apply(head, true).any);
    CHECK(head.find(word) == std::string::npos);
  }
}

TEST_CASE("redaction: a WARC keeps its lengths and gets new digests") {
  const auto directory = std::filesystem::temp_directory_path() / ("redact." + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  const auto from = directory / "a.warc.gz", to = directory / "b.warc.gz";
  Spool body;
  body.add("<p>your token is tok3n-tok3n-tok3n, session NEW-cookie-0001</p>");
  Exchange exchange;
  exchange.url = "https://press.example/?t=tok3n-tok3n-tok3n";
  exchange.date = "2026-01-31T00:00:00Z";
  exchange.method = "POST";
  exchange.request_headers = {{"Cookie", "sid=NEW-cookie-0001"}, {"Accept", "*/*"}};
  exchange.request_body = "user=me&password=hunter2%21&x=1";
  exchange.status = 200;
  exchange.response_headers = {{"Content-Length", "60"}, {"Set-Cookie", "sid=NEW-cookie-0001; HttpOnly"}};
  {
    Writer writer(from.string(), {{"date", exchange.date}});
    writer.add(exchange, body);
    writer.add(exchange, body); // a revisit
    writer.close();
  }
  Redactor redactor;
  redactor.add("tok3n-tok3n-tok3n");
  const int in = ::open(from.c_str(), O_RDONLY), out = ::open(to.c_str(), O_RDWR | O_CREAT, 0600);
  learn_secrets(in, std::filesystem::file_size(from), redactor);
  redact(in, std::filesystem::file_size(from), out, redactor);
  std::string all, payload;
  Reader reader(out, 0, std::filesystem::file_size(to));
  int records = 0;
  while (const auto record = reader.next()) {
    std::string block(record->length, '\0');
    CHECK(reader.read(block.data(), block.size()) == block.size());
    for (const auto& [name, value] : record->headers)
      all += name + ": " + value + "\n";
    all += block + "\n";
    const auto digest = header_of(record->headers, "warc-payload-digest");
    if (record->type == "response") {
      Digest body_digest;
      body_digest.add(std::string_view(block).substr(block.find("\r\n\r\n") + 4));
      payload = body_digest.finish();
    }
    if (record->type == "response" || record->type == "revisit") CHECK(digest == payload);
    reader.finish();
    ++records;
  }
  CHECK(records == 5);
  for (const char* secret : {"tok3n", "NEW-cookie", "hunter2", "Cookie: sid=N"})
    CHECK(all.find(secret) == std::string::npos);
  for (const char* kept :
       {"xxx0x-xxx0x-xxx0x", "Set-Cookie: sid=xxx-xxxxxx-0000; HttpOnly", "user=me&password=xxxxxx0xxx&x=1",
        "WARC-Target-URI: https://press.example/?t=xxx0x-xxx0x-xxx0x"})
    CHECK_MESSAGE(all.find(kept) != std::string::npos, all);
  ::close(in);
  ::close(out);
  std::filesystem::remove_all(directory);
}
