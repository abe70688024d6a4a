#include "lib/base/log.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>

using holdfast::base::redact_dsn;

TEST_SUITE("redact") {
  TEST_CASE("passwords vanish from urls of databases") {
    const std::pair<const char*, std::string_view> cases[] = {
        {"postgresql://u:secret@h/db", "postgresql://u:***@h/db"},
        {"postgres://u:secret@h:5432/db?sslmode=require", "postgres://u:***@h:5432/db?sslmode=require"},
        {"postgresql://u:secret@h/db?password=x", "postgresql://u:***@h/db?password=***"},
        {"postgresql:///db?password=a@b&host=/tmp", "postgresql:///db?password=***&host=/tmp"},
        {"postgresql://h/db?a=1&sslpassword=x&b=2", "postgresql://h/db?a=1&sslpassword=***&b=2"},
        {"postgresql://h/db?pass%77ord=x", "postgresql://h/db?pass%77ord=***"},
        {"postgresql://h/db?PASSWORD=x", "postgresql://h/db?PASSWORD=***"},
        {"postgresql://u:@h/db", "postgresql://u:***@h/db"},
        {"postgresql://u:a:b@h1:1,h2:2/db", "postgresql://u:***@h1:1,h2:2/db"},
        // Characters that should have been encoded.
        {"postgresql://u:se/cr@et@h/db", "postgresql://u:***@h/db"},
        {"postgresql://u:se?cr@h/db", "postgresql://u:***@h/db"},
        {"postgresql://u:12?cr@h/db", "postgresql://u:12?cr@h/db"}, // a port, then a query: nothing tells them apart
    };
    for (const auto& [dsn, expected] : cases) {
      CAPTURE(dsn);
      CHECK(redact_dsn(dsn) == expected);
    }
  }

  TEST_CASE("passwords vanish from keyword strings") {
    const std::pair<const char*, std::string_view> cases[] = {
        {"host=h password=secret user=u", "host=h password=*** user=u"},
        {"password = 'a b' user=u", "password = *** user=u"},
        {R"(password='a\'b c' user=u)", "password=*** user=u"},
        {R"(password=a\ b user=u)", "password=*** user=u"},
        {"user=u password='unfinished host=h", "user=u password=***"},
        {"sslpassword=x host=h", "sslpassword=*** host=h"},
        {"oauth_client_secret=x", "oauth_client_secret=***"},
        {"password=", "password=***"},
        {"password=a://b:c@d user=u", "password=*** user=u"},
    };
    for (const auto& [dsn, expected] : cases) {
      CAPTURE(dsn);
      CHECK(redact_dsn(dsn) == expected);
    }
  }

  TEST_CASE("strings without a password stay as they are") {
    for (const char* dsn :
         {"", "postgresql://h/db", "postgresql://u@h:5432/db", "postgresql://h:5432/db?user=a@b",
          "postgresql://[::1]:5432/db", "postgresql:///db?host=/run/x", "host=h dbname='a b' passfile=/x", "dbname",
          "postgresql://u@h1:1,h2:2/db?target_session_attrs=any"}) {
      CHECK(redact_dsn(dsn) == dsn);
    }
  }
}
