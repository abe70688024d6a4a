#include "services/cli/look.hpp"

#include "lib/base/error.hpp"
#include "lib/store/control.hpp"
#include "lib/store/live.hpp"
#include "lib/store/view.hpp"
#include "lib/store/why.hpp"
#include "services/cli/checks.hpp"
#include "services/cli/input.hpp"
#include "services/cli/output.hpp"
#include "services/cli/times.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <signal.h>

#include <chrono>
#include <deque>
#include <iostream>
#include <memory>
#include <set>
#include <thread>

namespace holdfast::cli {

namespace {

volatile std::sig_atomic_t ending = 0;

void note_end(int) { ending = 1; }

constexpr std::chrono::milliseconds kPoll{300};
constexpr std::int64_t kOverlap = 1000; // an event may become visible after a later one

} // namespace

bool told_to_end() {
  static const bool noting = [] {
    struct sigaction action {};
    action.sa_handler = note_end;
    for (const int number : {SIGINT, SIGTERM, SIGHUP})
      sigaction(number, &action, nullptr);
    return true;
  }();
  return noting && ending != 0;
}

int why(Context& context, const std::vector<std::string>& names) {
  auto& connection = context.connection();
  bool unknown = false;
  for (const auto& name : read_ids(names)) {
    const auto answer = store::why(connection, name);
    unknown = unknown || answer.kind == "nothing";
    const auto facts = nlohmann::ordered_json::parse(answer.facts);
    if (context.json()) {
      nlohmann::ordered_json line{
          {"type", "Why"}, {"kind", answer.kind}, {"id", answer.id}, {"reason", answer.reason}, {"facts", facts}};
      std::cout << line.dump() << '\n';
      continue;
    }
    std::cout << printable(with_local_times(answer.reason)) << '\n';
    std::vector<std::pair<std::string, std::string>> fields;
    const auto shown = [](const nlohmann::ordered_json& value) {
      return value.is_string() ? with_local_times(written_interval(local_time(value.get<std::string>())))
                               : value.dump();
    };
    for (const auto& [key, value] : facts.items()) {
      if (value.is_array() && !value.empty() && value[0].is_object()) {
        for (const auto& one : value) {
          std::string text;
          for (const auto& [inner, what] : one.items())
            if (!(what.is_string() && what.get<std::string>().empty()))
              text += (text.empty() ? "" : ", ") + inner + " " + shown(what);
          fields.emplace_back("  " + key, text);
        }
      } else {
        fields.emplace_back("  " + key, shown(value));
      }
    }
    print_fields(fields);
  }
  std::cout << std::flush;
  return unknown ? static_cast<int>(base::ErrorClass::refused) : base::kExitSuccess;
}

int events(Context& context, const EventOptions& options) {
  auto& connection = context.connection();
  const std::string crawl = options.crawl.empty() ? "" : store::find(connection, options.crawl).crawl_id;
  const auto print = [&](const store::Event& event) {
    if (context.json()) {
      auto line = nlohmann::ordered_json{{"type", "Event"}};
      line.update(nlohmann::ordered_json::parse(event.json));
      std::cout << line.dump() << '\n';
      return;
    }
    const auto& id = event.object_id;
    std::cout << local_time(event.at) << "  " << fitted(event.lifecycle + "             ", 13) << " "
              << id.substr(id.size() - 8) << "  " << event.event << " → " << event.to_state;
    if (const auto detail = printable(with_local_times(event.detail)); !detail.empty()) std::cout << ": " << detail;
    std::cout << '\n';
  };
  store::ListQuery query;
  query.view = "events";
  query.limit = options.limit;
  if (!crawl.empty()) query.crawl_id = crawl;
  const auto last = store::last_event(connection);
  const auto recent = store::list(connection, query); // newest first
  std::set<std::int64_t> seen;
  std::int64_t newest = last;
  if (!recent.empty()) {
    const auto from = recent[recent.size() - 1].integer("id");
    const auto rows = store::events_after(connection, from - 1, options.limit, crawl);
    const auto wanted = static_cast<std::size_t>(options.limit);
    for (std::size_t i = rows.size() > wanted ? rows.size() - wanted : 0; i < rows.size(); ++i) {
      print(rows[i]);
      seen.insert(rows[i].id);
      newest = std::max(newest, rows[i].id);
    }
  }
  std::cout << std::flush;
  if (!options.follow) return base::kExitSuccess;

  // What was there before and is not wanted: all up to here that is visible now.
  {
    const auto rows = store::events_after(connection, newest - kOverlap, kOverlap * 2, crawl);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].id <= newest) seen.insert(rows[i].id);
  }
  std::unique_ptr<pg::Connection> own; // after the first one was lost
  auto* session = &connection;
  bool lost = false;
  while (!told_to_end()) {
    try {
      if (session->broken()) {
        own = std::make_unique<pg::Connection>(context.dsn());
        session = own.get();
      }
      const auto rows = store::events_after(*session, newest - kOverlap, kOverlap * 2, crawl);
      if (lost) std::cerr << "holdfast: the database is back\n";
      lost = false;
      std::int64_t told = -1;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto id = rows[i].id;
        if (id != told && !seen.insert(id).second) continue;
        told = id; // what one call did to many comes in one answer, under one id
        print(rows[i]);
        newest = std::max(newest, id);
      }
      std::cout << std::flush;
      seen.erase(seen.begin(), seen.lower_bound(newest - 2 * kOverlap));
      if (!std::cout) return base::kExitSuccess; // whoever read us has gone
    } catch (const base::Error& error) {
      if (error.error_class() != base::ErrorClass::temporary && error.error_class() != base::ErrorClass::unavailable)
        throw;
      if (!lost) std::cerr << "holdfast: " << error.what() << "; trying again\n";
      lost = true;
    }
    std::this_thread::sleep_for(kPoll);
  }
  return base::kExitInterrupted;
}

