// A process speaks for itself alone: no function takes the word of one database login for a process of another.
#include "lib/store/runner.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr const char* kNotYours = "42501";
// As a process joins.
std::string process_json(const std::string& type, int pid) {
  const auto number = std::to_string(pid);
  return R"({"machine": {"id": "shared", "hostname": "h"}, "boot_id": "boot", "pid_namespace": "ns", "pid": )" +
         number + R"(, "start_ticks": )" + number + R"(, "process_type": ")" + type + R"(", "worker_type": ")" +
         (type == "runner" ? "runner_waiting" : "all") + R"(", "label": "w", "version": "v", "slots": 2})";
}

// Two logins of workers, and of each: a worker and a runner, both on a machine that says the same of itself.
struct TwoLogins : Stage {
  std::string mine, other, worker, runner, session, sign_in, others_worker, others_runner, crawl;
  store::Claim held, sealed;

  TwoLogins() {
    const auto name = value("select current_database()");
    mine = name + "_mine";
    other = name + "_other";
    for (const auto& login : {mine, other})
      run("create role \"" + login + "\" login in role holdfast_worker");
    crawl = start(seeds(1, 2));
    become(other);
    others_worker = join("worker");
    others_runner = join("runner");
    become(mine);
    worker = join("worker");
    runner = join("runner");
    held = claim(worker);
    sealed = claim(worker);
    seal(worker, sealed);
    session = value("select holdfast.new_uuid()");
    run("select holdfast.session_open($1::uuid, $2::uuid, $3::uuid, '/tmp')", pg::Params::of(worker, session, crawl));
    run("select holdfast.binary_want($1::uuid, '[{\"name\": \"wget\"}]')", pg::Params::of(worker));
    run("select * from holdfast.binary_claim($1::uuid, 1)", pg::Params::of(worker));
    run("select holdfast.machine_set_options($1::uuid, '{\"WGET_BINARY\": \"/usr/bin/wget\"}')",
        pg::Params::of(worker));
    run("select holdfast.text_keep($1::uuid, $2::uuid, $3::bigint, 'as it was')",
        pg::Params::of(sealed.lease.snapshot_id, crawl, sealed.lease.fence));
    run("select * from holdfast.runner_enter($1::uuid, '1 hour', '5 s')", pg::Params::of(runner));
    become("");
    run("select holdfast.persona_set('press', '{}', 'me')");
    run("update holdfast.crawl set persona = 'press' where id = $1::uuid", pg::Params::of(crawl));
    sign_in = value("select holdfast.new_uuid()");
    run("insert into holdfast.persona_sign_in (persona, id, url, asked_by, deadline, process_id) "
        "values ('press', $1::uuid, 'https://site.test/', 'me', clock_timestamp() + interval '1 hour', $2::uuid)",
        pg::Params::of(sign_in, worker));
  }
  ~TwoLogins() {
    try {
      become("");
      for (const auto& login : {mine, other})
        run("drop role \"" + login + "\"");
    } catch (const std::exception&) {
    }
  }

