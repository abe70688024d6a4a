#include "services/capture/proposal.hpp"

#include <doctest/doctest.h>

using namespace holdfast::capture;

TEST_CASE("proposal: the surest difference becomes the check") {
  const Sight member{"https://press.test/today?x=1", {"log out", "today"}, {"sid", "theme"}, false};
  struct Case {
    Sight without;
    const char *kind, *value;
    bool signed_out;
  };
  for (const auto& [without, kind, value, signed_out] :
       {Case{{"https://id.test/login?to=x", {}, {}, true}, "redirect", "https://id.test/login", true},
        Case{{"https://press.test/today", {"today"}, {}, true}, "selector", "input[type=password]", true},
        Case{{"https://press.test/today", {"today"}, {}, false}, "text", "log out", false},
        Case{{"https://press.test/today", {"today", "log out"}, {"theme"}, false}, "cookie", "sid", false},
        Case{member, "none", "", false}}) {
    const auto checks = proposed_checks(member, without);
    REQUIRE(checks.size() == 1);
    CHECK(checks[0]["kind"] == kind);
    CHECK(checks[0]["value"] == value);
    CHECK(checks[0]["signed_out"] == signed_out);
    CHECK(checks[0]["url"] == member.url);
  }
  for (const char* label : {"abmelden", "déconnexion", "logout", "ログアウト", "выйти"})
    CHECK(proposed_checks({member.url, {label}, {}, false}, {member.url, {}, {}, false})[0]["value"] == label);
  for (const char* label : {"catalog outlet", "sign", "outlook"})
    CHECK(proposed_checks({member.url, {label}, {}, false}, {member.url, {}, {}, false})[0]["kind"] == "none");
}
