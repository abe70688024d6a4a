// One snapshot: what its hooks do, in which order, and what is left of it in the database and on disk.

#include "lib/base/address.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/url.hpp"
#include "lib/hooks/environment.hpp"
#include "tests/worker/stage.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <fstream>
#include <set>

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr const char* kResults = "select plugin, hook_name, status, output, error, exit_code from holdfast.v_result "
                                 "order by started_at, plugin";

} // namespace

TEST_CASE("a page is archived: rows, files, manifest, index and pages agree") {
  WorkerStage stage;
  stage.hook("page", "on_Snapshot__10_page.sh",
             "echo \"<p>$url</p>\" >page.html; mkdir sub; echo x >'sub/two words.txt'\n"
             "echo '{\"type\":\"ArchiveResult\",\"status\":\"succeeded\",\"output_str\":\"page.html\"}'");
  stage.hook("title", "on_Snapshot__20_title.sh",
             "echo T >title.txt; echo '{\"type\":\"ArchiveResult\",\"status\":\"succeeded\",\"output_str\":\"A "
             "<b>title</b>\"}'");
  store::NewCrawl crawl;
  crawl["label"] = "one";
  crawl["tags"] = {"kept"};
  const std::string id = stage.add({WorkerStage::url("page")}, crawl);
  stage.work();

  CHECK(stage.table(kResults) == "page|on_Snapshot__10_page|succeeded|page.html||0\n"
                                 "title|on_Snapshot__20_title|succeeded|A <b>title</b>||0");
  CHECK(stage.table("select status, outcome, title, tags, attempts, fence, depth from holdfast.v_snapshot") ==
        "sealed|succeeded|A <b>title</b>|{kept}|1|1|0");
  CHECK(stage.table("select status, outcome, total, open, succeeded from holdfast.v_crawl") ==
        "sealed|succeeded|1|0|1");
  CHECK(stage.value("select string_agg(f ->> 'path', ',' order by f ->> 'path') from holdfast.v_result, "
                    "jsonb_array_elements(output_files) f where plugin = 'page'") == "page.html,sub/two words.txt");
  CHECK(stage.number("select sum(wall_ms) from holdfast.archive_result") >= 0);
  CHECK(stage.number("select min(peak_memory_bytes) from holdfast.archive_result") > 0);

  const auto directory = stage.published(WorkerStage::url("page"));
  CHECK(directory.filename() == "a1");
  CHECK(directory.parent_path().filename() == stage.value("select id from holdfast.snapshot"));
  CHECK(read_file(directory / "page/page.html") == "<p>https://site.test/page</p>\n");
  stage.check_disk_and_rows();
  CHECK(stage.value("select manifest_sha256 from holdfast.snapshot_sealed") ==
        archive::sha256_file(directory / "manifest-sha256.txt"));

  std::ifstream index(directory / "index.jsonl");
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(index, line);)
    lines.push_back(nlohmann::json::parse(line));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["url"] == WorkerStage::url("page"));
  CHECK(lines[1]["plugin"] == "page");
  CHECK(lines[2]["plugin"] == "title");
  const std::string page = read_file(directory / "index.html");
  CHECK(page.find("A &lt;b&gt;title&lt;/b&gt;") != std::string::npos);
  CHECK(page.find("page/page.html") != std::string::npos);

  // The crawl's page is made after the last seal.
  const std::string crawl_page = read_file(stage.archive() / "crawls" / id / "index.html");
  CHECK(crawl_page.find("../../" + directory.lexically_relative(stage.archive()).string()) != std::string::npos);
}