  void become(const std::string& login) {
    run(login.empty() ? "reset session authorization" : "set session authorization \"" + login + "\"");
  }
  std::string join(const std::string& type) {
    const auto id = value("select holdfast.new_uuid()");
    run("select holdfast.process_join($1::uuid, $2::jsonb, '1 hour')",
        pg::Params::of(id, process_json(type, type == "runner" ? 7 : 8)));
    return id;
  }
  // All rows in which one of the first login's ids stands, or its persona.
  std::string rows() {
    std::string all;
    for (const auto row : connection.call("select tablename from pg_tables where schemaname = 'holdfast' order by 1"))
      all += (all.empty() ? "" : " union all ") + ("select t::text as r from holdfast." + row.text("tablename") + " t");
    return value("select string_agg(r, E'\\n' order by r) from (" + all + ") x where r ~ $1",
                 pg::Params::of(worker + "|" + runner + "|" + session + "|" + held.lease.snapshot_id + "|" +
                                sealed.lease.snapshot_id + "|" + mine + "|press"));
  }
  // What an argument of a function is in the call: by function and name, or by name.
  std::map<std::string, std::string> arguments() {
    const auto quoted = [](const std::string& text) { return "'" + text + "'"; };
    const auto fence = std::to_string(held.lease.fence);
    const auto page =
        R"({"snapshot": ")" + held.lease.snapshot_id + R"(", "crawl": ")" + crawl + R"(", "fence": )" + fence;
    return {{"p_worker", quoted(worker)},
            {"p_id", quoted(worker)},
            {"p_session", quoted(session)},
            {"p_crawl", quoted(crawl)},
            {"p_snapshot", quoted(held.lease.snapshot_id)},
            {"p_fence", fence},
            {"p_lease", "'1 hour'"},
            {"p_room", "1"},
            {"p_process", quoted(process_json("worker", 8))},
            {"p_machine_id", "'shared'"},
            {"p_boot_id", "'boot'"},
            {"p_pid", "8"},
            {"p_pid_namespace", "'ns'"},
            {"p_start_ticks", "8"},
            {"p_capabilities", "'{}'"},
            {"p_stats", "'{\"free\": 1}'"},
            {"p_exit_code", "0"},
            {"p_reason", "'mine now'"},
            {"p_snapshots", "array['" + held.lease.snapshot_id + "']"},
            {"p_fences", "array[" + fence + "]"},
            {"p_hooks", "'[]'"},
            {"worker_hooks.p_hooks",
             quoted("[" + page + R"(000, "plugin": "wget", "hook": "h", "pid": 1, "running_ms": 1, "still_ms": 1}])")},
            {"p_pages",
             quoted("[" + page + R"(, "ending": "released", "reason": "mine now", "results": [], "links": []}])")},
            {"p_open", "'{}'"},
            {"p_open_only", "false"},
            {"p_newest", "false"},
            {"p_top_n", "0"},
            {"p_seeds", "0"},
            {"p_only", "null"},
            {"p_batch", "10"},
            {"p_directory", "'/tmp'"},
            {"p_status", "'ready'"},
            {"p_wanted", R"('[{"name": "curl"}]')"},
            {"p_limit", "1"},
            {"p_name", "'wget'"},
            {"p_found", R"('{"path": "/tmp/wget"}')"},
            {"binary_set.p_fence", "1"},
            {"p_options", R"('{"WGET_BINARY": "/tmp/wget"}')"},
            {"p_grace", "'5 s'"},
            {"p_epoch", "1"},
            {"p_task", "'mend'"},
            {"runner_enter.p_id", quoted(runner)},
            {"runner_heartbeat.p_id", quoted(runner)},
            {"runner_leave.p_id", quoted(runner)},
            {"runner_maintenance.p_id", quoted(runner)},
            {"p_origin", "'https://site.test'"},
            {"p_host", "'site.test'"},
            {"robots_put.p_status", "200"},
            {"p_rules", "''"},
            {"p_error", "null"},
            {"p_delay", "'0'"},
            {"p_keep", "'1 day'"},
            {"p_position", "0"},
            {"p_text", "'not as it was'"},
            {"p_state", "'sealed'"},
            {"p_key_id", "'k1'"},
            {"persona_keep.p_id", quoted(sign_in)},
            {"persona_keep.p_version", "0"},
            {"persona_signed_out.p_version", "0"},
            {"sign_in_ready.p_id", quoted(sign_in)},
            {"sign_in_end.p_id", quoted(sign_in)},
            {"p_problem", "'no port'"},
            {"p_port", "1"},
            {"p_key_hash", "repeat('0', 64)"},
            {"p_address", "'127.0.0.1'"},
            {"p_certificate_hash", "repeat('0', 64)"},
            {"text_keep.p_snapshot", quoted(sealed.lease.snapshot_id)},
            {"text_keep.p_fence", std::to_string(sealed.lease.fence)}};
  }
  // Calls as `login`, in a transaction that is then rolled back. Says how it ended, and whether a row of the first
  // login is another than before.
  std::pair<std::string, bool> attempt(const std::string& login, const std::string& call, const std::string& before) {
    run("begin");
    run("set local session authorization \"" + login + "\"");
    const auto ended = refusal([&] { connection.call("select " + call); });
    bool changed = false;
    if (ended.empty()) {
      run("reset session authorization");
      changed = rows() != before;
    }
    run("rollback");
    return {ended, changed};
  }
};

} // namespace

