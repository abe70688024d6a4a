#include "lib/base/coroutine.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/change/compare.hpp"
#include "lib/store/call.hpp"
#include "services/worker/attempt/steps.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

namespace holdfast::worker {

namespace {

constexpr int kErrorStatus = 400;
const std::set<int> kPassing{408, 425, 429, 500, 502, 503, 504, 509, 520, 521, 522, 523, 524}; // errors that may pass

struct Predecessor {
  std::string snapshot_id;
  change::Fingerprint fingerprint;
  change::Reuse reuse;
  std::int64_t age_ms{0};
};

// Returns the digest of the page's own response; empty: there is none in its WARC files.
std::string main_digest(const PageWork& work) {
  const warc::Capture* found = nullptr;
  for (const auto& record : work.captures.records)
    if (found == nullptr || (found->status >= 300 && found->status < kErrorStatus)) found = &record;
  return found == nullptr ? "" : found->digest;
}

// Returns what scripts have fetched as JSON.
change::Digests data_of(const PageWork& work) {
  constexpr std::size_t kMost = 50;
  change::Digests data;
  for (const auto& record : work.captures.records)
    if (record.status == 200 && record.mime == "application/json" && data.size() < kMost)
      data.emplace(record.url, record.digest);
  return data;
}

awaitable<std::optional<Predecessor>> find_predecessor(PageWork& work, std::optional<std::string> kind) {
  const auto rows = co_await work.services.retry.repeat("fingerprint_get", work.claim.url, work.claim.persona, kind,
                                                        work.claim.lease.snapshot_id);
  if (rows.empty()) co_return std::nullopt;
  const auto row = rows[0];
  co_return Predecessor{row["snapshot_id"], change::from_bytes(base::base64_decode(row.text("body"))),
                        change::reuse_from(nlohmann::json::parse(row.text("reuse"))), row["age_ms"]};
}

double share_of(const change::Change& change, const change::Shape& shape) {
  const auto part = [](std::size_t some, std::size_t all) {
    return std::min(1.0, static_cast<double>(some) / static_cast<double>(std::max<std::size_t>(all, 1)));
  };
  if (change.kind == "same" || change.kind == "first") return 0;
  if (change.kind == "look") return change.look_share;
  if (change.kind == "links") return part(change.links_added + change.links_removed, shape.links.size());
  if (change.kind != "text") return 1;
  std::size_t words = 0;
  for (const auto& unit : shape.text)
    words += unit.words.size();
  return part(std::max(change.words_added, change.words_removed) + change.words_moved, words);
}

void set_facts(PageWork& work, const change::Change& change, const change::Shape& shape,
               const std::optional<Predecessor>& previous) {
  auto& facts = work.view.facts;
  const auto number = [&](const char* name, std::size_t value) {
    if (value > 0) facts[name] = std::to_string(value);
  };
  const auto share = [&](const char* name, double value) {
    if (value > 0) facts[name] = nlohmann::json(std::max(std::round(value * 10'000) / 10'000, 0.0001)).dump();
  };
  facts["change"] = base::fact_value(change.kind);
  if (previous) facts["change_from"] = base::fact_value(previous->snapshot_id);
  share("change_share", share_of(change, shape));
  share("look_share", change.look_share);
  number("words_added", change.words_added);
  number("words_removed", change.words_removed);
  number("words_moved", change.words_moved);
  number("links_added", change.links_added);
  number("links_removed", change.links_removed);
  if (change.learnt) facts["change_learnt"] = "true";
}

void set_fingerprint(PageWork& work, const change::Fingerprint& fingerprint, const change::Reuse& reuse,
                     const std::string& previous) {
  nlohmann::json row = {{"persona", work.claim.persona},
                        {"kind", fingerprint.shape.source},
                        {"digest", change::digest_of(fingerprint)},
                        {"body", base::base64_encode(change::to_bytes(fingerprint))},
                        {"reuse", change::to_json(reuse)}};
  if (!previous.empty()) row.emplace("previous", previous);
  work.page.fingerprint = row.dump();
}

} // namespace

awaitable<void> find_change(PageWork& work) {
  auto& facts = work.view.facts;
  const auto status = static_cast<int>(base::fact_number(facts, "http_status"));
  const auto doubt = base::fact_text(facts, "doubt");
  const auto digest = main_digest(work);
  if (!digest.empty()) facts["digest"] = base::fact_value(digest);
  if (doubt == "challenge") co_return;
  if (status >= kErrorStatus) {
    if (kPassing.contains(status)) co_return;
    const auto previous = co_await find_predecessor(work, std::nullopt);
    if (!previous) co_return;
    const auto found = change::compare_status(previous->fingerprint, status);
    set_facts(work, found.change, found.next.shape, previous);
    set_fingerprint(work, found.next, {}, previous->snapshot_id);
    co_return;
  }
  if (work.page.outcome != "succeeded" && work.page.outcome != "partial" && doubt != "unfinished") co_return;
  change::Reuse reuse;
  auto shape = co_await base::on_thread(work.services.files, [&] {
    reuse = judge_reuse(work);
    return change::read_shape(work.files.directory(), digest, data_of(work));
  });
  if (shape.empty()) co_return;
  const auto previous = co_await find_predecessor(work, shape.source);
  if (!previous || previous->fingerprint.state.empty()) {
    const change::Fingerprint first{std::move(shape), {}, "page"};
    set_facts(work, {}, first.shape, previous);
    set_fingerprint(work, first, reuse, previous ? previous->snapshot_id : "");
    co_return;
  }
  const auto age = previous->age_ms; // negative: the successor is sealed already, and the seal decides
  const bool learn = age >= 0 && age < work.services.options.learn_changes.count();
  const auto found = co_await base::on_thread(
      work.services.files, [&] { return change::compare(previous->fingerprint, std::move(shape), learn); });
  set_facts(work, found.change, found.next.shape, previous);
  set_fingerprint(work, found.next, change::after_hooks(previous->reuse, reuse, found.change.kind == "same"),
                  previous->snapshot_id);
}

void repeat_change(PageWork& work) {
  const auto& earlier = *work.earlier;
  auto fingerprint = change::from_bytes(earlier.body);
  fingerprint.mask.learnt = true; // a later capture must not learn a change as noise
  auto reuse = earlier.reuse;
  ++reuse.reused;
  work.view.facts["change"] = base::fact_value("same");
  work.view.facts["change_from"] = base::fact_value(earlier.previous);
  work.view.facts["files_from"] = base::fact_value(reuse.from);
  set_fingerprint(work, fingerprint, reuse, earlier.previous);
}

} // namespace holdfast::worker