TEST_CASE(
    "hooks run in order: foreground awaited, background until its first line, ended after the last foreground hook") {
  WorkerStage stage;
  const auto log = [](const std::string& text) { return "echo '" + text + "' >>\"$gates/log\"\n"; };
  stage.hook("b", "on_Snapshot__10_b.sh", log("first") + "sleep 0.2\n" + log("first done") + "echo x >b.txt");
  stage.hook("c", "on_Snapshot__20_c.daemon.bg.sh",
             "trap '" + std::string("echo \"background ends\" >>\"$gates/log\"; exit 0") + "' TERM\n" +
                 log("background starts") + "sleep 0.3\n" + log("background is ready") +
                 "echo ready\necho y >c.txt\nfor ((i = 0; i < 6000; i++)); do sleep 0.01; done");
  stage.hook("a", "on_Snapshot__30_a.sh", log("second") + "sleep 0.2\necho z >a.txt\n" + log("second done"));
  stage.hook("a", "on_Snapshot__last.sh", log("without a number") + "echo z >a2.txt");
  stage.add({WorkerStage::url("page")});
  stage.work();
  CHECK(read_file(stage.dir / "gates/log") == "first\nfirst done\nbackground starts\nbackground is ready\nsecond\n"
                                              "second done\nwithout a number\nbackground ends\n");
  CHECK(stage.table("select plugin, hook_name, status, background from holdfast.archive_result order by started_at") ==
        "b|on_Snapshot__10_b|succeeded|f\nc|on_Snapshot__20_c.daemon.bg|succeeded|t\n"
        "a|on_Snapshot__30_a|succeeded|f\na|on_Snapshot__last|succeeded|f");
  // The files of two hooks of one plugin are told apart.
  CHECK(stage.table("select hook_name, output_files -> 0 ->> 'path', jsonb_array_length(output_files) from "
                    "holdfast.archive_result where plugin = 'a' order by 1") ==
        "on_Snapshot__30_a|a.txt|1\non_Snapshot__last|a2.txt|1");
  CHECK(stage.value("select outcome from holdfast.v_snapshot") == "succeeded");
  stage.check_disk_and_rows();
}

TEST_CASE(
    "background hooks are asked to end with the last other hook, all at once, and each has the rest of its time") {
  WorkerStage stage;
  stage.options.kill_grace = 50ms;
  // Each answers TERM when the other has been asked too, and takes longer for it than kill_grace.
  for (const std::string name : {"one", "two"})
    stage.hook(name, "on_Snapshot__10_" + name + ".daemon.bg.sh",
               "trap ': >\"$gates/" + name +
                   ".asked\"; until [[ -e $gates/one.asked && -e $gates/two.asked ]]; do "
                   "sleep 0.05; done; sleep 0.5; echo x >late.txt; exit 0' TERM\n"
                   "echo ready; for ((i = 0; i < 6000; i++)); do sleep 0.01; done");
  stage.hook("page", "on_Snapshot__20_page.sh", "echo x >x.txt");
  stage.add({WorkerStage::url("page")});
  stage.work();
  CHECK(stage.table("select plugin, status, exit_signal, output_bytes from holdfast.v_result order by plugin") ==
        "one|succeeded||2\npage|succeeded||2\ntwo|succeeded||2");
}

TEST_CASE("background hooks alone get the time they need") {
  WorkerStage stage;
  stage.hook("slow", "on_Snapshot__10_slow.finite.bg.sh", "echo ready; sleep 0.5; echo done >done.txt");
  stage.add({WorkerStage::url("page")});
  stage.work();
  CHECK(stage.table("select plugin, status, exit_code from holdfast.v_result") == "slow|succeeded|0");
  CHECK(read_file(stage.published(WorkerStage::url("page")) / "slow/done.txt") == "done\n");
}

TEST_CASE("a daemon alone is told to end when it is ready, and beside others when they have ended") {
  WorkerStage stage;
  stage.hook("waits", "on_Snapshot__10_waits.daemon.bg.sh",
             "trap 'ls ../slow >seen.txt; exit 0' TERM; echo ready; read -r _ < <(sleep 3600)");
  stage.add({WorkerStage::url("alone")});
  stage.work();
  stage.hook("slow", "on_Snapshot__20_slow.finite.bg.sh", "echo ready; sleep 0.5; echo done >done.txt");
  stage.add({WorkerStage::url("beside")});
  stage.work();
  CHECK(stage.table("select plugin, status from holdfast.v_result order by plugin") ==
        "slow|succeeded\nwaits|succeeded\nwaits|succeeded");
  CHECK(read_file(stage.published(WorkerStage::url("beside")) / "waits/seen.txt").starts_with("done.txt"));
}

