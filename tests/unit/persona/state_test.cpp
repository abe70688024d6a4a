#include "lib/base/error.hpp"
#include "lib/persona/state.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::persona;

namespace {

Cookie cookie(const std::string& name, const std::string& value, const std::string& domain = "press.test") {
  Cookie one;
  one.name = name;
  one.value = value;
  one.domain = domain;
  return one;
}

State with(std::vector<Cookie> cookies) {
  State state;
  state.cookies = std::move(cookies);
  return state;
}

} // namespace

TEST_CASE("storage state comes back as it was written") {
  State state = with({cookie("a", "1"), cookie("b", "2=\"x\"", ".other.test")});
  state.cookies[1].httpOnly = state.cookies[1].secure = true;
  state.cookies[1].sameSite = "Lax";
  state.cookies[1].expires = 4102444800;
  state.origins = {{"https://press.test", {{"token", std::string(10'000'000, 't')}}, {{{"name", "db"}}}}};
  state.httpCredentials = {{"https://press.test", "me", "pass"}};
  state.headers = {{"https://press.test", "X-Key", "k"}};
  std::vector<std::string> left_out;
  CHECK(State::parse(state.text(), "here", left_out) == state);
  CHECK(left_out.empty());
  const auto netscape = parse_cookies_txt(cookies_txt(state), "here", left_out);
  REQUIRE(netscape.cookies.size() == 2);
  state.cookies[1].sameSite.clear();
  CHECK(netscape.cookies == state.cookies);
}

TEST_CASE("what is no storage state is refused by place, without its values") {
  std::vector<std::string> left_out;
  for (const std::string text :
       {"", "[]", "{", R"({"cookies": "secret"})", R"({"cookies": ["secret"]})",
        R"({"cookies": [{"name": 7, "value": "secret"}]})", R"({"origins": {"a": "secret"}})",
        R"({"headers": [{"origin": "https://a.test", "name": "X", "value": "secret\nY: z"}]})"}) {
    CAPTURE(text);
    try {
      State::parse(text, "state.json", left_out);
      FAIL_CHECK("taken");
    } catch (const base::Error& error) {
      CHECK(std::string(error.what()).starts_with("state.json: "));
      CHECK(std::string(error.what()).find("secret") == std::string::npos);
    }
  }
  CHECK_THROWS_AS(parse_cookies_txt("a=b\n", "jar", left_out), base::Error);
}

TEST_CASE("a cookie with odd bytes is left out, and the others stay") {
  std::vector<std::string> left_out;
  for (const std::string odd : {"a\x01"
                                "b",
                                "a\xff"
                                "b",
                                "a;b", "a\x7f", "a\rb"}) {
    State state = with({cookie("good", "1")});
    add_cookie(state, cookie("odd", odd), left_out);
    CHECK(state.cookies.size() == 1);
  }
  CHECK(left_out.size() == 5);
  CHECK(left_out.front() == "a cookie of press.test that no browser takes");
}

TEST_CASE("a state that a stranger has filled is bounded") {
  std::vector<std::string> left_out;
  std::string deep = R"({"origins": [{"origin": "https://a.test", "indexedDB": )";
  CHECK_THROWS_AS(State::parse(deep + std::string(500'000, '['), "here", left_out), base::Error);
  State state;
  state.cookies = {cookie("session", "a-session-of-me-1")};
  state.cookies[0].httpOnly = true;
  state.origins = {{"https://press.test", {}, nlohmann::json::array()}};
  for (int i = 0; i < 100'000; ++i)
    state.origins[0].localStorage.emplace_back(std::to_string(i), "looks-like-a-token-" + std::to_string(i));
  const auto secrets = secrets_of(state);
  CHECK(secrets.size() < 10'000);
  CHECK(secrets.front() == "a-session-of-me-1");
}

TEST_CASE("the changes of a capture are applied to what others have not changed") {
  const State before = with({cookie("session", "old"), cookie("theme", "dark"), cookie("gone", "1")});
  const State after = with({cookie("session", "new"), cookie("theme", "dark"), cookie("fresh", "1", ".press.test"),
                            cookie("tracker", "1", "ads.test")});
  State same = before;
  CHECK(apply_changes(same, before, after));
  CHECK(same == with({cookie("theme", "dark"), cookie("session", "new"), cookie("fresh", "1", ".press.test")}));
  State refreshed = with({cookie("session", "newer"), cookie("theme", "light")});
  CHECK(apply_changes(refreshed, before, after)); // the fresh one
  CHECK(refreshed.cookies[0] == cookie("session", "newer"));
  CHECK(refreshed.cookies[1] == cookie("theme", "light"));
  State untouched = before;
  CHECK_FALSE(apply_changes(untouched, before, before));
}

TEST_CASE("hosts are kept with those below and above them") {
  State state =
      with({cookie("a", "1", ".press.test"), cookie("b", "1", "www.press.test"), cookie("c", "1", "mail.test")});
  state.origins = {{"https://id.press.test:8443", {}, {}}, {"https://xpress.test", {}, {}}};
  state.httpCredentials = {{"https://press.test", "me", "1"}, {"https://wiki.test", "me", "2"}, {"", "me", "any"}};
  state.headers = {{"https://wiki.test", "X-Key", "k"}};
  keep_hosts(state, {"press.test"});
  CHECK(state.cookies.size() == 2);
  CHECK(state.httpCredentials == std::vector<Credentials>{{"https://press.test", "me", "1"}, {"", "me", "any"}});
  CHECK(state.headers.empty());
  REQUIRE(state.origins.size() == 1);
  CHECK(state.origins[0].origin == "https://id.press.test:8443");
}

TEST_CASE("a new sign-in replaces the passwords of its own servers alone") {
  State state, fresh;
  state.httpCredentials = {{"https://press.test", "me", "old"}, {"https://wiki.test", "me", "kept"}, {"", "me", "any"}};
  fresh.httpCredentials = {{"https://press.test", "me", "new"}};
  renew(state, fresh);
  const std::vector<Credentials> wanted{
      {"https://press.test", "me", "new"}, {"https://wiki.test", "me", "kept"}, {"", "me", "any"}};
  CHECK(state.httpCredentials == wanted);
}
