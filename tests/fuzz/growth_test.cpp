// Each reader of untrusted input takes time in proportion to its input, whatever that is made of. Every reader gets
// every shape of input: what is made to slow down one may slow down another. A ratio of CPU times counts, not a time.
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/facts.hpp"
#include "lib/base/text/json.hpp"
#include "lib/change/compare.hpp"
#include "lib/change/reuse.hpp"
#include "lib/formats/saved_page.hpp"
#include "lib/persona/state.hpp"
#include "lib/robots/robots.hpp"
#include "lib/warc/method_query.hpp"
#include "lib/warc/redact.hpp"
#include "lib/warc/redactor.hpp"
#include "lib/warc/split.hpp"
#include "lib/warc/surt.hpp"
#include "services/capture/extract/blocks.hpp"
#include "services/capture/extract/links.hpp"
#include "services/serve/http_message.hpp"
#include "tests/fuzz/targets.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

using namespace holdfast;

namespace {

// `begin`, then `one` as often as it takes for half of the size, `two` for the other half, and `end`.
struct Made {
  std::string_view begin, one, two{}, end{};
};

constexpr Made kShapes[] = {
    // Markup.
    {"", "<a "},
    {"", "<a b='"},
    {"", "<!--"},
    {"", "</"},
    {"", "&amp"},
    {"", "<div>", "</div>"},
    {"", "<div>", "</nav></p>"},
    {"<title>", "<title>"},
    {"<svg>", "<svg>", "</"},
    {"<table><tr>", "<td>", "<tr>"},
    {"<a href='x'>", "<b>x", "</b>"},
    {"<base href='http://a.test/", "a/", "", "'>"},
    {"<base href='http://a.test/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/'>", "<a href=b>c</a>"},
    {"<html>", "<base href=a/>", "<a href=b>c</a>"},
    {"<x", "x", " a=b", ">"},
    {"<!DOCTYPE NETSCAPE-Bookmark-file-1>", "<DL><H3>f</H3>", "<A HREF=https://a.test/>A</A>"},
    {"<!DOCTYPE NETSCAPE-Bookmark-file-1><A HREF=https://a.test/ TAGS='", "a,", "b,", "'>A</A>"},
    {"", "<input type=password value=", "x "},
    {"", "<input ", "type "},
    {"<style>", "url(", "@import "},
    {"<iframe srcdoc=\"", "<iframe srcdoc='", "x", "\">"},
    {"<p>", "word ", "other "},
    {"<p>", "<a href=b>c</a> ", "<br>"},
    {"<script type=json>", "{\"token\":", "1"},
    {"<meta http-equiv=refresh content=\"", "0;", "url=", "\">"},
    // XML.
    {"<xbel><folder>", "<bookmark href=\"http://a.test/\"/>", "", "</folder></xbel>"},
    {"<xbel>", "<folder><title>f</title>", "<bookmark href='http://a.test/'>"},
    {"<opml><outline ", "a='' ", "b='' ", "><outline url='http://a.test/'/></outline></opml>"},
    {"<rss>", "<item><title>", "x"},
    {"<rss><item>", "<link>http://a.test/</link>", "<category>a</category>", "</item></rss>"},
    {"<rss><item><title>", "<b>", "</b>", "</title></item></rss>"},
    {"<?xml version='1.0'?>", "<![CDATA[", "]]>"},
    {"<urlset>", "<url><loc>http://a.test/</loc></url>", "", "</urlset>"},
    // Tables, lists, JSON.
    {"url,tags\nhttp://a.test/,", "a;", "b|"},
    {"url,a\n", " ", "\" "},
    {"url,a\n", "\"", "\"\""},
    {"", "http://a.test/,b\n", "c,http://b.test/\n"},
    {"", "http://a.test/ "},
    {"", "http://a.test/(", ")"},
    {"http://a.test/", "[a", "]"},
    {"", "](<http://"},
    {"", "https://a[.]b "},
    {"http://a.test/", "%25", "%"},
    {"http://a.test/%", "25"},
    {"http://a.test/?", "sid=", "&"},
    {"http://a.test/?", "&cftoken=", "cfid="},
    {"http://a.test/", "../", "a/"},
    {"", "[", "]"},
    {"", "{\"a\":", "1"},
    {"[", "[],", "{},", "1]"},
    {"[{\"url\":\"http://a.test/\",\"tags\":[", "\"a\",", "\"b\",", "1]}]"},
    {"[", "{\"children\":[", "{\"url\":\"http://a.test/\"},"},
    {"{\"cookies\":[", "{\"name\":\"a\",\"value\":\"b\",\"domain\":\"a.test\"},", "", "1]}"},
    {"", "\"\\ud83d", "\\u0000"},
    {"", "1 ", "{} "},
    // Messages and heads.
    {"Content-Transfer-Encoding: base64\n\n", "YQ==\n", "=\n"},
    {"", "Content-Transfer-Encoding: base64\n\n", "--x\n"},
    {"From: x\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n", "--x\n",
     "Content-Type: text/html\n\n<a href=b>\n"},
    {"From: x\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n--x\nContent-Type: text/html\n\n",
     "<base href=a/>", "<a href=b>"},
    {"From: x\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n--x\n", "a: b\n", " c\n"},
    {"BEGIN:VCARD\n", " \n ", "\r"},
    {"GET / HTTP/1.1\r\n", "a: b\r\n", " c\r\n"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n"},
    {"/?", "a=b&", "%41+"},
    {"User-agent: *\n", "Disallow: /*a*b\n", "Allow: /\n"},
    {"User-agent: *\nDisallow: ", "*a", "%41"},
    {"# Netscape HTTP Cookie File\n", "a.test\tFALSE\t/\tFALSE\t0\ta\tb\n"},
    {"WARC/1.0\r\nContent-Length: 4\r\n\r\n", "\r\n", "W"},
    {"", "WARC/1.0\r\nContent-Length: 99999999\r\n\r\n"},
    {"", "\x1f\x8b\x08", "WARC/"},
    // Secrets, escapes, records of hooks.
    {"", "token=", "password:"},
    {"token ", "= ", "\" "},
    {"", "x\x9c", "PK\3\4"},
    {"", "\\u0041", "&#65;"},
    {"", "'+ '", "\\x41"},
    {"", "<b>", "%u0041"},
    {"", "QUJD", "4142 "},
    {"", "\x1b]", "\x1b["},
    {"", "\xff", "\xC2\xAD"},
    {"", "{\"type\":\"Tag\",\"name\":\"a\"}\n", "{\"type\":\"Snapshot\",\"url\":\"http://a.test/\"}\n"},
    {"{\"type\":\"Facts\",\"a\":\"", "\\u001b", "\\n", "\"}"},
    {"a: ", "&a *a ", "- "},
    {"", "{a: ", "[a, "},
};

std::string input_of(const Made& made, std::size_t size) {
  std::string input(made.begin);
  const auto half = made.two.empty() ? size : size / 2;
  while (input.size() < half)
    input += made.one;
  while (input.size() < size)
    input += made.two;
  return input += made.end;
}

// Records that claim to reach to the end of the file, where something else stands.
std::string overlapping_records(std::size_t size) {
  const std::string head = "WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: ";
  std::string input;
  while (input.size() + 100 < size)
    input += head + std::to_string(1'000'000'000 + size - input.size() - head.size() - 14).substr(1) + "\r\n\r\n";
  return input + std::string(size - input.size(), 'x');
}
// An element with a long name, or with many attributes, around many others.
std::string elements_in_one(std::size_t size, const std::string& name) {
  std::string input = "<opml><" + name + ">";
  while (input.size() < size)
    input += "<outline url='http://a.test/'/>";
  return input + "</" + name.substr(0, name.find(' ')) + "></opml>";
}
std::string long_base(std::size_t size) {
  std::string input = "<html><base href='http://a.test/" + std::string(size / 2, 'a') + "/'>";
  while (input.size() < size)
    input += "<a href=b>c</a>";
  return input;
}

struct Shape {
  std::string name;
  std::function<std::string(std::size_t)> make;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const auto& made : kShapes)
    all.push_back({std::string(made.begin) + "|" + std::string(made.one) + "|" + std::string(made.two),
                   [&made](std::size_t size) { return input_of(made, size); }});
  all.push_back({"records over others", &overlapping_records});
  all.push_back({"in a long name", [](auto size) { return elements_in_one(size, std::string(size / 2, 'a')); }});
  all.push_back({"in many attributes", [](auto size) {
                   std::string name = "outline";
                   while (name.size() < size / 2)
                     name += " a=''";
                   return elements_in_one(size, name);
                 }});
  all.push_back({"a long base", &long_base});
  return all;
}

struct Reader {
  std::string name;
  std::function<void(std::string_view)> read;
};

const std::string kUrl = "http://a.test/";

void redact(std::string_view input) {
  warc::Redactor redactor;
  redactor.add("hunter2");
  redactor.add("Correct-Horse-99-battery-staple");
  std::string text(input.substr(0, 64 << 10)); // the readings of a text have a bound of their own
  redactor.apply(text);
  text = input;
  const std::set<std::string> only{"hunter2"};
  warc::mark_named(text, &only);
  warc::mark_named(text, nullptr);
}

std::vector<Reader> readers() {
  std::vector<Reader> all;
  for (const auto& target : fuzz::targets())
    all.push_back({std::string(target.name), target.run});
  const auto add = [&](const char* name, std::function<void(std::string_view)> read) {
    all.push_back({name, std::move(read)});
  };
  add("redact", &redact);
  add("reuse", [](std::string_view input) {
    change::Reuse reuse;
    change::look_at(reuse, input, false);
  });
  add("key", [](std::string_view input) {
    (void)warc::url_key(input);
    for (const char* type : {"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"})
      (void)warc::request_key(kUrl, "POST", type, input);
  });
  add("learn", [](std::string_view input) {
    for (const std::string type : {"application/json", "text/html"}) {
      const auto block = "HTTP/1.1 200 OK\r\nContent-Type: " + type + "\r\n\r\n" + std::string(input);
      const auto file = "WARC/1.1\r\nWARC-Type: response\r\nContent-Length: " + std::to_string(block.size()) +
                        "\r\n\r\n" + block + "\r\n\r\n";
      const base::Fd opened(::memfd_create("growth", MFD_CLOEXEC));
      REQUIRE(base::write_all(opened.get(), file));
      warc::Redactor redactor;
      warc::learn_secrets(opened.get(), file.size(), redactor);
    }
  });
  add("saved page", [](std::string_view input) { (void)formats::still_page(formats::read_saved_page(input)); });
  add("saved document", [](std::string_view input) {
    (void)formats::still_page({kUrl, "", {{kUrl, "", "text/html", std::string(input)}}, ""});
    (void)formats::with_records(input, kUrl);
  });
  add("page", [](std::string_view input) {
    for (const char* type : {"text/html", "text/xml", "text/plain", "application/json"}) {
      const capture::Page page{kUrl, type, std::string(input), "fetch"};
      capture::find_links(page, [](const auto&) { return true; });
      (void)capture::page_blocks(page, {}, {});
    }
  });
  add("browser state", [](std::string_view input) {
    std::vector<std::string> left_out;
    for (const auto& read : {&persona::State::parse, &persona::parse_cookies_txt})
      try {
        (void)read(input, "here", left_out);
      } catch (const base::Error&) { // not in this format
      }
  });
  add("form", [](std::string_view input) {
    serve::Form form;
    (void)serve::read_form(input, form);
    (void)serve::names_tag(input, "\"a\"");
    (void)base::read_facts(base::strange_json(input));
  });
  return all;
}

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Something whose cost counts: `prepare` makes an input of a size, and returns what is to be done with it.
struct Work {
  std::string name;
  std::function<std::function<void()>(std::size_t)> prepare;
};

double cost(const Work& work, std::size_t size) {
  const auto run = work.prepare(size);
  const auto begin = cpu_seconds();
  try {
    run();
  } catch (const base::Error&) { // refused
  }
  return cpu_seconds() - begin;
}

// Returns how much more time four times the input takes. At more than kSuspicious, larger inputs tell.
double growth(const Work& work) {
  constexpr std::size_t kLeast = 8 << 10, kMost = 32 << 10, kLargest = 512 << 10;
  constexpr double kMeasurable = 0.003, kEnough = 0.5, kSuspicious = 5;
  std::vector<double> costs;
  double ratio = 0;
  for (auto size = kLeast; size <= (ratio > kSuspicious ? kLargest : kMost); size *= 2) {
    costs.push_back(cost(work, size));
    if (costs.size() > 2) ratio = costs.back() / costs[costs.size() - 3];
    if (costs.back() < kMeasurable) ratio = 0;
    if (costs.back() > kEnough && costs.size() > 2) break;
  }
  return ratio;
}

void check_growth(const Work& work) {
  constexpr double kMost = 8; // linear: 4; quadratic: 16
  double least = kMost + 1;
  for (int tries = 0; tries < 3 && least > kMost; ++tries) // the machine may be busy
    least = std::min(least, growth(work));
  CHECK_MESSAGE(least <= kMost, work.name, ": four times the size takes ", least, " times as long");
}

// A WARC file of captures of one URL, each of another second, and a list of pages of the same.
std::function<void()> one_url(std::size_t size, const std::string& prefix) {
  std::string file;
  std::vector<std::string> dates;
  while (file.size() < 8 * size) {
    const auto at = dates.size();
    const auto two = [](std::size_t number) { return std::to_string(100 + number % 60).substr(1); };
    dates.push_back("2026-01-" + std::to_string(10 + at / 3600 % 20) + "T10:" + two(at / 60) + ":" + two(at) + "Z");
    file += "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: " + prefix + kUrl + "\r\nWARC-Date: " + dates.back() +
            "\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
  }
  return [file, dates] {
    const base::Fd opened(::memfd_create("growth", MFD_CLOEXEC));
    REQUIRE(base::write_all(opened.get(), file));
    warc::Splitter splitter;
    for (const auto& date : dates)
      REQUIRE(splitter.add_page(kUrl, date, ""));
    splitter.add_file(opened.get(), 0, file.size(), [](const auto& damage) { FAIL(damage.what()); });
    splitter.finish();
  };
}

// Rules of a part that the target has at every place but for its end.
std::function<void()> stars(std::size_t size) {
  std::string text = "User-agent: *\n";
  for (int i = 0; i < 20; ++i)
    text += "Disallow: /*" + std::string(size / 20, 'a') + "b*" + std::to_string(i) + "\n";
  return [text, target = "/" + std::string(size, 'a')] { (void)robots::forbidding_rule(robots::parse(text), target); };
}

// A page of blocks and pictures in one place each, of random words and colours.
change::Shape shape_of(std::size_t count, std::uint32_t seed) {
  change::Shape shape;
  shape.source = "browser";
  shape.area = 1e6;
  const auto random = [&] { return (seed = seed * 1664525 + 1013904223) >> 8 << 3; };
  for (std::size_t i = 0; i < count; ++i) {
    change::Unit unit{change::place_of("li"), {}};
    for (int word = 0; word < 10; ++word)
      unit.words.push_back(8 + random());
    shape.text.push_back(std::move(unit));
    shape.pictures.push_back({change::place_of("img"), 0, std::string(68, static_cast<char>(random() >> 8)), 100});
  }
  return shape;
}

} // namespace

TEST_CASE("time to read grows with the size and no faster") {
  const auto all = shapes();
  for (const auto& reader : readers())
    for (const auto& shape : all)
      check_growth({reader.name + ", " + shape.name,
                    [&](std::size_t size) { return [&reader, input = shape.make(size)] { reader.read(input); }; }});
}

TEST_CASE("time for many pages of one URL and for rules with stars grows with their size and no faster") {
  check_growth({"captures of one URL", [](auto size) { return one_url(size, ""); }});
  check_growth({"screenshots of one URL", [](auto size) { return one_url(size, "urn:view:"); }});
  check_growth({"parts of robots.txt", &stars});
}

TEST_CASE("time to compare two captures grows with their size and no faster") {
  const auto compare = [](const change::Shape& (*part)(change::Shape&)) {
    return [part](std::size_t size) {
      std::vector<change::Shape> captures;
      for (std::uint32_t seed = 1; seed < 4; ++seed) {
        auto shape = shape_of(size / 8, seed);
        captures.push_back(part(shape));
      }
      return [captures] {
        change::Fingerprint last{captures[0], {}, "page"};
        for (const auto& now : captures)
          last = change::compare(last, now, !last.mask.learnt).next;
      };
    };
  };
  check_growth({"blocks of a place, all other ones", compare([](change::Shape& shape) -> const change::Shape& {
                  shape.pictures.clear();
                  return shape;
                })});
  check_growth({"pictures of a place, all other ones", compare([](change::Shape& shape) -> const change::Shape& {
                  shape.text.resize(1);
                  return shape;
                })});
}