TEST_CASE("no login speaks for a process, session, machine or page of another") {
  TwoLogins stage;
  const auto before = stage.rows();
  const auto known = stage.arguments();
  std::map<std::string, std::string> calls, by_another;
  // Whatever a worker's login may call that can write, and takes an id other than a crawl's.
  for (const auto row : stage.connection.call(
           "select p.oid, p.proname, a.name, format_type(a.type, null) as type "
           "from pg_proc p cross join unnest(p.proargnames[:p.pronargs], p.proargtypes::oid[]) with ordinality a(name, "
           "type, n) "
           "where p.pronamespace = 'holdfast'::regnamespace and p.provolatile = 'v' "
           "and has_function_privilege('holdfast_worker', p.oid, 'execute') "
           "and exists (select from unnest(p.proargnames[:p.pronargs], p.proargtypes::oid[]) i(name, type) "
           "where i.name like 'p_machine%' or i.type in ('uuid'::regtype, 'uuid[]'::regtype) and i.name <> 'p_crawl') "
           "order by p.proname, p.oid, a.n")) {
    const auto& function = row.text("proname");
    const auto& name = row.text("name");
    auto argument = known.find(function + "." + name);
    if (argument == known.end()) argument = known.find(name);
    REQUIRE_MESSAGE(argument != known.end(), function << "(" << name << "): say what this test gives it");
    const auto cast = "::" + row.text("type");
    auto& call = calls[function];
    call += (call.empty() ? "holdfast." + function + "(" : ", ") + argument->second + cast;
    auto& another = by_another[function];
    const bool own =
        name == "p_worker" || (name == "p_id" && function.starts_with("worker_") && function != "process_gone");
    another += (another.empty() ? "holdfast." + function + "(" : ", ") +
               (own ? "'" + stage.others_worker + "'" : argument->second) + cast;
  }
  CHECK(calls.size() > 25);
  for (const auto& [function, call] : calls) {
    CAPTURE(call);
    // crawl_expand: the worker expands no crawl now. Its own call fails for that alone.
    CHECK(stage.attempt(stage.mine, call + ")", before).first == (function == "crawl_expand" ? "HF003" : ""));
    const auto [ended, changed] = stage.attempt(stage.other, call + ")", before);
    CHECK((ended.empty() || ended == kNotYours));
    CHECK(!changed);
  }
  // Its own worker, and the page, session or machine of the other.
  for (const auto& [function, call] : by_another) {
    if (call == calls[function]) continue;
    CAPTURE(call);
    CHECK(!stage.attempt(stage.other, call + ")", before).second);
  }
  // What these do when they may.
  for (const char* function :
       {"worker_hooks", "worker_turn", "process_leave", "session_set", "machine_set_options", "binary_set", "text_keep",
        "worker_heartbeat", "process_gone", "persona_keep", "persona_signed_out"})
    CHECK_MESSAGE(stage.attempt(stage.mine, calls[function] + ")", before).second, function);
}

TEST_CASE("a server or a command speaks for itself") {
  TwoLogins stage;
  stage.run("grant holdfast_operator to \"" + stage.mine + "\", \"" + stage.other + "\"");
  stage.become(stage.mine);
  const auto serve = stage.value("select holdfast.new_uuid()");
  const auto present = "holdfast.process_present('" + serve + "', '" + process_json("serve", 9) + "', '1 hour')";
  stage.run("select " + present);
  stage.become("");
  const auto before = stage.rows();
  for (const auto& call : {present, "holdfast.process_left('" + serve + "', 'mine now')"}) {
    CHECK(stage.attempt(stage.other, call, before).first == kNotYours);
    CHECK(stage.attempt(stage.mine, call, before).first == "");
  }
}

