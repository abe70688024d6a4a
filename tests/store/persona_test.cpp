#include "lib/base/uuid.hpp"
#include "lib/catalog/list.hpp"
#include "lib/store/call.hpp"
#include "lib/store/persona.hpp"
#include "lib/store/runner.hpp"
#include "tests/store/stage.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

persona::KeyRing key_ring_of(const std::string& digit) {
  const TempDir dir;
  return persona::KeyRing::open(dir.secret("key", std::string(64, digit.front())));
}

persona::State signed_in(const std::string& value) {
  persona::State state;
  state.cookies.push_back({"session", value, "site.test"});
  return state;
}

// "work", for workers with the label "office".
void make_office_persona(pg::Connection& connection, const persona::KeyRing& key_ring) {
  store::persona_save(connection, key_ring, "work", 0, signed_in("x"), "ann");
  store::persona_set(connection, "work", {{"worker_label", "office"}}, "ann");
}

} // namespace

TEST_CASE("a persona is stored sealed, by version, and opens with its key alone") {
  Stage stage;
  const auto key_ring = key_ring_of("1");
  auto& connection = stage.connection;
  CHECK_FALSE(store::persona_load(connection, key_ring, "work"));
  CHECK(store::persona_save(connection, key_ring, "work", 0, signed_in("seeded-secret"), "ann") == 1);
  CHECK_FALSE(store::persona_save(connection, key_ring, "work", 0, signed_in("other"), "ann"));
  const auto loaded = store::persona_load(connection, key_ring, "work");
  REQUIRE(loaded);
  CHECK(loaded->version == 1);
  CHECK(loaded->state == signed_in("seeded-secret"));
  CHECK(store::persona_save(connection, key_ring, "work", 1, signed_in("second"), "ann") == 2);
  CHECK(store::persona_load(connection, key_ring, "work")->state == signed_in("second"));
  CHECK(refusal([&] { store::persona_load(connection, key_ring_of("2"), "work"); }) == "configuration");
  CHECK(refusal([&] { store::persona_save(connection, {}, "work", 2, {}, "ann"); }) == "configuration");
  // A state that is put under another name or version does not open.
  stage.run("update holdfast.persona set version = 3");
  CHECK(refusal([&] { store::persona_load(connection, key_ring, "work"); }) == "configuration");
  CHECK(stage.value("select count(*) from holdfast.persona p where p::text like '%second%'") == "0");
  stage.command("removePersona", "work");
  CHECK_FALSE(store::persona_save(connection, key_ring, "work", 3, signed_in("late"), "ann"));
  CHECK_FALSE(store::persona_load(connection, key_ring, "work"));
}

TEST_CASE("settings of a persona change one by one") {
  Stage stage;
  auto& connection = stage.connection;
  const nlohmann::json options = {{"USER_AGENT", "Mozilla"}, {"A", "1"}};
  store::persona_set(connection, "press", {{"options", options}, {"hosts", {"press.test"}}}, "ann");
  store::persona_set(connection, "press", {{"options", {{"A", nullptr}}}, {"worker_label", "office"}}, "bob");
  const auto rows = catalog::list(connection, catalog::ListQuery{"personas"}.by("persona", "press"));
  const auto row = rows.one();
  CHECK(row.text("options") == R"({"USER_AGENT": "Mozilla"})");
  CHECK(row["hosts"].as<std::vector<std::string>>() == std::vector<std::string>{"press.test"});
  CHECK(row.text("worker_label") == "office");
  CHECK(row.text("changed_by") == "bob");
  store::persona_set(connection, "press", {{"worker_label", ""}}, "bob");
  CHECK(stage.value("select worker_label from holdfast.persona").empty());
  for (const auto* name : {"", "none", ".x", "a b", "../x", "a\n"})
    CHECK(refusal([&] { store::persona_set(connection, name, nlohmann::json::object(), "ann"); }) == pg::kRefused);
  const nlohmann::json no_host = {{"hosts", {"https://press.test/"}}};
  CHECK(refusal([&] { store::persona_set(connection, "press", no_host, "ann"); }) == pg::kRefused);
  for (const auto* name : {"USER_AGENT", "WGET_USER_AGENT"})
    for (const auto* value : {"a\r\nX-Injected: b", "a\nb", "a\x01", "\x7f"}) {
      const nlohmann::json injected = {{"options", {{name, value}}}};
      CHECK(refusal([&] { store::persona_set(connection, "press", injected, "ann"); }) == pg::kRefused);
    }
  CHECK(catalog::list(connection, {"personas"}).size() == 1);
}

TEST_CASE("the pages that checks name are captured on a schedule, which ends with the persona") {
  Stage stage;
  auto& connection = stage.connection;
  const nlohmann::json daily = {{"check_every", "daily"}};
  CHECK(refusal([&] { store::persona_set(connection, "press", daily, "ann"); }) == pg::kRefused);
  const nlohmann::json checks = {store::parse_check("text=Log out @https://site.test/me"), store::parse_check("login")};
  store::persona_set(connection, "press", {{"checks", checks}, {"check_every", "daily"}}, "ann");
  store::persona_set(connection, "press", {{"check_every", "hourly"}}, "ann");
  CHECK(stage.value("select string_agg(every || ' ' || urls::text, '; ') from holdfast.schedule") ==
        "hourly {https://site.test/me}");
  stage.run("select holdfast.schedule_run(id, holdfast.new_uuid()) from holdfast.schedule");
  CHECK(stage.value("select persona || ' ' || plugins::text || ' ' || (keep_until is not null) from holdfast.crawl") ==
        "press {browser} true");
  stage.run("delete from holdfast.crawl");
  stage.command("removePersona", "press");
  CHECK(stage.value("select count(*) from holdfast.schedule") == "0");
}

