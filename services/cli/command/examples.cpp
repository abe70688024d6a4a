#include "services/cli/command/examples.hpp"

#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

namespace {

const std::map<std::string_view, std::vector<std::string_view>>& examples() {
  static const std::map<std::string_view, std::vector<std::string_view>> all = {
      {"add",
       {"holdfast add https://example.org/",
        "holdfast add --depth 1 --max-urls 200 --tag reading https://example.org/blog/",
        "holdfast add --bg bookmarks.html", "holdfast list snapshots --tag later | holdfast add -"}},
      {"why",
       {"holdfast why 7f3a", "holdfast why example.org", "holdfast list snapshots --status queued | holdfast why -"}},
      {"events", {"holdfast events --follow", "holdfast events -n 1000 --json | jq 'select(.to_state == \"sealed\")'"}},
      {"log-level",
       {"holdfast log-level debug", "holdfast log-level trace --worker 7f3a", "holdfast log-level default"}},
      {"serve", {"holdfast serve", "holdfast serve --set serve.listen=0.0.0.0:8118"}},
      {"token", {"holdfast token add anna --role operator --expires 90d", "holdfast token list"}},
      {"token add", {"holdfast token add anna --role operator --expires 90d", "holdfast token add grafana"}},
      {"token list", {"holdfast token list"}},
      {"token revoke", {"holdfast token revoke anna"}},
      {"completion",
       {"source <(holdfast completion bash)", "holdfast completion fish >~/.config/fish/completions/holdfast.fish"}},
      {"worker", {"holdfast worker", "holdfast worker --set worker.snapshots=8 --set http.listen=9118"}},
      {"run", {"holdfast run", "holdfast run --daemon", "holdfast run --crawl 7f3a"}},
      {"runner", {"holdfast runner --standby", "holdfast runner --status"}},
      {"pause", {"holdfast pause 7f3a --why 'too fast'", "holdfast pause --host example.org", "holdfast pause --all"}},
      {"resume",
       {"holdfast resume 7f3a", "holdfast resume 7f3a --at 2h", "holdfast resume --host example.org",
        "holdfast resume --all"}},
      {"cancel", {"holdfast cancel 7f3a --yes", "holdfast cancel --worker 02c4"}},
      {"drain", {"holdfast drain 02c4 --wait", "holdfast drain --machine archive-3 --wait"}},
      {"retry",
       {"holdfast retry 7f3a", "holdfast retry 7f3a --failed --plugin wget",
        "holdfast list failures --limit 200 | holdfast retry -"}},
      {"exclude", {"holdfast exclude ads.example.net 7f3a", "holdfast exclude --undo ads.example.net 7f3a"}},
      {"scope", {"holdfast scope 7f3a", "holdfast scope 7f3a --allow example.org --deny '*.example.org'"}},
      {"host", {"holdfast host set example.org --delay 5s --parallel 1", "holdfast host list"}},
      {"host set", {"holdfast host set example.org --delay 5s --parallel 1"}},
      {"host forget", {"holdfast host forget example.org"}},
      {"host list", {"holdfast host list", "holdfast host list --json | jq 'select(.paused)'"}},
      {"edit",
       {"holdfast edit 7f3a --tag reading --untag later", "holdfast edit 7f3a",
        "holdfast edit 7f3a --title 'Solar wind' --notes 'See page 2'",
        "holdfast edit 7f3a --label 'The blog, in May'"}},
      {"plugins",
       {"holdfast plugins install abx --dry-run", "holdfast plugins install abx -p readability,ytdlp",
        "holdfast plugins list --json | jq -r 'select(.lacks != \"\").name'", "holdfast plugins disable pdf"}},
      {"plugins list", {"holdfast plugins list"}},
      {"plugins install",
       {"holdfast plugins install abx --dry-run", "holdfast plugins install abx -p readability,ytdlp"}},
      {"plugins update", {"holdfast plugins update abx --yes"}},
      {"plugins enable", {"holdfast plugins enable pdf"}},
      {"plugins disable", {"holdfast plugins disable pdf screenshot"}},
      {"priority", {"holdfast priority 10 7f3a", "holdfast list crawls --tag later | holdfast priority -5 -"}},
      {"keep", {"holdfast keep 90d 7f3a", "holdfast keep forever 7f3a"}},
      {"remove", {"holdfast remove 7f3a", "holdfast remove --expired --yes"}},
      {"schedule",
       {"holdfast schedule add --every daily https://example.org/news", "holdfast schedule list",
        "holdfast schedule next --every '0 6 * * mon-fri'"}},
      {"schedule add", {"holdfast schedule add --every 'every 30 minutes' --label news https://example.org/news"}},
      {"schedule list", {"holdfast schedule list"}},
      {"schedule pause", {"holdfast schedule pause news"}},
      {"schedule resume", {"holdfast schedule resume news"}},
      {"schedule remove", {"holdfast schedule remove news"}},
      {"schedule run-now", {"holdfast schedule run-now news"}},
      {"schedule next", {"holdfast schedule next news", "holdfast schedule next --every '0 6 * * mon-fri' -n 10"}},
      {"status", {"holdfast status", "holdfast status --follow", "holdfast status --json | jq .snapshots_open"}},
      {"list",
       {"holdfast list crawls", "holdfast list queue --crawl 7f3a",
        "holdfast list failures --limit 200 --csv >failures.csv",
        "holdfast list snapshots --status paused | holdfast resume -"}},
      {"search",
       {"holdfast search solar wind", "holdfast search '\"solar wind\" -moon' --host example.org",
        "holdfast search archiv* --json | jq -r .url", "holdfast search --rebuild"}},
      {"show", {"holdfast show 7f3a", "holdfast show 7f3a --json | jq -r 'select(.type == \"Snapshot\").url'"}},
      {"psql",
       {"holdfast psql", "holdfast psql -c 'select * from v_status'",
        "holdfast psql --role operator -c \"select crawl_priority(id, 10, 'me') from v_crawl where label = 'blog'\""}},
      {"migrate", {"holdfast migrate"}},
      {"config", {"holdfast config", "holdfast config archive.root"}},
      {"version", {"holdfast version --json"}},
      {"check", {"holdfast check && echo all is well"}},
      {"adopt", {"holdfast adopt", "holdfast adopt /srv/archive/2026/05"}},
      {"export",
       {"holdfast export 7f3a -o crawl.wacz", "holdfast export --tag news --since 7d --format warc -o warcs",
        "holdfast export --all -o - | ssh backup 'cat >all.wacz'"}},
      {"import", {"holdfast import archivebox --dry-run ~/archivebox"}},
      {"import warc", {"holdfast import warc crawl.wacz", "holdfast import warc --dry-run crawl.warc.gz"}},
      {"import archivebox",
       {"holdfast import archivebox --dry-run ~/archivebox", "holdfast import archivebox --link ~/archivebox"}},
      {"verify", {"holdfast verify 7f3a", "holdfast verify --all --collect"}},
      {"manual", {"holdfast manual | man -l -", "holdfast manual >/usr/local/share/man/man1/holdfast.1"}},
      {"inspect", {"holdfast inspect lifecycle snapshot", "holdfast inspect reference settings"}},
      {"inspect lifecycle", {"holdfast inspect lifecycle", "holdfast inspect lifecycle crawl --mermaid"}},
      {"inspect reference", {"holdfast inspect reference settings", "holdfast inspect reference views | less"}},
      {"doctor",
       {"holdfast doctor", "holdfast doctor wget screenshot",
        "holdfast doctor --json | jq -r 'select(.state == \"missing\").binary'"}},
      {"binary", {"holdfast binary list --status queued", "holdfast binary recheck wget"}},
      {"binary list", {"holdfast binary list", "holdfast binary list --name chrom"}},
      {"binary recheck", {"holdfast binary recheck", "holdfast binary recheck wget --host archive-3"}},
      {"persona",
       {"holdfast persona import work cookies.txt --host intranet.example.org",
        "holdfast add --persona work https://intranet.example.org/"}},
      {"persona list", {"holdfast persona list"}},
      {"persona show", {"holdfast persona show work"}},
      {"persona set",
       {"holdfast persona set work --host intranet.example.org --option USER_AGENT='Mozilla/5.0 ...'",
        "holdfast persona set work --unset USER_AGENT --worker-label office"}},
      {"persona import",
       {"holdfast persona import work cookies.txt",
        "holdfast persona import press ~/.mozilla/firefox/*.default-release --host press.example.com"}},
      {"persona export", {"holdfast persona export work >state.json", "holdfast persona export work --cookies"}},
      {"persona rotate", {"holdfast persona rotate"}},
      {"persona sign-in", {"holdfast persona sign-in press https://press.example.com/login"}},
      {"persona remove", {"holdfast persona remove work"}},
      {"logs", {"holdfast logs 7f3a", "holdfast logs --follow 7f3a", "holdfast logs 7f3a --plugin wget"}},
      {"webhook",
       {"holdfast webhook add ops https://hooks.example.net/holdfast --on snapshot.failed,worker.lapsed",
        "holdfast webhook test ops", "holdfast list webhooks", "holdfast list deliveries --status given_up",
        "holdfast why ops"}},
      {"webhook add",
       {"holdfast webhook add ops https://hooks.example.net/holdfast --on snapshot.failed,worker.lapsed"}},
      {"webhook list", {"holdfast webhook list"}},
      {"webhook pause", {"holdfast webhook pause ops"}},
      {"webhook resume", {"holdfast webhook resume ops"}},
      {"webhook retry", {"holdfast webhook retry ops"}},
      {"webhook test", {"holdfast webhook test ops && holdfast list deliveries --limit 1"}},
      {"webhook remove", {"holdfast webhook remove ops"}},
  };
  return all;
}

void add_to(CLI::App& command, const std::string& name) {
  const auto found = examples().find(name);
  if (found != examples().end() && command.get_footer().find("Examples:") == std::string::npos) {
    std::string text = command.get_footer().empty() ? "" : command.get_footer() + "\n\n";
    text += "Examples:";
    for (const auto example : found->second)
      (text += "\n  ") += example;
    command.footer(text);
  }
  for (auto* inner : command.get_subcommands([](CLI::App*) { return true; }))
    add_to(*inner, name.empty() ? inner->get_name() : name + " " + inner->get_name());
}

} // namespace

void add_examples(CLI::App& app) { add_to(app, ""); }

} // namespace holdfast::cli