TEST_CASE("an operator's login gives commands in no name but its own") {
  TwoLogins stage;
  stage.run("grant holdfast_operator to \"" + stage.mine + "\", \"" + stage.other + "\"");
  const auto quoted = [](const std::string& id) { return "'" + id + "'::uuid"; };
  const auto crawl = quoted(stage.crawl), worker = quoted(stage.others_worker);
  const auto page = quoted(stage.held.lease.snapshot_id), sealed = quoted(stage.sealed.lease.snapshot_id);
  const auto added = stage.value("select holdfast.new_uuid()");
  const std::vector<std::pair<std::string, std::string>> calls{
      {"crawl_pause", crawl + ", 'forged', 'w'"},
      {"crawl_resume", crawl + ", 'forged', 'w'"},
      {"crawl_priority", crawl + ", 7, 'forged'"},
      {"crawl_scope", crawl + ", '{}', '{}', 'forged'"},
      {"crawl_describe", crawl + ", 'label', null, '{}', '{}', 'forged'"},
      {"snapshot_describe", sealed + ", 'title', null, '{}', '{}', 'forged'"},
      {"snapshot_command", page + ", 'pause', 'forged', 'w'"},
      {"host_set", "'site.test', '1 s', 1, 'forged'"},
      {"host_pause", "'site.test', 'forged', 'w'"},
      {"host_resume", "'site.test', 'forged', 'w'"},
      {"host_cancel", "'site.test', 'forged', 'w'"},
      {"host_forget", "'site.test', 'forged'"},
      {"worker_pause", worker + ", 'forged', 'w'"},
      {"worker_resume", worker + ", 'forged', 'w'"},
      {"worker_cancel", worker + ", 'forged', 'w'"},
      {"worker_drain", worker + ", 'forged', 'w'"},
      {"collection_pause", "'forged', 'w'"},
      {"collection_resume", "'forged', 'w'"},
      {"webhook_set", "'hook', 'https://hook.test/', '{}', 'forged'"},
      {"webhook_enable", "'hook', false, 'forged'"},
      {"webhook_enable", "'hook', true, 'forged'"},
      {"webhook_retry", "'hook', 'forged'"},
      {"webhook_test", "'hook', 'forged'"},
      {"token_add", "'made', 'operator', repeat('ab', 32), null, 'forged'"},
      {"token_revoke", "'made', 'forged'"},
      {"own_token_add", "'own', 'reader', repeat('cd', 32), null, 'forged'"},
      {"own_token_revoke", "'own', 'forged'"},
      {"account_set", "'anna', 'reader', '$y$j9T$' || repeat('a', 40), 'forged'"},
      {"account_enter", "'anna', '127.0.0.1', '$y$j9T$' || repeat('a', 40), 'login-1', repeat('ef', 32), '1 day', "
                        "'forged'"},
      {"account_change", "'anna', '$y$j9T$' || repeat('a', 40), '$y$j9T$' || repeat('b', 40), 'forged'"},
      {"account_out", "'anna', 'forged'"},
      {"account_remove", "'anna', 'forged'"},
      {"persona_set", "'other', '{}', 'forged'"},
      {"persona_save", "'third', 0, '\\x00', '00000001', 'forged'"},
      {"sign_in_ask", "holdfast.new_uuid(), 'other', 'https://site.test/', 'forged'"},
      {"sign_in_open", quoted(stage.sign_in) + ", 'forged', repeat('ab', 32)"},
      {"crawl_retry", "holdfast.new_uuid(), array[" + crawl + "], false, '{}', 'forged'"},
      {"snapshot_remove", sealed + ", 'forged'"},
      {"crawl_cancel", crawl + ", 'forged', 'w'"},
      {"crawl_remove", crawl + ", 'forged'"},
      {"partition_remove", "'2000-01-01', 'forged'"},
      {"crawl_add", "holdfast.new_uuid(), '{\"created_by\": \"forged\"}'"},
      {"crawl_add", "'" + added + "', '{}'"},
      {"schedule_add", "holdfast.new_uuid(), 'l', '1 day', 'UTC', '{https://site.test/}', "
                       "'{\"created_by\": \"forged\"}'"},
      {"watch_set", "holdfast.new_uuid(), '{}', 'forged'"},
      {"watch_change", "holdfast.new_uuid(), null, null, null, '{}', '{}', 'forged'"},
      {"shelf_add", "holdfast.new_uuid(), 'shelf', '', null, 'forged'"},
      {"shelf_change", "holdfast.shelf_find('shelf'), null, 'other shelf', null, null, null, 'forged'"},
      {"shelve", "holdfast.new_uuid(), array[" + sealed + "], 'other shelf', null, 'forged'"},
      {"unshelve", "array[" + sealed + "], 'other shelf', 'forged'"},
      {"share_add", "'12345678', repeat('ab', 32), null, null, 'other shelf', '1 day', 'forged'"},
      {"share_revoke", "'12345678', 'forged'"},
      {"import_pages",
       "jsonb_build_array(jsonb_build_object('id', holdfast.new_uuid(), 'crawl_id', holdfast.new_uuid(), "
       "'url', 'https://site.test/i', 'outcome', 'failed', 'depth', 0, 'fence', 1, 'started_at', now(), "
       "'ended_at', now(), 'worker', 'w', 'bytes', 1, "
       "'files', 1, 'results', '[]'::jsonb, 'source', 's', 'crawl', jsonb_build_object('created_by', 'forged')))"},
      {"api_request_once", "'forged', 'key', repeat('ab', 32), " + crawl}};
  std::set<std::string> covered;
  stage.become(stage.mine);
  for (const auto& [function, arguments] : calls) {
    covered.insert(function);
    const auto how =
        refusal([&] { stage.connection.call("select * from holdfast." + function + "(" + arguments + ")"); });
    CHECK_MESSAGE((how.empty() || how.starts_with("HF")), function, ": ", how);
  }
  stage.become("");
  for (const auto row : stage.connection.call("select tablename from pg_tables where schemaname = 'holdfast'")) {
    const auto table = row.text("tablename");
    CAPTURE(table);
    CHECK(stage.value("select string_agg(t::text, ' ') from holdfast." + table + " t where t::text like '%forged%'") ==
          "");
  }
  CHECK(stage.value("select count(*) > 10 from holdfast.control where by_whom = '" + stage.mine + "'") == "t");
  for (const auto row : stage.connection.call("select distinct proname from pg_proc where pronamespace = "
                                              "'holdfast'::regnamespace and 'p_by' = any (proargnames)"))
    CHECK_MESSAGE(covered.contains(row.text("proname")), row.text("proname"));
  // Who has a live view, another cannot take it by calling himself so.
  stage.become(stage.other);
  CHECK(refusal([&] {
          stage.connection.call("select * from holdfast.sign_in_open('" + stage.sign_in + "', '" + stage.mine +
                                "', repeat('cd', 32))");
        }) == "HF004");
  stage.become("");
  CHECK(stage.value("select created_by from holdfast.crawl where id = '" + added + "'") == stage.mine);
  // The login of a server names its users, and so does the owner.
  const auto add = [&stage] {
    const auto id = stage.value("select holdfast.new_uuid()");
    stage.run("select holdfast.crawl_add($1::uuid, '{\"created_by\": \"token carol\"}')", pg::Params::of(id));
    return stage.value("select created_by from holdfast.v_crawl where id = $1::uuid", pg::Params::of(id));
  };
  CHECK(add() == "token carol");
  stage.run("grant holdfast_serve to \"" + stage.other + "\"");
  stage.become(stage.other);
  CHECK(add() == "token carol");
  stage.run("select holdfast.collection_pause('token carol', '')");
  // A worker and a reader add no crawl.
  stage.become("");
  for (const char* role : {"holdfast_worker", "holdfast_reader"})
    CHECK(refusal([&] {
            stage.run("set role " + std::string(role));
            add();
          }) == kNotYours);
  stage.run("reset role");
  CHECK(stage.value("select by_whom from holdfast.control order by id desc limit 1") == "token carol");
  stage.run("select holdfast.collection_resume('me', '')");
}

