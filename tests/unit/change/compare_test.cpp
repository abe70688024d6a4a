#include "lib/change/compare.hpp"
#include "lib/change/diff.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using namespace holdfast::change;

struct Line {
  const char* at;
  std::string text;
  std::string link{};
};
using Page = std::vector<Line>;

Shape shape_of(const Page& page, const std::string& title = "Page") {
  Shape shape;
  shape.source = "browser";
  shape.title = {{place_of("title"), words_of(title)}, {place_of("url"), words_of("http://example.org/")}};
  for (const auto& line : page) {
    if (!line.text.empty()) shape.text.push_back({place_of(line.at), words_of(line.text)});
    if (!line.link.empty()) shape.links.push_back({place_of(line.at), words_of(line.link)});
  }
  return shape;
}

// Lists the change of each page after the first; the first two follow each other at once.
std::vector<std::string> said(const std::vector<Page>& captures) {
  std::vector<std::string> kinds;
  Fingerprint last{shape_of(captures.front()), {}, "page"};
  for (std::size_t i = 1; i < captures.size(); ++i) {
    auto compared = compare(from_bytes(to_bytes(last)), shape_of(captures[i]), i == 1);
    kinds.push_back(compared.change.kind);
    last = std::move(compared.next);
  }
  return kinds;
}

Page article(const Page& more = {}) {
  Page page{{"main/p", "The harbour office repaired the wooden bridge near the market before the winter."},
            {"main/p", "A group of pupils counted two hundred letters with great care and without any help."},
            {"main/p", "The museum opened the reading room for the visitors after a long debate in spring."}};
  page.insert(page.end(), more.begin(), more.end());
  return page;
}
Page list(const std::vector<const char*>& items, const char* at) {
  Page page;
  for (const auto* item : items)
    page.push_back({at, item});
  return page;
}

using Kinds = std::vector<std::string>;

} // namespace

TEST_CASE("noise of each kind is learnt from the first recapture") {
  const std::vector<std::pair<std::string, std::vector<Page>>> table{
      {"a clock",
       {article({{"p", "It is 12:01:09"}}), article({{"p", "It is 12:01:17"}}), article({{"p", "It is 13:40:55"}})}},
      {"a date, across the end of a month",
       {article({{"p", "Sunday, 29 November 2026"}}), article({{"p", "Monday, 30 November 2026"}}),
        article({{"p", "Tuesday, 1 December 2026"}})}},
      {"a relative time with another unit",
       {article({{"p", "posted 5 minutes ago"}}), article({{"p", "posted 8 minutes ago"}}),
        article({{"p", "posted 2 hours ago"}})}},
      {"a copyright year",
       {article({{"footer/p", "© 2009–2026 The editors"}}), article({{"footer/p", "© 2009–2026 The editors"}}),
        article({{"footer/p", "© 2009–2027 The editors"}})}},
      {"a shuffled list",
       {list({"Ada", "Bo", "Cy", "Di"}, "ul/li"), list({"Di", "Cy", "Ada", "Bo"}, "ul/li"),
        list({"Bo", "Ada", "Di", "Cy"}, "ul/li")}},
      {"recommendations beside an article",
       {article(list({"One story", "Two tales", "Three songs"}, "aside/p")),
        article(list({"Nine lives", "Three songs", "Ten green bottles"}, "aside/p")),
        article(list({"Four winds", "Six feet", "One story", "Two tales"}, "aside/p"))}},
      {"other goods beside an article, with prices in the same words",
       {article(list({"Sponsored", "A lamp", "Only 13.99", "Three songs", "Only 61.99"}, "aside/p")),
        article(list({"Sponsored", "The mill", "Only 22.99", "Nine lives", "Only 29.99"}, "aside/p")),
        article(list({"Sponsored", "Six feet", "Only 33.99", "Four winds", "Only 13.99"}, "aside/p"))}},
      {"places where a word may be broken",
       {article({{"p", "The lighthouse keeper"}}), article({{"p", "The light\u00ADhouse keeper"}}),
        article({{"p", "The lighthouse\u200B keeper\uFEFF"}})}},
      {"a country that two captures share a number with",
       {article({{"p", "Hello, visitor from Peru! We deliver to Peru in 5 days. Your address is 192.0.2.50."}}),
        article({{"p", "Hello, visitor from Chile! We deliver to Chile in 5 days. Your address is 192.0.2.110."}}),
        article({{"p", "Hello, visitor from Cuba! We deliver to Cuba in 8 days. Your address is 192.0.2.13."}})}},
      {"numbers with the same beginning",
       {article({{"p", "17,356.72"}}), article({{"p", "17,855.05"}}), article({{"p", "-16,784.55"}})}},
      {"a clock whose minute two captures share",
       {article({{"p", "ただいま20時43分05秒です"}}), article({{"p", "ただいま20時43分52秒です"}}),
        article({{"p", "ただいま21時08分30秒です"}})}},
      {"digits of another script",
       {article({{"p", "آخر تحديث منذ ٣ دقائق في هذا المكان من المدينة"}}),
        article({{"p", "آخر تحديث منذ ٤ دقائق في هذا المكان من المدينة"}}),
        article({{"p", "آخر تحديث منذ ٩ دقائق في هذا المكان من المدينة"}})}},
      {"a table whose rows are shuffled",
       {list({"Ada", "7 €", "Bo", "9 €", "Cy", "12 €", "Di", "3 €"}, "tr/td"),
        list({"Di", "3 €", "Ada", "7 €", "Cy", "12 €", "Bo", "9 €"}, "tr/td"),
        list({"Bo", "9 €", "Cy", "12 €", "Di", "3 €", "Ada", "7 €"}, "tr/td")}},
      {"stories that are drawn, of which two captures share some",
       {article(list({"One story", "Two tales", "Three songs", "Nine lives", "Ten bottles"}, "li")),
        article(list({"Three songs", "One story", "Two tales", "Six feet", "Four winds"}, "li")),
        article(list({"Five rings", "One story", "Two tales", "Eight bells", "Three songs"}, "li"))}},
      {"a box that is there at some visits",
       {article(), article({{"div/h2", "Stay in touch"}, {"div/p", "Get our letter"}}), article()}},
  };
  for (const auto& [name, captures] : table) {
    CAPTURE(name);
    CHECK(said(captures) == Kinds(captures.size() - 1, "same"));
  }
}

