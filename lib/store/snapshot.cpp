#include "lib/store/snapshot.hpp"

#include "lib/base/error.hpp"
#include "lib/store/call.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace holdfast::store {

// Members of a claim that are columns of the same name.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Claim, url, host, title, created_at, bookmarked_at, depth, max_depth,
                                                attempts, lapses, tags, plugins, persona, robots, full,
                                                max_snapshot_bytes, archived)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ResultFile, path, type, size, sha256)

namespace {

using Clock = std::chrono::steady_clock;

std::int64_t age_ms(Clock::time_point time) {
  return std::chrono::floor<std::chrono::milliseconds>(Clock::now() - time).count();
}

nlohmann::json result_json(const HookResult& result) {
  const auto wall = result.cost ? result.cost->wall.count() : 0;
  nlohmann::json json = {{"plugin", result.plugin},
                         {"hook", result.hook},
                         {"status", result.status},
                         {"background", result.background},
                         {"ended_ago_ms", std::max<std::int64_t>(0, age_ms(result.started) - wall)},
                         {"output", result.output},
                         {"error", result.error},
                         {"output_files", result.files},
                         {"output_bytes", result.bytes}};
  if (result.pid > 0) json["pid"] = result.pid;
  if (!result.output_json.empty())
    if (auto value = nlohmann::json::parse(result.output_json, nullptr, false); !value.is_discarded())
      json["output_json"] = std::move(value);
  if (result.started_with) json["started_with"] = nlohmann::json::parse(*result.started_with);
  json.update(end_json(result));
  return json;
}

nlohmann::json lease_json(const Lease& lease) {
  return {{"snapshot", lease.snapshot_id}, {"crawl", lease.crawl_id}, {"fence", lease.fence}};
}

nlohmann::json page_json(const Page& page) {
  auto json = lease_json(page.lease);
  json["ending"] = page.ending;
  json["spend"] = page.spend;
  if (!page.reason.empty()) json["reason"] = page.reason;
  if (page.delay) json["delay_ms"] = page.delay->count();
  if (!page.outcome.empty()) json["outcome"] = page.outcome;
  if (!page.directory.empty()) {
    json["directory"] = page.directory;
    json["manifest"] = page.manifest;
    json["bytes"] = page.bytes;
    json["files"] = page.files;
  }
  if (!page.title.empty()) json["title"] = page.title;
  if (!page.facts.empty()) json["facts"] = base::facts_json(page.facts);
  if (!page.tags.empty()) json["tags"] = page.tags;
  for (const Seed& link : page.links) {
    nlohmann::json found = {{"url", link.url}, {"title", link.title}};
    if (!link.tags.empty()) found["tags"] = link.tags;
    if (!link.bookmarked_at.empty()) found["bookmarked_at"] = link.bookmarked_at;
    json["links"].push_back(std::move(found));
  }
  for (const HookResult& result : page.results)
    json["results"].push_back(result_json(result));
  if (!page.captures.empty()) json["captures"] = nlohmann::json::parse(page.captures);
  if (!page.fingerprint.empty()) json["fingerprint"] = nlohmann::json::parse(page.fingerprint);
  for (const auto& [crawl, snapshot] : page.originals)
    json["originals"].push_back({{"crawl", crawl}, {"snapshot", snapshot}});
  return json;
}

std::string pages_text(const std::vector<Page>& pages) {
  auto all = nlohmann::json::array();
  for (const Page& page : pages)
    all.push_back(page_json(page));
  return json_text(std::move(all));
}

PageAnswer::What what_of(const std::string& text) {
  for (const auto what : {PageAnswer::What::sealed, PageAnswer::What::cancelled, PageAnswer::What::released,
                          PageAnswer::What::failed, PageAnswer::What::lost})
    if (text == to_string(what)) return what;
  throw base::Error(base::ErrorClass::bug, "a page was answered with \"" + text + "\"");
}

using AnswersByLease = std::map<std::pair<std::string, std::int64_t>, PageAnswer>;

void take_answer(AnswersByLease& answers, const pg::Row& row, const char* what) {
  answers[{row["snapshot_id"], row["fence"]}] = {what_of(row[what]), row["children"].value_or<std::int64_t>(0),
                                                 row["crawl_sealed"].value_or(false)};
}

std::vector<PageAnswer> in_order(const std::vector<Page>& pages, const AnswersByLease& answers) {
  std::vector<PageAnswer> ordered;
  for (const Page& page : pages) {
    const auto found = answers.find({page.lease.snapshot_id, page.lease.fence});
    if (found == answers.end())
      throw base::Error(base::ErrorClass::bug, "no answer for snapshot " + page.lease.snapshot_id);
    ordered.push_back(found->second);
  }
  return ordered;
}

std::optional<std::vector<std::string>> only_of(const ClaimRequest& request) {
  return request.only.empty() ? std::nullopt : std::optional(request.only);
}

// Columns snapshot_id, crawl_id and fence, and the others as an object in "claim".
Claim claim_of(const pg::Row& row) {
  const auto json = nlohmann::json::parse(row.text("claim"));
  auto claim = json.get<Claim>();
  claim.lease = {row["snapshot_id"], row["crawl_id"], row["fence"]};
  claim.options = texts_of(json.at("options"));
  return claim;
}

} // namespace