TEST_CASE("machines with a login of their own take over from each other") {
  TwoLogins stage;
  stage.expire(stage.worker);
  stage.become(stage.other);
  const auto taken = stage.claim_many(stage.others_worker, 2);
  REQUIRE(taken.size() == 1);
  CHECK(taken.at(0).lease.snapshot_id == stage.held.lease.snapshot_id);
  CHECK(stage.seal(stage.others_worker, taken.at(0)).what == store::PageAnswer::What::sealed);
  // A page whose text was lost is mended by any worker that finds it.
  stage.become("");
  stage.run("delete from holdfast.page_text");
  stage.run("set holdfast.change_sealed = on");
  stage.run("update holdfast.snapshot_sealed set sealed_at = sealed_at - interval '5 minutes'");
  stage.become(stage.other);
  CHECK(stage.value("select holdfast.text_keep($1::uuid, $2::uuid, $3::bigint, 'found')",
                    pg::Params::of(stage.sealed.lease.snapshot_id, stage.crawl, stage.sealed.lease.fence)) == "t");
  CHECK(stage.value("select holdfast.text_keep($1::uuid, $2::uuid, $3::bigint, 'found again')",
                    pg::Params::of(stage.sealed.lease.snapshot_id, stage.crawl, stage.sealed.lease.fence)) == "f");
}