TEST_CASE("a page whose time is over is sealed with what it has: hooks that run are ended, the others skipped") {
  WorkerStage stage;
  stage.options.snapshot_timeout = 1500ms;
  stage.hook("first", "on_Snapshot__10_first.sh", "echo x >first.txt");
  stage.hook("beside", "on_Snapshot__20_beside.daemon.bg.sh",
             "trap 'exit 0' TERM; echo ready; echo y >beside.txt; for ((i = 0; i < 6000; i++)); do sleep 0.01; done");
  stage.hook("slow", "on_Snapshot__30_slow.sh", "for ((i = 0; i < 6000; i++)); do sleep 0.01; done");
  stage.hook("never", "on_Snapshot__40_never.sh", "echo z >never.txt");
  stage.add({WorkerStage::url("page")});
  stage.work();
  CHECK(stage.table("select plugin, status, error from holdfast.v_result order by hook_name") ==
        "first|succeeded|\nbeside|succeeded|\nslow|failed|killed by SIGTERM; the time of the page was over\n"
        "never|skipped|the time of the page was over");
  CHECK(stage.value("select outcome || ': ' || reason from holdfast.v_snapshot") ==
        "partial: its time was over (worker.snapshot_timeout)");
  stage.check_disk_and_rows();
}

TEST_CASE("what a hook says of its machine holds for the later hooks of its page, and for no other page") {
  WorkerStage stage;
  const auto plugin = [&](const std::string& name, const std::string& hook, const std::string& script) {
    stage.hook(name, hook, script);
    std::ofstream(stage.dir / "plugins" / name / "config.json")
        << R"({"properties": {"OLDTOOL_BINARY": {"type": "string", "default": "oldtool"},
                              "OLD_WORD": {"type": "string", "default": "none"}}})";
  };
  plugin("old", "on_Snapshot__10_old.sh",
         "[[ $url == */one ]] || exit 0\n"
         "echo '{\"type\":\"Machine\",\"config\":{\"OLD_WORD\":\"told\",\"LD_PRELOAD\":\"/tmp/evil.so\"}}'\n"
         "echo '{\"type\":\"Binary\",\"name\":\"oldtool\",\"abspath\":\"/bin/true\",\"binprovider\":\"env\"}'");
  plugin("say", "on_Snapshot__20_say.sh", "echo \"$OLD_WORD $OLDTOOL_BINARY ${LD_PRELOAD:-safe}\" >said.txt");
  stage.options.slots = 1;
  stage.add({WorkerStage::url("one"), WorkerStage::url("two")});
  stage.work();
  CHECK(read_file(stage.published(WorkerStage::url("one")) / "say/said.txt") == "told /bin/true safe\n");
  CHECK(read_file(stage.published(WorkerStage::url("two")) / "say/said.txt") == "none oldtool safe\n");
}

