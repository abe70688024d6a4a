#include "lib/base/text/text.hpp"
#include "lib/hooks/record.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <random>

using namespace holdfast::hooks;
using holdfast::base::Facts;

namespace {

std::vector<Record> read_all(std::string_view text, RecordSource source = RecordSource::standard_output) {
  RecordReader reader(source);
  auto records = reader.feed(text);
  for (Record& record : reader.finish())
    records.push_back(std::move(record));
  return records;
}

template <typename T>
T only(std::string_view text, RecordSource source = RecordSource::standard_output) {
  auto records = read_all(text, source);
  REQUIRE(records.size() == 1);
  REQUIRE(std::holds_alternative<T>(records.front()));
  return std::get<T>(records.front());
}

} // namespace

TEST_SUITE("records") {
  TEST_CASE("statuses have several spellings and an unknown word is a failure") {
    CHECK(parse_status("succeeded") == Status::succeeded);
    CHECK(parse_status("success") == Status::succeeded);
    CHECK(parse_status("succeded") == Status::succeeded);
    CHECK(parse_status("skipped") == Status::skipped);
    CHECK(parse_status("noresult") == Status::noresults);
    CHECK(parse_status("noresults") == Status::noresults);
    CHECK(parse_status("failed") == Status::failed);
    CHECK(parse_status("great") == Status::failed);
    CHECK(parse_status("") == Status::failed);
    for (const Status status : {Status::succeeded, Status::failed, Status::skipped, Status::noresults}) {
      CHECK(parse_status(to_string(status)) == status);
    }
  }

  TEST_CASE("a result is read whole") {
    const auto record = only<ResultRecord>(
        R"({"type":"ArchiveResult","status":"success","output_str":"a\nb","output_json":{"n":[1]},"error":"x","extra":1})"
        "\n");
    CHECK(record.status == Status::succeeded);
    CHECK(record.output == "a b");
    CHECK(record.output_json == R"({"n":[1]})");
    CHECK(record.error == "x");
  }

  TEST_CASE("the oldest hooks call their text output") {
    CHECK(only<ResultRecord>(R"({"type":"ArchiveResult","status":"failed","output":"old"})").output == "old");
  }

  TEST_CASE("a result without a usable status is no record") {
    CHECK(read_all(R"({"type":"ArchiveResult"})").empty());
    CHECK(read_all(R"({"type":"ArchiveResult","status":null})").empty());
    CHECK(read_all(R"({"type":"ArchiveResult","status":3})").empty());
  }

  TEST_CASE("long texts are cut and long JSON is left out") {
    const std::string text(10000, 'x');
    const auto record =
        only<ResultRecord>(R"({"type":"ArchiveResult","status":"failed","output_str":")" + text + R"(","error":")" +
                           text + R"(","output_json":")" + std::string(70000, 'y') + "\"}");
    CHECK(record.output.size() <= 4096);
    CHECK(record.output.size() > 4000);
    CHECK(record.error.size() <= 4096);
    CHECK(record.output_json.empty());
  }

  TEST_CASE("a discovered URL carries its metadata") {
    const auto record =
        only<SnapshotRecord>(R"({"type":"Snapshot","url":" https://e.org/a ","title":"T","tags":"x, y,,x",)"
                             R"("bookmarked_at":"2024-01-01","plugin":"parse_html_urls","id":""})");
    CHECK(record.url == "https://e.org/a");
    CHECK(record.title == "T");
    CHECK(record.tags == std::vector<std::string>{"x", "y"});
    CHECK(record.bookmarked_at == "2024-01-01");
    CHECK(record.plugin == "parse_html_urls");
    CHECK(only<SnapshotRecord>(R"({"type":"Snapshot","url":"u","tags":["a",1,"b"]})").tags ==
          std::vector<std::string>{"a", "b"});
  }

  TEST_CASE("urls.jsonl needs no type and holds nothing but URLs") {
    CHECK(only<SnapshotRecord>(R"({"url":"https://e.org/"})", RecordSource::urls_file).url == "https://e.org/");
    CHECK(read_all(R"({"type":"ArchiveResult","status":"succeeded","url":"u"})", RecordSource::urls_file).empty());
    CHECK(read_all(R"({"url":"https://e.org/"})").empty());
  }

  TEST_CASE("tags, binaries and machine settings are read") {
    CHECK(only<TagRecord>(R"({"type":"Tag","name":"news"})").name == "news");
    const auto binary = only<BinaryRecord>(
        R"({"type":"Binary","name":"wget","abspath":"/usr/bin/wget","version":"1.21","sha256":"ab","binprovider":"apt"})");
    CHECK(binary.path == "/usr/bin/wget");
    CHECK(binary.provider == "apt");
    CHECK(only<BinaryRecord>(R"({"type":"BinaryRequest","name":"wget","binproviders":"env,apt"})").provider ==
          "env,apt");
    const auto machine = only<MachineRecord>(
        R"({"type":"Machine","config":{"WGET_BINARY":"/usr/bin/wget","X":true,"bad key":1,"N":null}})");
    REQUIRE(machine.config.size() == 2);
    CHECK(machine.config[0] == std::pair<std::string, std::string>{"WGET_BINARY", "/usr/bin/wget"});
    CHECK(machine.config[1] == std::pair<std::string, std::string>{"X", "True"});
    const auto update =
        only<MachineRecord>(R"({"type":"Machine","_method":"update","key":"config/A_BINARY","value":"/a"})");
    CHECK(update.config[0] == std::pair<std::string, std::string>{"A_BINARY", "/a"});
    CHECK(read_all(R"({"type":"Machine","_method":"unset","key":"A","value":"/a"})").empty());
  }

  TEST_CASE("a rate limit names its host, and its wait is bounded") {
    const auto record = only<RateLimitRecord>(R"({"type":"RateLimit","host":"E.org","status":429,"retry_after":"30"})");
    CHECK(record.host == "e.org");
    CHECK(record.status == 429);
    CHECK(record.retry_after_seconds == 30.0);
    CHECK(only<RateLimitRecord>(R"({"type":"RateLimit","host":"e","retry_after":1e300})").retry_after_seconds ==
          604800.0);
    CHECK_FALSE(only<RateLimitRecord>(R"({"type":"RateLimit","host":"e","retry_after":-1})").retry_after_seconds);
    const auto dated = [](const std::string& date) {
      return only<RateLimitRecord>(R"({"type":"RateLimit","host":"e","retry_after":")" + date + "\"}")
          .retry_after_seconds;
    };
    CHECK(dated("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0);
    CHECK(dated("Wed, 21 Oct 2105 07:28:00 GMT").value_or(0) == 7.0 * 24 * 3600); // a week at most
    CHECK(dated("Wednesday, 21-Oct-15 07:28:00 GMT") == 0.0);
    CHECK(dated("Wed Oct 21 07:28:00 2015") == 0.0);
    for (const auto* wrong : {"", "soon", "Wed, 21 Oct 2105 07:28:00 CET"}) {
      CAPTURE(wrong);
      CHECK_FALSE(dated(wrong));
    }
    CHECK(only<RateLimitRecord>(R"({"type":"RateLimit","host":"e","status":1e30})").status == 0);
    CHECK(read_all(R"({"type":"RateLimit","status":429})").empty());
  }

  TEST_CASE("a redirect names where it leads") {
    CHECK(only<RedirectRecord>(R"({"type":"Redirect","url":"a","location":"http://e.org/x","status":301})").location ==
          "http://e.org/x");
    CHECK(read_all(R"({"type":"Redirect","url":"http://e.org/","location":7})").empty());
    CHECK(read_all(R"({"type":"Redirect","url":"http://e.org/"})").empty());
  }

  TEST_CASE("an answer has a status, and a media type without parameters") {
    const auto answer = only<ResponseRecord>(R"({"type":"Response","status":404,"mime":"Text/HTML; charset=utf-8"})");
    CHECK(answer.status == 404);
    CHECK(answer.mime == "text/html");
    CHECK(only<ResponseRecord>(R"({"type":"Response","status":"200","mime":"image/svg+xml"})").mime == "image/svg+xml");
    for (const auto* wrong : {"", "text", "text/", "/html", "a/b/c", "te xt/html", "text/<b>", "text/ünicode"}) {
      CAPTURE(wrong);
      CHECK(only<ResponseRecord>(R"({"type":"Response","status":200,"mime":")" + std::string(wrong) + "\"}").mime ==
            "");
    }
    CHECK(read_all(R"({"type":"Response","mime":"text/html"})").empty());
    CHECK(read_all(R"({"type":"Response","status":0})").empty());
    CHECK(read_all(R"({"type":"Response","status":1e30})").empty());
  }

  TEST_CASE("what a record lacks is counted by reason") {
    const auto told = only<FactsRecord>(
        R"({"type":"Resources","count":14,"missing":{"refused":2,"net::ERR_FAILED":1,"none":0,"odd":"x","":3}})");
    CHECK(told.facts == Facts{{"resources", "14"},
                              {"resources_missing", "3"},
                              {"missing_reasons", R"({"net::ERR_FAILED":1,"refused":2})"}});
    for (const auto* poor : {R"({"type":"Resources"})", R"({"type":"Resources","count":-1,"missing":[]})"})
      CHECK(only<FactsRecord>(poor).facts ==
            Facts{{"resources", "0"}, {"resources_missing", "0"}, {"missing_reasons", "{}"}});
    auto more = only<FactsRecord>(R"({"type":"Resources","count":1,"missing":{"refused":1e30}})").facts;
    CHECK(more["resources"] == more["resources_missing"]); // never less than what is missing
  }

  TEST_CASE("facts are taken unread, as a whole or not at all") {
    const auto facts = only<FactsRecord>(R"({"type":"Facts","theme":"dark","cut":["load", 2.5],"pages":-3,"x":null})");
    CHECK(facts.facts == Facts{{"theme", R"("dark")"}, {"cut", R"(["load",2.5])"}, {"pages", "-3"}, {"x", "null"}});
    CHECK(only<FactsRecord>(R"({"type":"Facts","a":"\u0000\udce9"})").facts.at("a") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
    for (const std::string wrong : {R"({"type":"Facts"})", R"({"type":"Facts","Theme":1})", R"({"type":"Facts","":1})",
                                    R"({"type":"Facts","a":1e300})", R"({"type":"Facts","ok":1,"http_status":500})",
                                    R"({"type":"Facts","bytes_saved":9})", R"({"type":"Facts","unrecorded":{}})",
                                    R"({"type":"Facts","number":"9"})", R"({"type":"Facts","found":{}})",
                                    R"({"type":"Facts","files_from":"01a22080-9b2e-7db6-803b-5790f1baccff"})",
                                    R"({"type":"Facts","requests":0})", R"({"type":"Facts","resources":1})"}) {
      CAPTURE(wrong);
      RecordReader reader;
      CHECK(reader.feed(wrong + "\n").empty());
      CHECK(reader.unread().text() == "1 record that nothing reads (Facts)");
    }
    CHECK(read_all(R"({"type":"Facts","a":")" + std::string(9000, 'x') + "\"}").empty());
    const auto nested = [](std::size_t depth) { // index.jsonl has it within other values, and is read again
      return R"({"type":"Facts","a":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
    };
    CHECK(read_all(nested(16)).size() == 1);
    CHECK(read_all(nested(17)).empty());
  }

  TEST_CASE("facts are bounded in number and size") {
    Facts facts;
    for (int i = 0; i < 100; ++i)
      holdfast::base::merge_facts(facts, {{"fact_" + std::to_string(i), std::to_string(i)}});
    CHECK(facts.size() == 64);
    holdfast::base::merge_facts(facts, {{"fact_1", "7"}});
    CHECK(facts["fact_1"] == "7");
    for (int i = 0; i < 64; ++i)
      holdfast::base::merge_facts(facts, {{"fact_" + std::to_string(i), std::string(8000, '1')}});
    std::size_t bytes = 0;
    for (const auto& [name, value] : facts)
      bytes += name.size() + value.size();
    CHECK(bytes > 50'000);
    CHECK(bytes <= 64 * 1024);
  }

  TEST_CASE("a page that cannot be had has a reason") {
    CHECK(only<UnreachableRecord>(R"({"type":"Unreachable","reason":"no\nanswer"})").reason == "no answer");
    CHECK(only<UnreachableRecord>(R"({"type":"Unreachable"})").reason == "the page cannot be fetched");
  }

  TEST_CASE("prose and other JSON are ignored; records that nothing reads are counted and named") {
    RecordReader reader;
    CHECK(reader
              .feed("Loading...\n{broken\n[1,2]\n\"text\"\n42\n{\"type\":\"Crawl\"}\n{\"type\":7}\n{}\n\n  \n"
                    "{\"type\":\"Snapshot\",\"url\":5}\n{\"type\":\"Snapshot\",\"url\":\"\"}\n{\"type\":\"Tag\","
                    "\"name\":[]}\n")
              .empty());
    CHECK(reader.unread().text() == "4 records that nothing reads (the first: Crawl)");
  }

  TEST_CASE("bytes that are not UTF-8 do not cost a hook its result") {
    CHECK(
        only<ResultRecord>("{\"type\":\"ArchiveResult\",\"status\":\"succeeded\",\"output_str\":\"caf\xE9\"}").output ==
        "caf\xEF\xBF\xBD");
  }

  TEST_CASE("escapes that a database refuses are replaced") {
    const auto record = only<ResultRecord>(
        R"({"type":"ArchiveResult","status":"succeeded","output_str":"a\udce9b","output_json":{"k\u0000":"\u0000 \\u0000 \ud83d\ude00"}})");
    CHECK(record.output == "a\xEF\xBF\xBD"
                           "b");
    CHECK(record.output_json.find("\\u0000") ==
          record.output_json.find("\\\\u0000") + 1); // only the escaped backslash is left
    CHECK(record.output_json.find("\xF0\x9F\x98\x80") != std::string::npos);
  }

  TEST_CASE("output is seen from its first byte on") {
    RecordReader reader;
    CHECK_FALSE(reader.saw_output());
    reader.feed("rea");
    CHECK(reader.saw_output());
  }

  TEST_CASE("a record may arrive byte by byte, and the last one without a newline") {
    const std::string text = "{\"type\":\"Tag\",\"name\":\"a\"}\r\n{\"type\":\"Tag\",\"name\":\"b\"}";
    RecordReader reader;
    std::size_t count = 0;
    for (const char letter : text)
      count += reader.feed({&letter, 1}).size();
    CHECK(count == 1);
    CHECK(reader.finish().size() == 1);
    CHECK(reader.finish().empty());
  }

  TEST_CASE("a line over 1 MiB is dropped, and the next one is read") {
    RecordReader reader;
    const std::string chunk(300'000, 'x');
    CHECK(reader.feed("{\"type\":\"Tag\",\"name\":\"").empty());
    for (int index = 0; index < 200; ++index)
      CHECK(reader.feed(chunk).empty());
    CHECK(reader.feed("\"}\n").empty());
    CHECK(reader.unread().text() == "1 line over a limit, not read");
    CHECK(reader.feed("{\"type\":\"Tag\",\"name\":\"a\"}\n").size() == 1);
    CHECK(reader.feed(std::string(2u << 20, 'y')).empty());
    CHECK(reader.finish().empty());
    CHECK(reader.unread().dropped == 2);
  }

  TEST_CASE("after 100,000 records the rest is only counted") {
    RecordReader reader;
    std::string lines;
    for (int index = 0; index < 1000; ++index)
      lines += "{\"type\":\"Tag\",\"name\":\"a\"}\n";
    std::size_t count = 0;
    for (int index = 0; index < 101; ++index)
      count += reader.feed(lines).size();
    CHECK(count == 100'000);
    CHECK(reader.unread().dropped == 1000);
  }

  TEST_CASE("deep nesting is refused before it can exhaust the stack") {
    const std::string deep = R"({"type":"ArchiveResult","status":"succeeded","output_json":)" +
                             std::string(300'000, '[') + std::string(300'000, ']') + "}";
    CHECK(read_all(deep).empty());
    CHECK(read_all(
              R"({"type":"Tag","name":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["})")
              .size() == 1);
  }

  TEST_CASE("random bytes and mutated records never break the reader") {
    std::mt19937 random(7);
    const std::vector<std::string> seeds{
        R"({"type":"ArchiveResult","status":"succeeded","output_str":"\u00e9\ud83d\ude00","output_json":{"a":[1,2.5e3,null]}})",
        R"({"type":"Snapshot","url":"https://e.org/?q=1","title":"t","tags":["a","b"]})",
        R"({"type":"Machine","config":{"A":"b","C":[1]}})",
        R"({"type":"RateLimit","host":"h","retry_after":3})",
        R"({"type":"Redirect","location":"https://e.org/"})",
        R"({"type":"Facts","a":[1,{"b":"\u00e9"}],"c":2.5})"};
    for (int round = 0; round < 20000; ++round) {
      std::string text;
      if (random() % 4 == 0) {
        text.resize(random() % 200);
        for (char& byte : text)
          byte = static_cast<char>(random());
      } else {
        text = seeds[random() % seeds.size()];
        for (unsigned change = random() % 4; change > 0; --change) {
          const std::size_t at = random() % text.size();
          switch (random() % 3) {
          case 0:
            text[at] = static_cast<char>(random());
            break;
          case 1:
            text.insert(at, 1, "{}[]\"\\,:u\n"[random() % 10]);
            break;
          default:
            text.erase(at, 1 + random() % 5);
          }
          if (text.empty()) text = "x";
        }
      }
      RecordReader reader;
      std::vector<Record> records;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = std::min<std::size_t>(1 + random() % 40, text.size() - at);
        for (Record& record : reader.feed(std::string_view(text).substr(at, size)))
          records.push_back(std::move(record));
        at += size;
      }
      for (Record& record : reader.finish())
        records.push_back(std::move(record));
      for (const Record& record : records) {
        if (const auto* result = std::get_if<ResultRecord>(&record)) {
          REQUIRE(holdfast::base::is_utf8(result->output));
          REQUIRE((result->output_json.empty() || nlohmann::json::accept(result->output_json)));
        } else if (const auto* snapshot = std::get_if<SnapshotRecord>(&record)) {
          REQUIRE(holdfast::base::is_utf8(snapshot->url));
          REQUIRE_FALSE(snapshot->url.empty());
        } else if (const auto* facts = std::get_if<FactsRecord>(&record)) {
          for (const auto& [name, value] : facts->facts)
            REQUIRE((nlohmann::json::accept(value) && holdfast::base::is_utf8(value)));
        }
      }
    }
  }

  TEST_CASE("discovered URLs are merged by their richest metadata") {
    DiscoveredUrls urls;
    urls.add({"https://a/", "", "", "dom", {"x"}});
    urls.add({"https://b/", "B", "", "", {}});
    urls.add({"https://a/", "A title", "2024", "html", {"y", "x"}});
    urls.add({"https://a/", "A", "2025", "", {}});
    REQUIRE(urls.records().size() == 2);
    const SnapshotRecord& first = urls.records()[0];
    CHECK(first.url == "https://a/");
    CHECK(first.title == "A title");
    CHECK(first.bookmarked_at == "2024");
    CHECK(first.plugin == "dom");
    CHECK(first.tags == std::vector<std::string>{"x", "y"});
    CHECK(urls.records()[1].title == "B");
  }
}