TEST_CASE("a change is found beside learnt noise, and once") {
  const auto with = [](const std::string& clock, const Page& more) {
    auto page = article({{"header/p", "It is 12:01:" + clock}, {"aside/p", "About " + clock + "1 people online"}});
    page.insert(page.end(), more.begin(), more.end());
    return page;
  };
  const std::vector<std::pair<std::string, std::pair<Page, Page>>> table{
      {"a word", {{{"main/p", "The pool is closed"}}, {{"main/p", "The pool is open"}}}},
      {"a number", {{{"main/p", "In stock: 7"}}, {{"main/p", "In stock: 0"}}}},
      {"a mark", {{{"main/p", "✅ Mail"}}, {{"main/p", "❌ Mail"}}}},
      {"stars", {{{"main/p", "Rated ★★★"}}, {{"main/p", "Rated ★★☆"}}}},
      {"a currency", {{{"main/p", "From € 10"}}, {{"main/p", "From $ 10"}}}},
      {"a comparison", {{{"main/p", "Age ≤ 12"}}, {{"main/p", "Age ≥ 12"}}}},
      {"a language", {{{"main/p", "Written in C"}}, {{"main/p", "Written in C++"}}}},
      {"a new block", {{}, {{"main/p", "Visitors must book a ticket"}}}},
      {"a block less", {{{"main/p", "Visitors must book a ticket"}}, {}}},
      {"a word in a block with noise",
       {{{"footer/p", "© 2026 Northwind Ltd. Page 5f3a"}}, {{"footer/p", "© 2026 Southwind Ltd. Page 5f3a"}}}},
  };
  for (const auto& [name, editions] : table) {
    CAPTURE(name);
    CHECK(said({with("09", editions.first), with("17", editions.first), with("31", editions.second),
                with("44", editions.second)}) == Kinds{"same", "text", "same"});
  }
}