TEST_CASE("each way a hook can end is told apart") {
  WorkerStage stage;
  stage.hook("a_good", "on_Snapshot__10_good.sh", "echo x >x.txt");
  stage.hook("b_failed", "on_Snapshot__11_failed.sh", "echo 'the <reason> it failed' >&2; exit 3");
  stage.hook("c_skipped", "on_Snapshot__12_skipped.sh", "exit 10");
  stage.hook("d_nothing", "on_Snapshot__13_nothing.sh", "exit 0");
  stage.hook("e_says_failed", "on_Snapshot__14_says.sh",
             "echo x >x.txt; echo '{\"type\":\"ArchiveResult\",\"status\":\"failed\",\"error\":\"said so\"}'");
  stage.hook("f_missing", "on_Snapshot__15_missing.sh", "echo x >x.txt");
  stage.config("f_missing",
               R"({"required_binaries": [{"name": "no-such-program-of-holdfast", "binproviders": "env,apt"}]})");
  stage.hook("g_slow", "on_Snapshot__16_slow.sh", "echo half >half.txt; sleep 60");
  stage.config("g_slow", R"({"properties": {"G_SLOW_TIMEOUT": {"type": "integer", "default": 1}}})");
  stage.hook("h_crash", "on_Snapshot__17_crash.sh", "kill -SEGV $$");
  stage.hook("i_noise", "on_Snapshot__18_noise.sh", "printf 'not json\\n{\\n[1]\\n\\0\\xff\\n'; echo x >x.txt");
  stage.hook("j_gone", "on_Snapshot__19_gone.sh",
             "until rm -rf \"$PWD\"; do :; done"); // files of its runner may appear meanwhile
  stage.hook("k_bad_interpreter", "on_Snapshot__20_bad.sh", "true");
  stage.dir.write("plugins/k_bad_interpreter/on_Snapshot__20_bad.sh", "#!/no/such/interpreter\n", true);
  stage.add({WorkerStage::url("page")});
  stage.work();

  CHECK(stage.table("select plugin, status, exit_code, exit_signal from holdfast.archive_result order by plugin") ==
        "a_good|succeeded|0|\nb_failed|failed|3|\nc_skipped|skipped|10|\nd_nothing|noresults|0|\n"
        "e_says_failed|failed|0|\nf_missing|skipped||\ng_slow|failed||15\nh_crash|failed||11\ni_noise|succeeded|0|\n"
        "j_gone|noresults|0|\nk_bad_interpreter|failed||");
  const auto error = [&](const std::string& plugin) {
    return stage.value("select error from holdfast.archive_result where plugin = $1", pg::Params::of(plugin));
  };
  CHECK(error("b_failed").find("the <reason> it failed") != std::string::npos);
  CHECK(error("e_says_failed") == "said so");
  CHECK(error("f_missing").find("no-such-program-of-holdfast") != std::string::npos);
  CHECK(error("g_slow").find("timed out") != std::string::npos);
  CHECK(error("k_bad_interpreter") != "");
  CHECK(stage.table("select status, outcome, attempts from holdfast.v_snapshot") == "sealed|partial|1");
  CHECK(stage.table("select outcome, partial, failed from holdfast.v_crawl") == "partial|1|0");
  stage.check_disk_and_rows();
  const std::string page = read_file(stage.published(WorkerStage::url("page")) / "index.html");
  CHECK(page.find("the &lt;reason&gt; it failed") != std::string::npos);
  CHECK(page.find("no-such-program-of-holdfast") != std::string::npos);
}

TEST_CASE("a snapshot in which nothing succeeded has failed, and says so") {
  WorkerStage stage;
  stage.hook("bad", "on_Snapshot__10_bad.sh", "echo no >&2; exit 1");
  stage.hook("none", "on_Snapshot__20_none.sh", "exit 0");
  stage.add({WorkerStage::url("page")});
  stage.work();
  CHECK(stage.table("select outcome, reason, attempts from holdfast.v_snapshot") == "failed|no hook succeeded|1");
  CHECK(stage.table("select outcome, failed from holdfast.v_crawl") == "failed|1");
  stage.check_disk_and_rows(); // it is kept: why it failed is in its page
}