int log_level(Context& context, const std::string& level, const std::string& node) {
  auto& connection = context.connection();
  const std::string id = node.empty() ? "" : store::find(connection, node).id;
  store::log_level_set(connection, id, level == "default" ? "" : level);
  if (context.json())
    std::cout << nlohmann::ordered_json{{"type", "LogLevel"}, {"level", level}, {"node", id}}.dump() << std::endl;
  else
    std::cout << "log level of " << (id.empty() ? "every node and runner" : id) << ": " << level << std::endl;
  return base::kExitSuccess;
}

void add_look_verbs(CLI::App& app, Verb& verb) {
  {
    auto names = std::make_shared<std::vector<std::string>>();
    auto* command =
        app.add_subcommand("why", "Why a crawl, snapshot, process or host is where it is: one sentence, and the facts");
    command
        ->add_option("id", *names,
                     "Its id, the first or last few digits of it, or a host; - reads them from standard input")
        ->required();
    command->footer("Examples:\n  holdfast why 7f3a\n  holdfast why example.org\n  holdfast list snapshots --status "
                    "queued | holdfast why -");
    command->callback([&verb, names] { verb = [names](Context& context) { return why(context, *names); }; });
  }
  {
    auto options = std::make_shared<EventOptions>();
    auto* command = app.add_subcommand("events", "What happened: every change of state, as it is recorded");
    command->add_flag("-f,--follow", options->follow, "Go on with what happens next, until interrupted");
    command->add_option("-n,--limit", options->limit, "Begin with this many of the latest (20)")
        ->check(number(0, std::optional(100000)));
    command->add_option("--crawl", options->crawl, "Only of this crawl");
    command->footer("Examples:\n  holdfast events --follow\n  holdfast events -n 1000 --json | jq 'select(.to_state == "
                    "\"sealed\")'");
    command->callback([&verb, options] { verb = [options](Context& context) { return events(context, *options); }; });
  }
  {
    auto level = std::make_shared<std::string>();
    auto node = std::make_shared<std::string>();
    auto* command = app.add_subcommand("log-level", "Change how much nodes and runners log, while they run");
    command->add_option("level", *level, "trace, debug, info, warn, error, off, or default: what each has configured")
        ->required()
        ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off", "default"}));
    command->add_option("--node", *node, "Only this one");
    command->footer(
        "Kept in the database: nodes that come later heed it too. SIGUSR1 switches debugging of one process "
        "on and off.\n\nExamples:\n  holdfast log-level debug\n  holdfast log-level trace --node 7f3a\n  "
        "holdfast log-level default");
    command->callback(
        [&verb, level, node] { verb = [level, node](Context& context) { return log_level(context, *level, *node); }; });
  }
  {
    auto interval = std::make_shared<double>(1.0);
    auto* command = app.add_subcommand("top", "What runs just now, live; q ends it");
    command->add_option("-d,--delay", *interval, "Seconds between two looks (1)")
        ->check(number(0.1, std::optional(3600.0)));
    command->footer("Keys: q quit, s next order (age, plugin, url, node), p pause, space look now.");
    command->callback([&verb, interval] { verb = [interval](Context& context) { return top(context, *interval); }; });
  }
  {
    auto* command = app.add_subcommand("serve", "A read-only page over the collection and its files, for a browser");
    command->footer("Listens on serve.listen (127.0.0.1:8118), and on serve.files (the next port) for archived files. "
                    "Beyond this machine a\n"
                    "token is required: serve.token_file.\n\nExamples:\n  holdfast serve\n  holdfast serve --set "
                    "serve.listen=0.0.0.0:8118 --set serve.token_file=/run/secrets/page");
    command->callback([&verb] { verb = [](Context& context) { return serve(context); }; });
  }
  {
    auto shell = std::make_shared<std::string>("bash");
    auto* command = app.add_subcommand("completion", "Print a completion script for a shell");
    command->add_option("shell", *shell, "bash, zsh or fish")->check(CLI::IsMember({"bash", "zsh", "fish"}));
    command->footer("Examples:\n  source <(holdfast completion bash)\n  holdfast completion fish "
                    ">~/.config/fish/completions/holdfast.fish");
    command->callback([&verb, &app, shell] { verb = [&app, shell](Context&) { return completion(app, *shell); }; });
    auto* man = app.add_subcommand("manual", "Print the manual page: holdfast manual | man -l -");
    man->callback([&verb, &app] { verb = [&app](Context&) { return manual(app); }; });
  }
}

} // namespace holdfast::cli