TEST_CASE("a change in the place of noise is found, and noise that begins later ends") {
  const auto item = [](const char* hits, const char* said) {
    return article({{"div", said}, {"div", std::string(hits) + " Aufrufe"}});
  };
  const auto row = [](const std::string& count) {
    return Page{{"li", "港の木橋 投稿" + count + "分前"},
                {"li", "図書館 投稿9" + count + "分前"},
                {"li", "時計塔 投稿1" + count + "分前"}};
  };
  const auto with_row = [&](const std::string& count) {
    auto page = row(count);
    page.insert(page.begin(), {"li", "りんごの木 投稿3" + count + "分前"});
    return page;
  };
  const auto ad = [](const Page& more) { return article(more); };
  const std::vector<std::pair<std::vector<Page>, Kinds>> table{
      {{item("12.345", "Preis: 10,00 €"), item("98.111", "Preis: 10,00 €"), item("7.115", "Preis: 12,00 €"),
        item("55.200", "Preis: 12,00 €")},
       {"same", "text", "same"}},
      {{ad({{"div", "Now a lamp"}, {"div", "The lift is closed today"}}),
        ad({{"div", "Great winter sale"}, {"div", "The lift is closed today"}}),
        ad({{"div", "Free delivery"}, {"div", "The lift is open today"}}),
        ad({{"div", "Two for one"}, {"div", "The lift is open today"}})},
       {"same", "text", "same"}},
      {{list({"Ada Meier", "Bo Meier", "Cy Meier", "Di Meier"}, "li"),
        list({"Cy Meier", "Ada Meier", "Di Meier", "Bo Meier"}, "li"),
        list({"Di Meier", "Bo Meier", "Zoe Meier", "Cy Meier", "Ada Meier"}, "li")},
       {"same", "text"}},
      {{row("2"), row("7"), with_row("4"), with_row("8")}, {"same", "text", "same"}},
      {{article({{"p", "営業状態は営業中、閲覧12回"}}), article({{"p", "営業状態は営業中、閲覧97回"}}),
        article({{"p", "営業状態は休業中、閲覧44回"}}), article({{"p", "営業状態は休業中、閲覧71回"}})},
       {"same", "text", "same"}},
  };
  for (const auto& [captures, kinds] : table) {
    CAPTURE(captures.back().back().text);
    CHECK(said(captures) == kinds);
  }
}

TEST_CASE("captures that follow each other at once learn noise earlier, and a chosen part never by itself") {
  const std::vector<std::string> texts{"Sent to Peru", "Sent to Chile", "Sent to Cuba", "Sent to Fiji", "Sent to Mali"};
  for (const auto& [at_once, chosen, kinds] :
       std::vector<std::tuple<bool, bool, Kinds>>{{true, false, {"text", "same", "same", "same"}},
                                                  {false, false, {"text", "text", "same", "same"}},
                                                  {true, true, {"text", "text", "text", "text"}}}) {
    Fingerprint last{shape_of({{"p", texts[0]}}), {}, "page"};
    last.mask.learnt = true;
    Kinds said;
    for (std::size_t i = 1; i < texts.size(); ++i) {
      auto now = shape_of({{"p", texts[i]}});
      if (chosen) now.choice = "p";
      auto compared = compare(last, std::move(now), at_once);
      said.push_back(compared.change.kind);
      last = std::move(compared.next);
    }
    CHECK(said == kinds);
  }
}

TEST_CASE("a word of the title beside a counter counts") {
  Fingerprint last{shape_of(article(), "(3) Draft of the council"), {}, "page"};
  Kinds said;
  for (const auto* title :
       {"(7) Draft of the council", "(12) Decision of the council", "(1) Decision of the council"}) {
    auto compared = compare(last, shape_of(article(), title), said.empty());
    said.push_back(compared.change.kind);
    last = std::move(compared.next);
  }
  CHECK(said == Kinds{"same", "title", "same"});
}

TEST_CASE("links in another order are the same") {
  const auto page = [](const std::vector<const char*>& tags) {
    Page links;
    for (const auto* tag : tags)
      links.push_back({"aside/p", "", std::string("http://example.org/all/about/the/tag/") + tag});
    return article(links);
  };
  CHECK(said({page({"ada", "bo", "cy", "di"}), page({"cy", "ada", "di", "bo"}), page({"di", "cy", "bo", "ada"}),
              page({"di", "cy", "bo", "eve"})}) == Kinds{"same", "same", "links"});
  CHECK(said({page({"qzx"}), page({"wvk"}), page({"krm"})}) == Kinds{"same", "same"}); // tokens, however long the rest
}

