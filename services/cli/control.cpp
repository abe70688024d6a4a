#include "services/cli/control.hpp"

#include "lib/archive/verify.hpp"
#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/text.hpp"
#include "lib/base/url.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/control.hpp"
#include "lib/store/host.hpp"
#include "lib/store/live.hpp"
#include "lib/store/node.hpp"
#include "lib/store/verify.hpp"
#include "lib/store/view.hpp"
#include "services/cli/checks.hpp"
#include "services/cli/input.hpp"
#include "services/cli/output.hpp"
#include "services/worker/crawl_page.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <pwd.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <map>
#include <thread>

namespace holdfast::cli {

namespace {

store::Order order_of(const ControlOptions& options) { return {user_name(), options.why}; }

std::string past(const std::string& action) {
  static const std::map<std::string, std::string, std::less<>> irregular = {
      {"cancel", "cancelled"}, {"drain", "draining"}, {"tag", "changed"}, {"keep", "changed"}, {"forget", "forgotten"}};
  const auto found = irregular.find(action);
  return found == irregular.end() ? action + "d" : found->second; // pause, resume, remove
}

void say(Context& context, const std::string& action, const std::string& kind, const std::string& id, bool changed) {
  if (context.json())
    std::cout << base::json_text(nlohmann::ordered_json{
                     {"type", "Control"}, {"action", action}, {"kind", kind}, {"target", id}, {"changed", changed}})
              << '\n';
  else
    std::cout << kind << (id.empty() ? "" : " ") << printable(id) << ": "
              << (changed ? past(action) : "nothing to " + action) << '\n';
}

// "Example.COM", "https://example.com/x" -> "example.com".
std::string host_name(const std::string& given) {
  const auto url = base::try_parse_url(given.find("://") == std::string::npos ? "http://" + given + "/" : given);
  if (!url) throw base::Error(base::ErrorClass::usage, "\"" + given + "\" is no host name", "for example example.com");
  return url->host;
}

std::string node_id(pg::Connection& connection, const std::string& given) {
  const auto found = store::find(connection, given);
  if (found.kind != "process")
    throw base::Error(base::ErrorClass::usage, given + " is a " + found.kind + ", not a node");
  return found.id;
}

std::string crawl_id(pg::Connection& connection, const std::string& given) {
  const auto found = store::find(connection, given);
  if (found.kind != "crawl")
    throw base::Error(base::ErrorClass::usage, given + " is a " + found.kind + ", not a crawl");
  return found.id;
}

// All of them, before anything is done to one.
std::vector<std::string> crawl_ids(pg::Connection& connection, const std::vector<std::string>& given) {
  std::vector<std::string> ids;
  for (const auto& one : read_ids(given))
    ids.push_back(crawl_id(connection, one));
  return ids;
}

int steer(Context& context, const ControlOptions& options, const std::string& action) {
  const int targets = !options.ids.empty() + !options.host.empty() + !options.node.empty() + options.all;
  if (targets != 1)
    throw base::Error(base::ErrorClass::usage,
                      targets == 0 ? "nothing to " + action + ": name a crawl, snapshot, host or worker, or use --all"
                                   : "name ids, --host, --node or --all, one of them",
                      "holdfast " + action + " ID... | --host HOST | --node ID | --all");
  auto& connection = context.connection();
  const auto order = order_of(options);
  if (options.all) {
    if (action == "pause") {
      say(context, action, "everything", "", store::collection_pause(connection, order));
    } else if (action == "resume") {
      say(context, action, "everything", "", store::collection_resume(connection, order));
    } else {
      if (!options.yes)
        throw base::Error(base::ErrorClass::usage, "cancel --all ends every open crawl", "say --yes if that is meant");
      for (;;) {
        const auto open = store::crawls_to_stop(connection, 500);
        if (open.empty()) break;
        for (const auto& id : open)
          say(context, action, "crawl", id, store::crawl_cancel(connection, id, order, {}));
      }
    }
    return base::kExitSuccess;
  }
  if (!options.host.empty()) {
    const auto host = host_name(options.host);
    if (action == "cancel" && !options.yes)
      throw base::Error(base::ErrorClass::usage, "cancel --host ends what is open of " + host + " in every crawl",
                        "say --yes if that is meant; holdfast exclude " + host + " CRAWL for one crawl");
    say(context, action, "host", host,
        action == "pause"    ? store::host_pause(connection, host, order)
        : action == "resume" ? store::host_resume(connection, host, order)
                             : store::host_cancel(connection, host, order) > 0);
    return base::kExitSuccess;
  }
  if (!options.node.empty()) {
    const auto id = node_id(connection, options.node);
    say(context, action, "node", id,
        action == "pause"    ? store::worker_pause(connection, id, order)
        : action == "resume" ? store::worker_resume(connection, id, order)
                             : store::worker_cancel(connection, id, order));
    return base::kExitSuccess;
  }
  std::vector<store::Found> found_all; // all of them before anything is done
  for (const auto& given : read_ids(options.ids))
    found_all.push_back(store::find(connection, given));
  for (const auto& found : found_all) {
    bool changed = false;
    if (found.kind == "crawl")
      changed = action == "pause"    ? store::crawl_pause(connection, found.id, order)
                : action == "resume" ? store::crawl_resume(connection, found.id, order)
                                     : store::crawl_cancel(connection, found.id, order, {});
    else if (found.kind == "snapshot")
      changed = store::snapshot_order(connection, found.id, action, order);
    else
      changed = action == "pause"    ? store::worker_pause(connection, found.id, order)
                : action == "resume" ? store::worker_resume(connection, found.id, order)
                                     : store::worker_cancel(connection, found.id, order);
    say(context, action, found.kind, found.id, changed);
  }
  return base::kExitSuccess;
}

int drain(Context& context, const ControlOptions& options) {
  if (options.ids.empty() == options.machine.empty())
    throw base::Error(base::ErrorClass::usage, "nothing to drain: name workers, or a machine",
                      "holdfast drain NODE... | --machine HOSTNAME");
  auto& connection = context.connection();
  std::vector<std::string> nodes;
  for (const auto& given : read_ids(options.ids))
    nodes.push_back(node_id(connection, given));
  if (!options.machine.empty()) {
    nodes = store::processes_on(connection, options.machine);
    if (nodes.empty())
      throw base::Error(base::ErrorClass::refused, "nothing runs on " + printable(options.machine),
                        "holdfast list nodes shows the names of machines");
  }
  const auto order = order_of(options);
  for (const auto& node : nodes)
    say(context, "drain", "node", node, store::worker_drain(connection, node, order));
  std::cout.flush();
  // As long as it lives it beats; one that does not is given up when its lease lapses.
  while (options.wait && !store::workers_running(connection, nodes).empty()) {
    store::lapse_workers(connection);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  return base::kExitSuccess;
}

int retry(Context& context, const ControlOptions& options) {
  auto& connection = context.connection();
  std::vector<std::string> ids;
  for (const auto& given : read_ids(options.ids)) {
    const auto found = store::find(connection, given);
    if (found.kind == "process")
      throw base::Error(base::ErrorClass::usage, given + " is a node, not a crawl or snapshot");
    ids.push_back(found.id);
  }
  std::vector<std::string> plugins = options.plugins;
  if (!plugins.empty()) context.catalog()->select(plugins); // names that do not exist are refused here
  const std::string id = base::new_uuid();
  // A pipe may hold nothing.
  const auto urls = ids.empty() ? 0 : store::crawl_retry(connection, id, ids, options.failed, plugins, user_name());
  if (context.json()) {
    auto json = nlohmann::ordered_json{{"type", "Crawl"}, {"seeds", urls}};
    if (urls > 0) json["id"] = id;
    std::cout << json.dump() << '\n';
  } else if (urls == 0) {
    std::cout << "nothing to try again\n";
  } else {
    std::cout << "crawl " << id << ": " << urls << (urls == 1 ? " URL" : " URLs")
              << " to be tried again; what was sealed stays as it is\n  more: holdfast show " << id << '\n';
    if (context.embedded()) std::cout << "  go on: holdfast run\n";
  }
  return base::kExitSuccess;
}

int scope(Context& context, const std::string& given, const store::ScopeLists& add, const store::ScopeLists& remove) {
  auto& connection = context.connection();
  const auto id = crawl_id(connection, given);
  bool changed = false;
  if (!add.empty() || !remove.empty()) changed = store::crawl_scope(connection, id, add, remove, user_name());
  const auto now = store::crawl_scope_of(connection, id);
  if (context.json()) {
    std::cout << nlohmann::ordered_json{{"type", "Scope"},          {"crawl_id", id},
                                        {"changed", changed},       {"scope", nlohmann::json::parse(now.lists)},
                                        {"excluded", now.excluded}, {"refused", now.refused}}
                     .dump()
              << '\n';
    return base::kExitSuccess;
  }
  const auto lists = nlohmann::json::parse(now.lists);
  if (lists.empty()) std::cout << "everything belongs to this crawl\n";
  for (const auto& [name, values] : lists.items())
    for (const auto& value : values)
      std::cout << name << "  " << printable(value.get<std::string>()) << '\n';
  std::cout << now.excluded << " open snapshots wait outside it, " << now.refused << " URLs were left out\n";
  return base::kExitSuccess;
}

int set_host(Context& context, const ControlOptions& options) {
  auto& connection = context.connection(true);
  store::HostLimits limits;
  if (!options.delay.empty()) limits.delay = base::parse_duration(options.delay);
  if (options.parallel >= 0) limits.parallel = options.parallel;
  if (!limits.delay && !limits.parallel)
    throw base::Error(base::ErrorClass::usage, "nothing to set: give a delay or a cap",
                      "holdfast host set HOST --delay 5s --parallel 1");
  const auto host = host_name(options.host);
  store::host_set(connection, host, limits, user_name());
  store::ListQuery query;
  query.view = "hosts";
  query.url_contains = host;
  const auto rows = store::list(connection, query);
  if (context.json()) {
    for (const auto& line : store::list_json(connection, query))
      std::cout << line << '\n';
  } else {
    print_table(rows, {"name", "min_delay", "max_parallel", "held", "backoff_until", "reason"});
  }
  return base::kExitSuccess;
}

int list_hosts(Context& context) {
  store::ListQuery query;
  query.view = "hosts";
  query.limit = 100000;
  auto& connection = context.connection();
  if (context.json())
    for (const auto& line : store::list_json(connection, query))
      std::cout << line << '\n';
  else
    print_table(store::list(connection, query), {"name", "min_delay", "max_parallel", "held", "robots_delay", "last_at",
                                                 "backoff_until", "paused", "reason"});
  return base::kExitSuccess;
}

// A crawl's label, notes and tags, or a snapshot's tags.
void print_description(Context& context, pg::Connection& connection, const store::Found& found) {
  const bool crawl = found.kind == "crawl";
  const auto now = crawl ? store::crawl_description(connection, found.id)
                         : store::Described{"", "", store::snapshot_tags(connection, found.id)};
  const auto& tags = now.tags;
  if (context.json()) {
    nlohmann::ordered_json line{{"type", "Tags"}, {"kind", found.kind}, {"id", found.id}, {"tags", tags}};
    if (crawl) line.update({{"label", now.label}, {"notes", now.notes}});
    std::cout << line.dump() << '\n';
    return;
  }
  std::cout << found.kind << ' ' << found.id << ": "
            << (tags.empty() ? "no tags" : "tags " + printable(base::join(tags, ", ")))
            << (now.label.empty() ? "" : "; label " + printable(now.label))
            << (now.notes.empty() ? "" : "; notes: " + printable(now.notes)) << '\n';
}

int describe(Context& context, const ControlOptions& options) {
  auto& connection = context.connection();
  std::vector<store::Found> targets; // all of them before anything is done
  for (const auto& given : read_ids(options.ids)) {
    targets.push_back(store::find(connection, given));
    if (targets.back().kind == "process")
      throw base::Error(base::ErrorClass::usage, given + " is a worker; crawls and snapshots have tags");
    if (targets.back().kind == "snapshot" && !(options.label.empty() && options.notes.empty()))
      throw base::Error(base::ErrorClass::usage, given + " is a snapshot; only crawls have a label and notes");
  }
  if (options.add.empty() && options.remove.empty() && options.label.empty() && options.notes.empty()) {
    for (const auto& target : targets)
      print_description(context, connection, target);
    std::cout << std::flush;
    return base::kExitSuccess;
  }
  store::Description description;
  if (!options.label.empty()) description.label = options.label;
  if (!options.notes.empty()) description.notes = options.notes;
  description.add_tags = base::split(base::join(options.add, ","), ","); // as add --tag takes them
  description.remove_tags = base::split(base::join(options.remove, ","), ",");
  for (const auto& target : targets) {
    bool changed = true;
    if (target.kind == "crawl")
      store::crawl_describe(connection, target.id, description, user_name());
    else
      changed =
          store::snapshot_describe(connection, target.id, description.add_tags, description.remove_tags, user_name());
    say(context, "tag", target.kind, target.id, changed);
  }
  return base::kExitSuccess;
}

int prioritise(Context& context, const ControlOptions& options) {
  auto& connection = context.connection();
  for (const auto& id : crawl_ids(connection, options.ids))
    say(context, "prioritise", "crawl", id, store::crawl_priority(connection, id, options.priority, user_name()));
  return base::kExitSuccess;
}

int keep(Context& context, const ControlOptions& options) {
  auto& connection = context.connection();
  std::optional<std::chrono::milliseconds> time;
  if (options.keep != "forever") time = base::parse_duration(options.keep);
  for (const auto& id : crawl_ids(connection, options.ids)) {
    store::crawl_keep(connection, id, time);
    say(context, "keep", "crawl", id, true);
  }
  return base::kExitSuccess;
}

// Rows first, then files: a directory without a row is found by holdfast verify, a row without files would be a lie.
int remove(Context& context, const ControlOptions& options) {
  auto& connection = context.connection();
  std::vector<std::string> ids, snapshots;
  for (const auto& given : read_ids(options.ids)) {
    const auto found = store::find(connection, given);
    if (found.kind == "process") throw base::Error(base::ErrorClass::usage, given + " is a process; nothing to remove");
    (found.kind == "crawl" ? ids : snapshots).push_back(found.id);
  }
  if (options.expired) {
    const auto expired = store::crawls_expired(connection, 1000);
    ids.insert(ids.end(), expired.begin(), expired.end());
  }
  if (options.ids.empty() && !options.expired)
    throw base::Error(base::ErrorClass::usage, "nothing to remove: name crawls or snapshots, or use --expired",
                      "holdfast remove CRAWL... | SNAPSHOT... | --expired");
  if (!options.yes && !(ids.empty() && snapshots.empty())) {
    for (const auto& id : snapshots)
      std::cerr << "snapshot " << id << '\n';
    for (const auto& id : ids) {
      const auto crawl = store::crawl(connection, id);
      std::cerr << "crawl " << id << ": " << crawl.total << (crawl.total == 1 ? " snapshot, " : " snapshots, ")
                << base::format_size(static_cast<std::uint64_t>(crawl.bytes)) << ", " << printable(crawl.first_url)
                << '\n';
    }
    throw base::Error(base::ErrorClass::usage, "this deletes them for ever, files and all",
                      "say --yes if that is meant");
  }
  const auto collection = store::collection_id(connection);
  for (const auto& id : ids) {
    store::crawl_remove(connection, id, user_name());
    say(context, "remove", "crawl", id, true);
  }
  for (const auto& id : snapshots) {
    store::snapshot_remove(connection, id, user_name());
    say(context, "remove", "snapshot", id, true);
  }
  const auto now = std::chrono::milliseconds(0);
  if (store::purge_list(connection, 1).empty() && store::crawl_pages_stale(connection, 1, now, {}).empty())
    return base::kExitSuccess;
  const auto root = archive::Root::open(context.archive_root(), collection, false);
  for (;;) {
    const auto directories = store::purge_list(connection, 500);
    if (directories.empty()) break;
    for (const auto& directory : directories)
      archive::remove_snapshot(root, directory);
    store::purge_done(connection, directories);
  }
  while (worker::refresh_crawl_pages(connection, root, now) > 0) {
  }
  return base::kExitSuccess;
}

} // namespace

void add_control_commands(CLI::App& app, ControlOptions& options, std::function<int(Context&)>& verb) {
  const auto command = [&](CLI::App& parent, const std::string& name, const std::string& help,
                           std::function<int(Context&)> action) {
    auto* added = parent.add_subcommand(name, help);
    added->callback([&verb, action = std::move(action)] { verb = action; });
    return added;
  };
  for (const auto& [action, help] :
       {std::pair{"pause", "Stop working on a crawl, a snapshot, a web site, a node, or everything, until resumed"},
        {"resume", "Go on with what was paused"},
        {"cancel", "End a crawl or snapshot for ever; make a node give its work back and end"}}) {
    auto* steering = command(app, action, help, [&options, name = std::string(action)](Context& context) {
      return steer(context, options, name);
    });
    steering->add_option(
        "ids", options.ids,
        "Crawls, snapshots or nodes: ids, or the first or last few digits; - reads them from standard input");
    steering->add_option("--host", options.host, "A web site");
    steering->add_option("--node", options.node, "A node");
    steering->add_flag("--all", options.all, "Everything");
    steering->add_option("--why", options.why, "A reason, for others to read");
    steering->add_flag("--yes", options.yes, "Do not ask");
  }

  auto* draining = command(app, "drain", "Let nodes or runners finish what they have, and end: before an upgrade",
                           [&options](Context& context) { return drain(context, options); });
  draining->add_option("nodes", options.ids,
                       "Nodes or runners: ids, or the first or last few digits; - reads them from standard input");
  draining->add_option("--machine", options.machine, "All that run on this machine, by its host name");
  draining->add_option("--why", options.why, "A reason, for others to read");
  draining->add_flag("--wait", options.wait, "Until they have ended");

  auto* again = command(app, "retry", "Try again what failed, as a new crawl",
                        [&options](Context& context) { return retry(context, options); });
  again->add_option("ids", options.ids, "Crawls or snapshots; - reads them from standard input")->required();
  again->add_flag("--failed", options.failed, "Of the crawls only what did not go well");
  again->add_option("-p,--plugin", options.plugins, "Only this plugin (with --failed: only where it failed)")
      ->allow_extra_args(false);

  auto* exclude = command(app, "exclude", "Leave a web site out of a running crawl", [&options](Context& context) {
    const store::ScopeLists lists{{"deny", {options.domain}}};
    return options.back ? scope(context, options.crawl, {}, lists) : scope(context, options.crawl, lists, {});
  });
  exclude->add_option("domain", options.domain, "example.com, *.example.com, or a regular expression")->required();
  exclude->add_option("crawl", options.crawl, "The crawl")->required();
  exclude->add_flag("--undo", options.back, "Let it in again");

  auto* scoping = command(app, "scope", "What belongs to a crawl; changes take effect with the next claim of any node",
                          [&options](Context& context) {
                            store::ScopeLists add, remove;
                            if (!options.allow.empty()) add["allow"] = options.allow;
                            if (!options.deny.empty()) add["deny"] = options.deny;
                            if (!options.undo.empty()) remove = {{"allow", options.undo}, {"deny", options.undo}};
                            return scope(context, options.crawl, add, remove);
                          });
  scoping->add_option("crawl", options.crawl, "The crawl")->required();
  scoping->add_option("--allow", options.allow, "Only URLs that fit this, or another --allow")->allow_extra_args(false);
  scoping->add_option("--deny", options.deny, "No URLs that fit this")->allow_extra_args(false);
  scoping->add_option("--undo", options.undo, "Take this pattern off both lists")->allow_extra_args(false);

  auto* host = app.add_subcommand("host", "How web sites are treated");
  host->require_subcommand(1);
  auto* set = command(*host, "set", "Set a web site's delay and cap; takes effect with the next claim of any node",
                      [&options](Context& context) { return set_host(context, options); });
  set->add_option("host", options.host, "Its name")->required();
  set->add_option("--delay", options.delay, "Least time between two of its pages: 5s");
  set->add_option("--parallel", options.parallel, "Most of its pages at once; 0: no cap")->check(number(0));
  command(*host, "forget", "Take all limits off a web site",
          [&options](Context& context) {
            const auto name = host_name(options.host);
            say(context, "forget", "host", name, store::host_forget(context.connection(), name, user_name()));
            return base::kExitSuccess;
          })
      ->add_option("host", options.host, "Its name")
      ->required();
  command(*host, "list", "Web sites with limits, delays and pauses", list_hosts);

  auto* tagging = command(app, "tag", "Show or change tags of crawls and snapshots, and label and notes of crawls",
                          [&options](Context& context) { return describe(context, options); });
  tagging->add_option("ids", options.ids, "Crawls and snapshots; - reads them from standard input")->required();
  tagging->add_option("--add", options.add, "Add a tag; a crawl's tags are also those of its snapshots")
      ->allow_extra_args(false);
  tagging->add_option("--remove", options.remove, "Remove a tag")->allow_extra_args(false);
  tagging->add_option("--label", options.label, "Name of a crawl");
  tagging->add_option("--notes", options.notes, "Notes on a crawl");

  auto* preferring = command(app, "priority", "Work on a crawl before others, or after them, from now on",
                             [&options](Context& context) { return prioritise(context, options); });
  preferring->add_option("number", options.priority, "Above 0: before other crawls; below 0: after them")->required();
  preferring->add_option("crawls", options.ids, "The crawls; - reads them from standard input")->required();

  auto* keeping = command(app, "keep", "Say how long a crawl is kept, from now on",
                          [&options](Context& context) { return keep(context, options); });
  keeping->add_option("time", options.keep, "90d, or forever")->required();
  keeping->add_option("crawls", options.ids, "The crawls; - reads them from standard input")->required();

  auto* removing = command(app, "remove", "Delete crawls or snapshots with their files",
                           [&options](Context& context) { return remove(context, options); });
  removing->add_option("ids", options.ids,
                       "Crawls, or snapshots of crawls that have ended; - reads them from standard input");
  removing->add_flag("--expired", options.expired, "Those whose time to be kept is over");
  removing->add_flag("--yes", options.yes, "Do not ask");
}

} // namespace holdfast::cli