TEST_CASE("what runs is seen while it runs: at once, with its pid, and no longer than it runs") {
  WorkerStage stage;
  stage.hook("back", "on_Snapshot__05_back.daemon.bg.sh",
             "echo $$ >\"$gates/back.pid\"; echo ready; while :; do sleep 0.05; done");
  stage.hook("page", "on_Snapshot__10_page.sh", "echo $$ >\"$gates/page.pid\"; gate one; echo x >x.txt");
  stage.hook("next", "on_Snapshot__20_next.sh", "gate two; echo x >x.txt");
  stage.add({WorkerStage::url("page")});
  auto& worker = stage.start();
  const char* running = "select plugin, hook_name, background, pid from holdfast.v_running order by plugin";
  const auto pid = [&](const char* file) {
    const auto text = read_file(stage.dir / "gates" / file);
    return text.substr(0, text.find('\n'));
  };
  stage.until_arrived("one");
  stage.until("both are seen, with their pids", [&] {
    return stage.table(running) == "back|on_Snapshot__05_back.daemon.bg|t|" + pid("back.pid") +
                                       "\npage|on_Snapshot__10_page|f|" + pid("page.pid");
  });
  CHECK(stage.table("select plugin, status, ended_at is null from holdfast.v_result order by plugin") ==
        "back|started|t\npage|started|t");
  CHECK(stage.number("select count(*) from holdfast.archive_result") == 0);
  stage.open("one");
  stage.until("the next is seen",
              [&] { return stage.table("select plugin from holdfast.v_running order by plugin") == "back\nnext"; });
  stage.until("the end of the first is seen, while its page is in work", [&] {
    return stage.table("select status from holdfast.v_result where ended_at is not null") == "succeeded";
  });
  CHECK(stage.table("select plugin, exit_code, wall_ms >= 0, output_bytes, ended_at >= started_at, pid from "
                    "holdfast.v_result where ended_at is not null") == "page|0|t|2|t|" + pid("page.pid"));
  CHECK(stage.table("select plugin, status from holdfast.v_result where ended_at is null order by plugin") ==
        "back|started\nnext|started");
  CHECK(stage.number("select count(*) from holdfast.archive_result") == 0);
  stage.run("truncate holdfast.running_hook"); // as after a crash of the database
  stage.until("it is told again", [&] { return stage.number("select count(*) from holdfast.v_running") == 2; });
  stage.open("two");
  stage.until_sealed();
  stage.until("nothing runs", [&] { return stage.number("select count(*) from holdfast.running_hook") == 0; });
  stage.leave(worker);
  CHECK(stage.table("select plugin, status from holdfast.v_result order by plugin") ==
        "back|noresults\nnext|succeeded\npage|succeeded");
}

TEST_CASE("a hook that stands still is seen before it is ended for that") {
  WorkerStage stage;
  stage.options.hook_limits.stall = 20s;
  stage.hook("idle", "on_Snapshot__10_idle.sh", "echo begins; exec sleep 600");
  stage.hook("wait", "on_Snapshot__05_wait.bg.sh", "echo ready; exec sleep 600"); // may wait
  stage.add({WorkerStage::url("page")});
  auto& worker = stage.start();
  stage.until("it is seen", [&] {
    return stage.table("select plugin, no_progress_since between started_at and now() from holdfast.v_running where "
                       "no_progress_since is not null") == "idle|t";
  });
  CHECK(stage.value("select reason from holdfast.why((select snapshot_id from holdfast.snapshot_queue))")
            .find("which has shown no progress since") != std::string::npos);
  stage.leave(worker, base::Strength::stop);
}

TEST_CASE("options reach the hooks: the worker's, then the crawl's; the database stays unknown to them") {
  WorkerStage stage;
  stage.hook("env", "on_Snapshot__10_env.sh", "env >env.txt");
  stage.config("env", R"({"properties": {"ENV_ONE": {"type": "string", "default": "schema"},
    "ENV_TWO": {"type": "string", "default": "schema"}, "ENV_THREE": {"type": "string", "default": "schema"}}})");
  stage.options.hook_options = {{"ENV_TWO", "worker"}, {"ENV_THREE", "worker"}};
  store::NewCrawl crawl;
  crawl["options"] = {{"ENV_THREE", "crawl"}};
  stage.add({WorkerStage::url("page")}, crawl);
  setenv("PGPASSWORD", "hunter2", 1);
  stage.work();
  unsetenv("PGPASSWORD");
  const std::string env = read_file(stage.published(WorkerStage::url("page")) / "env/env.txt");
  CHECK(env.find("ENV_ONE=schema\n") != std::string::npos);
  CHECK(env.find("ENV_TWO=worker\n") != std::string::npos);
  CHECK(env.find("ENV_THREE=crawl\n") != std::string::npos);
  CHECK(env.find("hunter2") == std::string::npos);
  CHECK(env.find("dbname=") == std::string::npos);
}