nlohmann::json end_json(const HookResult& result) {
  nlohmann::json json = nlohmann::json::object();
  if (result.exit_code) json["exit_code"] = *result.exit_code;
  if (result.exit_signal) json["exit_signal"] = *result.exit_signal;
  if (result.cost) {
    json["wall_ms"] = result.cost->wall.count();
    json["user_ms"] = result.cost->user.count();
    json["system_ms"] = result.cost->system.count();
    json["peak_memory_bytes"] = result.cost->peak_memory_bytes;
    json["read_bytes"] = result.cost->read_bytes;
    json["written_bytes"] = result.cost->written_bytes;
  }
  return json;
}

std::string_view to_string(PageAnswer::What what) noexcept {
  switch (what) {
  case PageAnswer::What::sealed:
    return "sealed";
  case PageAnswer::What::cancelled:
    return "cancelled";
  case PageAnswer::What::released:
    return "released";
  case PageAnswer::What::failed:
    return "failed";
  case PageAnswer::What::lost:
    break;
  }
  return "lost";
}

TurnAnswer worker_turn(pg::Connection& connection, const std::string& worker, const TurnRequest& request) {
  const auto& wanted = request.claim;
  const auto rows = connection.call(
      "select what, snapshot_id, crawl_id, fence, children, crawl_sealed, detail, claim::text as claim from "
      "holdfast.worker_turn($1::uuid, $2::jsonb, $3::integer, $4::uuid[], $5::boolean, $6::boolean, $7::integer, "
      "$8::integer, $9::uuid[])",
      worker, pages_text(request.pages), wanted.room, wanted.open, wanted.open_only, wanted.order.newest,
      wanted.order.from_top_n, wanted.seeds, only_of(wanted));
  TurnAnswer answer;
  AnswersByLease pages;
  for (const auto row : rows) {
    const std::string& what = row.text("what");
    if (what == "claimed")
      answer.claims.push_back(claim_of(row));
    else if (what == "wait")
      answer.wait = std::chrono::milliseconds(row.integer("detail"));
    else
      take_answer(pages, row, "what");
  }
  answer.pages = in_order(request.pages, pages);
  return answer;
}

void worker_hooks(pg::Connection& connection, const std::string& worker, const std::vector<ActiveHook>& hooks) {
  auto all = nlohmann::json::array();
  for (const ActiveHook& hook : hooks) {
    auto json = lease_json(hook.lease);
    json["plugin"] = hook.plugin;
    json["hook"] = hook.hook;
    json["background"] = hook.background;
    json["running_ms"] = age_ms(hook.started);
    json["timeout_ms"] = hook.timeout.count();
    if (hook.pid > 0) json["pid"] = hook.pid;
    if (hook.still_since) json["still_ms"] = age_ms(*hook.still_since);
    if (hook.started_with) json["started_with"] = nlohmann::json::parse(*hook.started_with);
    if (hook.ended) json["ended"] = result_json(*hook.ended);
    all.push_back(std::move(json));
  }
  call(connection, "worker_hooks", worker, json_text(std::move(all)));
}

} // namespace holdfast::store