TEST_CASE("pictures: what is drawn by lot is noise, a badge on a large one is a change") {
  const auto shape = [](const std::vector<std::pair<std::string, std::string>>& pictures, double area = 120'000) {
    auto page = shape_of(article());
    page.area = 1e6;
    for (const auto& [source, cells] : pictures)
      page.pictures.push_back({place_of("aside/img"), place_of("aside/img " + source), cells, area});
    return page;
  };
  const auto plain = [](char grey) { return std::string(67, grey); };
  const auto compared = [&](const std::vector<Shape>& captures) {
    Fingerprint last{captures.front(), {}, "page"};
    for (std::size_t i = 1; i + 1 < captures.size(); ++i)
      last = compare(last, captures[i], i == 1).next;
    return compare(last, captures.back(), false).change.kind;
  };
  CHECK(compared({shape({{"a", plain('a')}, {"b", plain('b')}, {"c", plain('A')}, {"d", plain('B')}}),
                  shape({{"a", plain('a')}, {"e", plain('p')}, {"f", plain('!')}, {"g", plain('0')}}),
                  shape({{"h", plain('z')}, {"i", plain('1')}, {"b", plain('5')}, {"c", plain('C')}})}) == "same");
  auto badge = plain('P');
  badge[7] += 30;
  CHECK(compared({shape({{"a", plain('P')}}), shape({{"a", plain('P')}}), shape({{"a", badge}})}) == "look");
  CHECK(compared({shape({{"a", plain('P')}}, 900), shape({{"a", plain('P')}}, 900), shape({{"a", badge}}, 900)}) ==
        "same");
}

TEST_CASE("a link that changes under the same words is a change of links") {
  const Page one = article({{"main/p", "Download", "http://example.org/setup-1010.exe"}});
  const Page two = article({{"main/p", "Download", "http://example.org/setup-1011.exe"}});
  CHECK(said({one, one, two, two}) == Kinds{"same", "links", "same"});
}

TEST_CASE("an edit of a sentence is no noise, also at once") {
  auto page = article();
  page[1].text = "A group of pupils counted three hundred letters with great care and without any help.";
  CHECK(said({article(), page}) == Kinds{"text"});
}

TEST_CASE("a block in another place is a change, unless the order was learnt") {
  auto moved = article();
  std::swap(moved.front(), moved.back());
  CHECK(said({article(), article(), moved}) == Kinds{"same", "text"});
}

TEST_CASE("a page that is gone comes back") {
  const Fingerprint page{shape_of(article()), {}, "page"};
  const auto gone = compare_status(page, 410);
  CHECK(gone.change.kind == "gone");
  CHECK(compare_status(gone.next, 404).change.kind == "same");
  CHECK(compare(gone.next, shape_of(article()), false).change.kind == "back");
}

TEST_CASE("amounts are words") {
  const Fingerprint page{shape_of(article()), {}, "page"};
  auto now = article({{"main/p", "Two more"}});
  now.erase(now.begin());
  const auto change = compare(page, shape_of(now), false).change;
  CHECK(change.words_added == 2);
  CHECK(change.words_removed == 13);
}

TEST_CASE("ten thousand other blocks are compared in bounded time") {
  Page one, two;
  for (int i = 0; i < 10'000; ++i) {
    one.push_back({"p", "alpha" + std::to_string(i)});
    two.push_back({"p", "omega" + std::to_string(i)});
  }
  CHECK(said({one, one, two}) == Kinds{"same", "text"});
}

TEST_CASE("bytes that are no fingerprint are an empty one") {
  for (const auto* bytes : {"", "x", "\xA1\x61"})
    CHECK(from_bytes(bytes).state.empty());
}

TEST_CASE("the difference in words") {
  const std::string head = R"({"source":"browser","title":"A","url":"http://a/"})"
                           "\n";
  const auto one = head +
                   R"({"at":"p","text":"The pool is closed today"})"
                   "\n" +
                   R"({"at":"p","text":"Same"})"
                   "\n";
  const auto two = head +
                   R"({"at":"p","text":"The pool is open today","links":["http://b/"]})"
                   "\n" +
                   R"({"at":"p","text":"Same"})"
                   "\n";
  const auto found = difference(one, two);
  CHECK(found.words_added == 1);
  CHECK(found.words_removed == 1);
  CHECK(found.blocks_same == 1);
  REQUIRE(found.blocks.size() == 1);
  CHECK(found.blocks[0].size() == 4);
  CHECK(found.links_added == std::vector<std::string>{"http://b/"});
}