TEST_CASE("an address of one's own network is refused, by name and by number, unless it is allowed") {
  WorkerStage stage;
  stage.hook("page", "on_Snapshot__10_page.sh", "echo x >x.txt");
  stage.options.allow_private = false;
  store::NewCrawl crawl;
  stage.add({"http://127.0.0.1/"}, crawl);
  stage.add({"http://[::1]:8080/"}, crawl);
  stage.add({"http://localhost/"}, crawl);
  stage.add({"http://192.168.1.1/admin"}, crawl);
  std::int64_t refused = 4;
  char name[256] = {};
  gethostname(name, sizeof name - 1); // no private name by its looks, but the hosts file mostly leads it home
  const auto is_private = [&] {
    try {
      const auto addresses = base::resolve_host(name);
      return !addresses.empty() && base::is_private_address(addresses.front());
    } catch (const base::Error&) {
      return false;
    }
  };
  if (!base::is_private_host(name) && is_private()) {
    stage.add({std::string("http://") + name + "/"}, crawl);
    ++refused;
  }
  stage.work();
  CHECK(stage.number("select count(*) from holdfast.v_snapshot where outcome = 'refused' and directory is null and "
                     "reason like '%urls.allow_private%'") == refused);
  CHECK(stage.number("select count(*) from holdfast.archive_result") == 0);
  CHECK(stage.number("select count(*) from holdfast.v_crawl where status = 'sealed' and failed = 1") == refused);
  CHECK(stage.attempts_on_disk().empty());

  // A name that does not exist is no refusal; a name server that cannot be asked is neither.
  const auto unknown = [] {
    try {
      base::resolve_host("nobody.invalid");
    } catch (const base::Error& error) {
      return error.error_class() == base::ErrorClass::refused;
    }
    return false;
  };
  if (unknown()) {
    stage.add({"http://nobody.invalid/"}, crawl);
    stage.work();
    CHECK(stage.table("select outcome, attempts from holdfast.v_snapshot where reason = "
                      "'nobody.invalid: the host name does not resolve'") == "failed|1");
  }

  stage.options.allow_private = true;
  stage.add({"http://127.0.0.1/allowed"}, crawl);
  stage.work();
  CHECK(stage.table("select outcome from holdfast.v_snapshot where url = 'http://127.0.0.1/allowed'") == "succeeded");
}

