#include "services/capture/extract/manners.hpp"

#include <doctest/doctest.h>

using namespace holdfast::capture;

TEST_CASE("an address acts by its last command, not by the words of its content") {
  for (const char* url :
       {"https://a.example/logout", "https://a.example/Account/LogOff.aspx", "https://a.example/item/3/delete",
        "https://a.example/vote/17", "https://a.example/api/add-to-cart", "https://a.example/sign_out",
        "https://a.example/markAs/42/unsubscribe", "https://a.example/?action=vote",
        "https://a.example/x?do=removeItem", "https://a.example/x?upvote=1", "https://a.example/act/like?id=9",
        "https://a.example/post/8f3a2/report", "https://a.example/api/servers/3/stop",
        "https://a.example/loeschen?id=3", "https://a.example/article/3/supprimer",
        "https://a.example/3/%D1%83%D0%B4%D0%B0%D0%BB%D0%B8%D1%82%D1%8C", "https://a.example/restart.cgi",
        "https://a.example/keys/rotate"})
    CHECK_MESSAGE(acts(url), url);
  for (const char* url :
       {"https://a.example/", "https://a.example/how-to-delete-a-key", "https://a.example/search?q=delete",
        "https://a.example/icons/like.svg", "https://a.example/reports/2024", "https://a.example/votes?page=2",
        "https://a.example/delete/words/in/a/story", "https://a.example/list?order=asc&star=5",
        "https://a.example/api/items?after=add", "https://a.example/save/the/date",
        "https://a.example/uploads/2024/03/1.jpg", "https://a.example/subscribers/3",
        "https://a.example/x?start=10&run=3", "https://a.example/kupony", "https://a.example/publishers/12",
        "https://a.example/comments/12"})
    CHECK_MESSAGE(!acts(url), url);
}

TEST_CASE("a press may send what its meaning allows") {
  const std::string site = "https://a.example/x", other = "https://b.example/x";
  struct Row {
    Pressed pressed;
    Request request;
    bool held;
  };
  const Row rows[] = {
      {Pressed::nothing, {"POST", site, "Fetch", "", false}, false},
      {Pressed::nothing, {"DELETE", site, "Fetch", "", false}, false},
      {Pressed::shows, {"POST", site, "Fetch", R"({"query":"query { a }"})", false}, false},
      {Pressed::more, {"POST", site, "Fetch", R"({"query":"mutation { a }"})", false}, true},
      {Pressed::more, {"POST", site, "Ping", "", false}, true},
      {Pressed::shows, {"POST", site, "Fetch", R"({"id": 3})", false}, true},
      {Pressed::shows, {"POST", site, "Fetch", R"([{"query": "\n {a}"}])", false}, false},
      {Pressed::shows, {"POST", site, "Fetch", R"([{"query":"{a}"},{"query":"mutation {b}"}])", false}, true},
      {Pressed::shows, {"POST", site, "Fetch", R"({"query":"\n  mutation Like { a }"})", false}, true},
      {Pressed::more, {"POST", site, "Fetch", R"({"text":"a mutation of genes"})", false}, false},
      {Pressed::shows, {"POST", site, "Fetch", R"({"query": {"id": 3}, "update": {"likes": 4}})", false}, true},
      {Pressed::shows, {"POST", site + "/_search", "Fetch", R"({"query": {"match": {"id": 3}}})", false}, false},
      {Pressed::shows, {"GET", site + "?query=mutation%20{like}", "Fetch", "", false}, true},
      {Pressed::shows, {"GET", site + "?query=mutation", "Fetch", "", false}, false},
      {Pressed::shows, {"PUT", site, "Fetch", "", false}, true},
      {Pressed::shows, {"PATCH", site, "Fetch", "", false}, true},
      {Pressed::shows, {"GET", "https://a.example/logout", "Fetch", "", false}, true},
      {Pressed::shows, {"GET", other, "Fetch", "", false}, false},
      {Pressed::unknown, {"GET", site, "Fetch", "", false}, false},
      {Pressed::unknown, {"POST", site, "Fetch", "", false}, true},
      {Pressed::unknown, {"POST", site, "Ping", "", false}, true},
      {Pressed::unknown, {"GET", "https://www.a.example/x", "Fetch", "", false}, false},
      {Pressed::unknown, {"GET", "https://api.a.example/x", "XHR", "", false}, false},
      {Pressed::unknown, {"GET", other, "Fetch", "", false}, true},
      {Pressed::unknown, {"GET", other, "Fetch", "", true}, false},
      {Pressed::unknown, {"GET", other, "Script", "", false}, true},
      {Pressed::unknown, {"GET", other, "Image", "", false}, false},
      {Pressed::unknown, {"GET", other + "/vote", "Image", "", false}, true},
      {Pressed::unknown, {"POST", other, "Document", "", false}, true},
      {Pressed::unknown, {"GET", "https://nota.example/x", "Fetch", "", false}, true}};
  for (const auto& row : rows)
    CHECK_MESSAGE(!why_held(row.pressed, row.request, "a.example").empty() == row.held,
                  row.request.method << " " << row.request.url << " " << row.request.type << " " << row.request.body);
}
