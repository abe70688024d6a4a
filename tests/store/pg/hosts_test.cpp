// Several hosts in a connection string, and the timelines that are remembered; no server is needed.
#include "lib/pg/conninfo.hpp"
#include "lib/pg/hosts.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/text.hpp"

#include <doctest/doctest.h>

using namespace holdfast::pg;
using holdfast::test::TempDir;

TEST_CASE("a connection string with several hosts is taken apart and put together") {
  CHECK(hosts_of("postgresql://u@one/db").empty());
  CHECK(hosts_of("host=one dbname='a,b'").empty());
  const std::string dsn = "postgresql://u@one:5433,two,three:5435/db";
  const auto hosts = hosts_of(dsn);
  REQUIRE(hosts.size() == 3);
  CHECK(hosts[1].name == "two");
  CHECK(hosts[0].port == "5433");
  CHECK(hosts[1].port.empty());
  auto values = parse_conninfo(with_host(dsn, hosts[2]));
  CHECK(values["host"] == "three");
  CHECK(values["port"] == "5435");
  CHECK(values["target_session_attrs"] == "read-write");
  const std::string same_port = "host=a,b port=5440 target_session_attrs=any";
  values = parse_conninfo(with_host(same_port, hosts_of(same_port)[1]));
  CHECK(values["host"] == "b");
  CHECK(values["port"] == "5440");
  CHECK(values["target_session_attrs"] == "any");
  CHECK(hosts_of("hostaddr=10.0.0.1,10.0.0.2 dbname=d")[1].address == "10.0.0.2");
  CHECK(hosts_of("host=a,b target_session_attrs=prefer-standby").empty()); // libpq's own choice
}

TEST_CASE("the host that was last connected to comes first, and the others are watched") {
  const std::string dsn = "postgresql://u@alpha,beta:5433,gamma/db";
  CHECK(hosts_to_try(dsn)[0].name == "alpha");
  connected_to(dsn, hosts_of(dsn)[1]);
  const auto hosts = hosts_to_try(dsn);
  CHECK(hosts[0].name == "beta");
  CHECK(hosts[1].name == "gamma");
  CHECK(hosts[2].name == "alpha");
  const auto others = other_hosts(dsn);
  REQUIRE(others.size() == 2);
  auto values = parse_conninfo(others[0]);
  CHECK(values["host"] == "alpha");
  CHECK(values["target_session_attrs"] == "any");
  CHECK(other_hosts("postgresql://u@alpha/db").empty());
}

TEST_CASE("an earlier timeline of the same system is superseded, also for the next process") {
  const TempDir directory;
  const auto file = directory / "timelines";
  remember_timelines(file);
  const auto first = see_timeline("71", 1);
  CHECK(first.news);
  CHECK(!first.superseded());
  CHECK(!see_timeline("71", 1).news);
  CHECK(see_timeline("71", 3).news);
  CHECK(first.superseded());
  CHECK(see_timeline("71", 2).superseded());
  CHECK(!see_timeline("72", 1).superseded()); // another cluster
  CHECK(!SessionTimeline{}.superseded());     // a standby
  CHECK(holdfast::test::text_of(file).find("71 3\n") != std::string::npos);

  // What another process has written counts; what is no number ends the reading.
  directory.write("timelines", "73 9\n74 x\n");
  remember_timelines(file);
  CHECK(see_timeline("73", 8).superseded());
  CHECK(!see_timeline("74", 1).superseded());
  CHECK(holdfast::test::text_of(file).find("71 3\n") != std::string::npos);
  remember_timelines({});
}