TEST_CASE("a page that leads into one's own network is refused before the next hook, and nothing of it is kept") {
  WorkerStage stage;
  stage.hook("first", "on_Snapshot__10_first.sh",
             "case $url in */inside) to=http://10.0.0.1:8080/admin ;; */named) to=http://localhost/ ;; "
             "*/unknown) to=http://nobody.invalid/ ;; *) to=http://9.9.9.9/ ;; esac\n"
             R"(echo "{\"type\":\"Redirect\",\"url\":\"$url\",\"location\":\"$to\",\"status\":302}"; echo x >x.txt)");
  stage.hook("second", "on_Snapshot__20_second.sh", "echo x >x.txt");
  stage.options.allow_private = false;
  store::NewCrawl crawl;
  stage.add({"http://8.8.8.8/inside", "http://8.8.8.8/named", "http://8.8.8.8/unknown", "http://8.8.8.8/outside"},
            crawl);
  stage.work();
  CHECK(stage.table(
            "select url, outcome, coalesce(reason, ''), directory is not null from holdfast.v_snapshot order by url") ==
        "http://8.8.8.8/inside|refused|it redirects to http://10.0.0.1:8080/admin, and \"10.0.0.1\" is not a public "
        "host|f\n"
        "http://8.8.8.8/named|refused|it redirects to http://localhost/, and \"localhost\" is not a public host|f\n"
        "http://8.8.8.8/outside|succeeded||t\n"
        "http://8.8.8.8/unknown|succeeded||t");
  CHECK(stage.number("select count(*) from holdfast.archive_result where plugin = 'second'") == 2);
  stage.check_disk_and_rows();
}

TEST_CASE("only the plugins that a crawl asks for are run, with what they need") {
  WorkerStage stage;
  stage.hook("base", "on_Snapshot__10_base.sh", "echo x >x.txt");
  stage.hook("wanted", "on_Snapshot__20_wanted.sh", "echo x >x.txt");
  stage.config("wanted", R"({"required_plugins": ["base"]})");
  stage.hook("other", "on_Snapshot__15_other.sh", "echo x >x.txt");
  store::NewCrawl crawl;
  crawl["plugins"] = {"wanted"};
  stage.add({WorkerStage::url("page")}, crawl);
  stage.work();
  CHECK(stage.table("select plugin from holdfast.archive_result order by started_at") == "base\nwanted");
}

TEST_CASE("a rate limit is believed for the hosts of the page and of its redirects only") {
  WorkerStage stage;
  stage.hook("page", "on_Snapshot__10_page.sh", R"(echo x >page.txt
cat <<'END'
{"type":"Redirect","url":"https://site.test/page","location":"https://www.site.test/page","status":301}
{"type":"RateLimit","host":"www.site.test","status":429,"retry_after":3600}
{"type":"RateLimit","host":"victim.test","status":429,"retry_after":3600}
END)");
  stage.hook("later", "on_Snapshot__20_later.sh", R"(echo x >page.txt
echo '{"type":"RateLimit","host":"site.test","status":503,"retry_after":3600}')");
  stage.add({WorkerStage::url("page")});
  stage.work();
  CHECK(stage.table("select name from holdfast.host where backoff_until > clock_timestamp() order by name") ==
        "site.test\nwww.site.test");
  CHECK(stage.table("select plugin, status, coalesce(error, '') from holdfast.archive_result order by started_at") ==
        "page|succeeded|the rate limit of victim.test is ignored: the page does not lead there\nlater|succeeded|");
}

TEST_CASE("a crawl sets what plugins declare and is not the workers' own, and nothing else") {
  WorkerStage stage;
  stage.hook("page", "on_Snapshot__10_page.sh", "env >env.txt");
  stage.config("page", R"({"properties": {
    "PAGE_WORD": {"type": "string", "x-aliases": ["OLD_WORD"]}, "PAGE_TOOL": {"type": "string", "x-scope": "worker"},
    "PAGE_BINARY": {"type": "string"}, "PAGE_ARGS": {"type": "array"}, "PAGE_DIR": {"type": "string"}}})");
  const std::set<std::string> allowed{"PAGE_WORD", "OLD_WORD", "PAGE_TIMEOUT", "TIMEOUT", "USER_AGENT", "TZ"};
  const std::vector<std::string> others{
      "PAGE_TOOL",          "PAGE_BINARY", "PAGE_ARGS",    "PAGE_DIR",        "WGET_ARGS",  "CHROME_SANDBOX",
      "COOKIES_FILE",       "PATH",        "ENV",          "BASH_ENV",        "LD_PRELOAD", "PYTHONPATH",
      "PERL5LIB",           "RUBYOPT",     "NODE_OPTIONS", "GIT_SSH_COMMAND", "WGETRC",     "HTTP_PROXY",
      "HOLDFAST_LOG_LEVEL", "PGHOST",      "HOME",         "PAGE_UNDECLARED", "UNKNOWN"};
  store::NewCrawl crawl;
  auto& given = crawl["options"];
  for (const auto& name : allowed)
    given[name] = "77";
  for (const auto& name : others) {
    CAPTURE(name);
    CHECK(hooks::is_workers_own(name) ==
          (stage.value("select holdfast.option_of_workers($1)", pg::Params::of(name)) == "t"));
    // The database refuses what is never a crawl's. Of the rest, the worker knows.
    if (!hooks::is_workers_own(name)) given[name] = "evil";
  }
  stage.add({WorkerStage::url("page")}, crawl);
  stage.run("update holdfast.crawl set options = options || '{\"PAGE_BINARY\": \"evil\", \"PAGE_ARGS\": \"evil\"}'");
  stage.work();
  const auto environment = read_file(stage.published(WorkerStage::url("page")) / "page/env.txt");
  CHECK(environment.find("evil") == std::string::npos);
  for (const auto& name : allowed)
    CHECK_MESSAGE(environment.find("\n" + name + "=77\n") != std::string::npos, name << " in " << environment);
}
