#include "lib/warc/method_query.hpp"

#include <doctest/doctest.h>

using namespace holdfast::warc;

TEST_SUITE("queries of methods") {
  // The right side is what pywb makes of the left.
  TEST_CASE("are those of other tools") {
    using namespace std::string_view_literals;
    struct Case {
      std::string_view method, type, body, query;
    };
    const Case cases[] = {
        {"GET", "", "", ""},
        {"HEAD", "", "", "__wb_method=HEAD"},
        {"DELETE", "text/plain", "x", "__wb_method=DELETE"},
        {"POST", "application/json", R"({"query":"tide"})", "__wb_method=POST&query=tide"},
        {"POST", "application/json; charset=utf-8", R"({"a":[1,2.5,true,null,"ü x",1.0,1e3],"b":{"a":"y","c":{}}})",
         "__wb_method=POST&a=1&a.2_=2.5&a.3_=true&a.4_=null&a.5_=%C3%BC+x&a.6_=1&a.7_=1000&a.8_=y"},
        {"POST", "application/json", "no json", "__wb_method=POST"},
        {"POST", "application/json", "", "__wb_method=POST"},
        {"POST", "text/plain", "{\"q\":1}\n{\"q\":2}", "__wb_method=POST&q=1&q.2_=2"},
        {"POST", "text/plain", "words", "__wb_method=POST&__wb_post_data=d29yZHM="},
        {"POST", "application/x-www-form-urlencoded", "a=1+2&b=%C3%BC&c", "__wb_method=POST&a=1 2&b=ü&c"},
        {"POST", "application/x-www-form-urlencoded", "a=%ff", "__wb_method=POST&a=\xef\xbf\xbd"},
        {"POST", "application/x-www-form-urlencoded", "\xff\xfe", "__wb_method=POST&__wb_post_data=//4="},
        {"POST", "multipart/form-data; boundary=xYz",
         "--xYz\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\ngrün 1\r\n--xYz\r\nContent-Disposition: "
         "form-data; name=\"file\"; filename=\"t.bin\"\r\nContent-Type: application/octet-stream\r\n\r\n\xff\xfe\0\r\n"
         "--xYz--\r\n"sv,
         "__wb_method=POST&note=gr%C3%BCn+1&file=%FF%FE%00"},
        {"POST", "", "\0\1\2\3\4\5"sv, "__wb_method=POST&__wb_post_data=AAECAwQF"},
        {"PUT", "application/octet-stream", "ab", "__wb_method=PUT&__wb_post_data=YWI="},
    };
    for (const auto& [method, type, body, query] : cases) {
      CAPTURE(query);
      CHECK(method_query(method, type, body) == query);
    }
    CHECK(request_key("http://example.com/g", "POST", "application/json", R"({"query":"Tide"})") ==
          "com,example)/g?__wb_method=post&query=tide");
    CHECK(request_key("http://example.com/g", "GET") == "com,example)/g");
  }
}
