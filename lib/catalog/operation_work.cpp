#include "lib/catalog/operation_work.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "lib/catalog/list.hpp"
#include "lib/formats/selector.hpp"
#include "lib/store/call.hpp"
#include "lib/store/crawl.hpp"
#include "lib/store/find.hpp"
#include "lib/store/persona.hpp"
#include "lib/store/token.hpp"

#include <regex>

namespace holdfast::catalog {

nlohmann::json watch_of(const nlohmann::json& body) {
  nlohmann::json watch;
  for (const auto& field : watch_fields())
    if (const std::string name(field.name); body.contains(name)) watch[name] = body[name];
  if (const auto select = body.value("select", ""); !select.empty() && select != "-") formats::Selector{select};
  for (const auto& one : body.value("ignore", std::vector<std::string>()))
    if (one.size() > 2 && one.starts_with("/") && one.ends_with("/")) try {
        std::regex(one.substr(1, one.size() - 2), std::regex::ECMAScript);
      } catch (const std::regex_error&) {
        throw base::Error(base::ErrorClass::usage, "not a regular expression: " + one, "for example '/[0-9]+ views/'");
      }
    else if (one != "-")
      formats::Selector{one};
  return watch;
}

namespace work {

Answer say_changed(bool value) { return {{"changed", value}}; }

Answer cancel_crawl(const Call& call) {
  constexpr int kBatch = 1000; // snapshots closed in one transaction
  const bool open =
      call.connection
          .call("select status <> 'sealed' and stopping_at is null from holdfast.v_crawl where id = $1::uuid", call.id)
          .value();
  std::int64_t left =
      call.connection.call("select holdfast.crawl_cancel($1::uuid, $2, $3)", call.id, call.by, call.text("why"))
          .value();
  // Pages on a worker that has not received the command yet are closed by it; the workers also do this without us.
  int batches = 0;
  for (auto before = left + 1; left > 0 && left < before && batches < call.most_batches; ++batches) {
    before = left;
    left = store::call_for<std::int64_t>(call.connection, "crawl_stop_step", call.id, kBatch);
  }
  return say_changed(open);
}

Answer retry(const Call& call) {
  const std::int64_t urls = store::call(call.connection, "crawl_retry", call.new_id, call.texts("ids"),
                                        call.body.value("failed", false), call.texts("plugins"), call.by)
                                .value();
  return {{"id", urls > 0 ? Answer(call.new_id) : Answer(nullptr)}, {"seeds", urls}};
}

Answer change_crawl(const Call& call) {
  const auto keep = call.text("keep");
  std::optional<std::chrono::milliseconds> time;
  if (!keep.empty() && keep != "forever") time = base::parse_duration(keep);
  bool any = !call.body.contains("priority") || call.body.size() > 1;
  for (const char* name : {"label", "notes", "add_tags", "remove_tags"})
    if (call.body.contains(name)) {
      store::call(call.connection, "crawl_describe", call.id, call.given<std::string>("label"),
                  call.given<std::string>("notes"), call.texts("add_tags"), call.texts("remove_tags"), call.by);
      break;
    }
  if (const auto priority = call.given<int>("priority"))
    any |= store::call_for<std::int64_t>(call.connection, "crawl_priority", call.id, *priority, call.by) > 0;
  if (!keep.empty()) store::call(call.connection, "crawl_keep", call.id, time);
  return say_changed(any);
}

// Judges the open snapshots by the new scope too, unless the crawl is paused (then that happens when it is resumed).
Answer change_scope(const Call& call) {
  constexpr int kBatch = 1000; // snapshots judged in one transaction
  const auto lists = [&](const char* name) {
    return store::json_text(call.body.value(name, nlohmann::json::object()));
  };
  const bool changed = store::call_for<std::int64_t>(call.connection, "crawl_scope", call.id, lists("add"),
                                                     lists("remove"), call.by) > 0;
  while (changed && !store::call_for<bool>(call.connection, "crawl_judge_step", call.id, kBatch)) {
  }
  return say_changed(changed);
}

Answer run_schedule(const Call& call) {
  if (!store::call(call.connection, "schedule_run", call.id, call.new_id).value().is_null())
    return {{"changed", true}, {"id", call.new_id}};
  const auto rows = list(call.connection, ListQuery{"schedules", 1}.by("schedule", call.id));
  const auto row = rows.one();
  if (row["last_status"].value_or("sealed") != "sealed")
    throw base::Error(base::ErrorClass::refused, "schedule " + call.id + " was left out: its last crawl is still open",
                      "holdfast show " + row.text("last_crawl_id"));
  return {{"changed", false}, {"id", nullptr}, {"note", row["note"].value_or("")}};
}

Answer change_watch(const Call& call) {
  watch_of(call.body); // throws
  const bool changed = store::call(call.connection, "watch_change", call.id, call.given<std::string>("every"),
                                   call.given<std::string>("when"), call.given<std::string>("select"),
                                   call.texts("ignore"), call.texts("notify"), call.by)
                           .value();
  return say_changed(changed);
}

Answer set_host(const Call& call) {
  std::optional<std::chrono::milliseconds> delay;
  if (const auto text = call.text("delay"); !text.empty()) delay = base::parse_duration(text);
  const auto parallel = call.given<int>("parallel");
  if (!delay && !parallel) throw base::Error(base::ErrorClass::usage, "nothing to set: give delay or parallel");
  store::call(call.connection, "host_set", call.id, delay, parallel, call.by);
  return say_changed(true);
}
// Every open snapshot of the host, in every crawl.
Answer cancel_host(const Call& call) {
  for (bool any = false;; any = true)
    if (store::call_for<std::int64_t>(call.connection, "host_cancel", call.id, call.by, call.text("why")) == 0)
      return say_changed(any);
}

Answer set_webhook(const Call& call) {
  const bool web = call.text("url").starts_with("http");
  const auto url = web ? base::parse_url(call.text("url")) : base::Url{};
  if (web && !call.allow_private && base::is_private_host(url.host))
    throw base::Error(base::ErrorClass::refused, "\"" + url.host + "\" is not a public host",
                      "set urls.allow_private to true to send to your own network");
  store::call(call.connection, "webhook_set", call.id, web ? url.text : call.text("url"), call.texts("events"),
              call.by);
  return say_changed(true);
}
Answer test_webhook(const Call& call) {
  const std::int64_t delivery = store::call(call.connection, "webhook_test", call.id, call.by).value();
  return {{"changed", true}, {"delivery", delivery}};
}

Answer set_persona(const Call& call) {
  nlohmann::json change = {{"options", call.body.value("options", nlohmann::json::object())}};
  for (const auto& name : call.texts("unset"))
    change["options"][name] = nullptr;
  for (const char* name : {"worker_label", "check_every", "notes"})
    if (call.body.contains(name)) change[name] = call.body[name];
  if (call.body.contains("hosts")) {
    auto hosts = call.texts("hosts");
    std::erase(hosts, "-");
    change["hosts"] = hosts;
  }
  if (call.body.contains("checks")) {
    change["checks"] = nlohmann::json::array();
    for (const auto& text : call.body["checks"].get<std::vector<std::string>>()) // with commas in them
      if (text != "-") change["checks"].push_back(store::parse_check(text));
  }
  store::persona_set(call.connection, call.id, change, call.by);
  return say_changed(true);
}
Answer sign_in(const Call& call) {
  store::call(call.connection, "sign_in_ask", call.new_id, call.id, base::parse_url(call.text("url")).text, call.by);
  return {{"changed", true}, {"sign_in", call.new_id}};
}

namespace {

// Fields of the rule that are given, null for one to remove; null: none is given.
nlohmann::json rule_of(const nlohmann::json& body) {
  nlohmann::json rule;
  for (const auto& field : rule_fields())
    if (const std::string name(field.name); body.contains(name)) {
      const auto& value = body[name];
      const bool removed = value == "" || value == "-" || value == "newest";
      rule[name] = removed ? nlohmann::json(nullptr) : value;
    }
  return rule;
}
std::optional<std::string> rule_text(const nlohmann::json& rule) {
  return rule.is_null() ? std::nullopt : std::optional(store::json_text(rule));
}

} // namespace

Answer add_shelf(const Call& call) {
  auto rule = rule_of(call.body);
  store::call(call.connection, "shelf_add", call.new_id, call.text("name"), call.given<std::string>("description"),
              rule_text(rule), call.by);
  return {{"changed", true}, {"shelf", call.new_id}};
}
Answer change_shelf(const Call& call) {
  return say_changed(store::call_for<bool>(call.connection, "shelf_change", call.id,
                                           call.given<std::int64_t>("version"), call.given<std::string>("name"),
                                           call.given<std::string>("description"), call.given<std::string>("cover"),
                                           rule_text(rule_of(call.body)), call.by));
}
Answer shelve(const Call& call) {
  const auto rows = store::call(call.connection, "shelve", call.new_id, call.texts("ids"), call.text("shelf"),
                                call.given<std::string>("place"), call.by);
  const auto pages = rows.one().integer("changed");
  return {{"changed", pages > 0}, {"pages", pages}};
}

Answer share(const Call& call) {
  store::SharedThing what{call.given<std::string>("snapshot"), std::nullopt, call.given<std::string>("shelf")};
  if (call.body.contains("url")) what.url = base::parse_url(call.text("url")).text;
  const auto secret = store::share_add(call.connection, call.new_id, what,
                                       base::parse_duration(call.body.value("expires", "30d")), call.by);
  return {{"changed", secret.has_value()},
          {"id", store::share_id(call.new_id)},
          {"link", secret ? Answer("share/" + *secret) : Answer(nullptr)}};
}

Answer add_token(const Call& call) {
  std::optional<std::chrono::milliseconds> keep;
  if (const auto expires = call.text("expires"); !expires.empty()) keep = base::parse_duration(expires);
  const auto name = call.text("name"), role = call.body.value("role", "reader");
  return {{"changed", true}, {"token", store::own_token_add(call.connection, name, role, keep, call.by)}};
}

Answer set_log_level(const Call& call) {
  const auto level = call.text("level"), worker = call.text("worker");
  store::call(call.connection, "log_level_set",
              worker.empty() ? std::nullopt : std::optional(store::find(call.connection, worker).id),
              level == "default" ? std::nullopt : std::optional(level));
  return say_changed(true);
}

} // namespace work
} // namespace holdfast::catalog