TEST_CASE("a crawl gets the persona of its hosts unless it names another") {
  Stage stage;
  store::persona_set(stage.connection, "press", {{"hosts", {"site.test"}}}, "ann");
  store::persona_set(stage.connection, "mail", {{"hosts", {"mail.test"}}}, "ann");
  const auto persona = [&](const std::vector<std::string>& urls, const std::string& named) {
    store::NewCrawl crawl;
    if (!named.empty()) crawl["persona"] = named;
    std::vector<store::Seed> seeds(urls.size());
    for (std::size_t i = 0; i < urls.size(); ++i)
      seeds[i].url = urls[i];
    return stage.value("select persona from holdfast.crawl where id = $1::uuid",
                       pg::Params::of(stage.add(seeds, crawl)));
  };
  CHECK(persona({"https://site.test/1", "https://other.test/"}, "") == "press");
  CHECK(persona({"https://www.site.test/1"}, "") == "press");
  CHECK(persona({"https://mysite.test/1"}, "").empty());
  CHECK(persona({"https://site.test/1"}, "mail") == "mail");
  CHECK(persona({"https://site.test/1"}, "none") == "none");
  store::NewCrawl crawl;
  crawl.id = base::new_uuid();
  crawl.options = nlohmann::json::object();
  store::Seed mail;
  mail.url = "https://mail.test/";
  CHECK(refusal([&] { store::crawl_add(stage.connection, crawl, {Stage::seed("1"), mail}); }) == pg::kRefused);
  crawl["persona"] = "missing";
  CHECK(refusal([&] { store::crawl_add(stage.connection, crawl, {Stage::seed("1")}); }) == pg::kRefused);
  CHECK(refusal([&] { stage.command("removePersona", "press"); }) == pg::kRefused);
}

TEST_CASE("a page that failed before its host had a persona is retried with it") {
  Stage stage;
  const auto early = stage.start({Stage::seed("1")});
  const auto worker = stage.worker();
  stage.finish(worker, Stage::sealed(stage.claim(worker), "failed"));
  store::persona_set(stage.connection, "late", {{"hosts", {"site.test"}}}, "ann");
  const auto again = base::new_uuid();
  REQUIRE(catalog::operation("retry").run({stage.connection, "", again, {{"ids", {early}}}, "ann"})["seeds"] == 1);
  CHECK(stage.value("select persona from holdfast.crawl where id = $1::uuid", pg::Params::of(again)) == "late");
}

TEST_CASE("only a worker with the key and the label takes pages of a persona") {
  Stage stage;
  auto& connection = stage.connection;
  const auto key_ring = key_ring_of("1");
  make_office_persona(connection, key_ring);
  const auto worker = stage.worker();
  store::NewCrawl crawl;
  crawl["persona"] = "work";
  const auto id = stage.start(Stage::seeds(1, 1), crawl);
  const auto able = [&](const std::string& key, const std::string& label) {
    store::call(connection, "worker_able", worker,
                R"({"persona": {"keys": [")" + key + R"("], "labels": [")" + label + R"("]}})");
    stage.pass("1 minute");
    return stage.value("select reason from holdfast.why($1::uuid)", pg::Params::of(id));
  };
  CHECK(able("00000000", "office").find("worker: no key " + key_ring.key_ids().front() + " of persona \"work\"") !=
        std::string::npos);
  CHECK(stage.claim_many(worker, 1).empty());
  CHECK(stage.value("select what from holdfast.v_stuck") == "no running worker can take it");
  CHECK(able(key_ring.key_ids().front(), "home").find("is tied to workers with the label \"office\"") !=
        std::string::npos);
  CHECK(stage.claim_many(worker, 1).empty());
  able(key_ring.key_ids().front(), "office");
  const auto claims = stage.claim_many(worker, 1);
  REQUIRE(claims.size() == 1);
  CHECK(claims.front().persona == "work");
}

TEST_CASE("a persona that is signed out is signed in to again, by a worker that could take its pages") {
  Stage stage;
  auto& connection = stage.connection;
  const auto key_ring = key_ring_of("1");
  make_office_persona(connection, key_ring);
  const auto worker = stage.worker();
  stage.run("update holdfast.persona set signed_out_at = now(), signed_out_reason = 'a test'");
  stage.command("signIn", "work", {{"url", "https://site.test/"}});
  const auto taken = [&](const std::string& label) {
    store::call(connection, "worker_able", worker,
                R"({"plugins": ["browser"], "persona": {"keys": [")" + key_ring.key_ids().front() +
                    R"("], "labels": [")" + label + R"("]}})");
    return store::sign_in_take(connection, worker).has_value();
  };
  const char* backlog = "select concat_ws('|', snapshots_due, held, unfinished) from holdfast.v_backlog"; // for `run`
  CHECK_FALSE(taken("home"));
  CHECK(stage.value(backlog) == "1|0|t");
  CHECK(taken("office"));
  CHECK(stage.value(backlog) == "0|1|t");
}
