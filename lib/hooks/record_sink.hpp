#pragma once
// Takes the records of one hook, from its output and its files. Owned by one HookRun; main thread only.

#include "lib/hooks/hook_run.hpp"
#include "lib/hooks/record.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::hooks {

class RecordSink {
public:
  // Into this outcome; the last result is kept apart.
  explicit RecordSink(HookOutcome& outcome) : outcome_(outcome) {}

  void take(std::vector<Record> records) {
    for (Record& record : records)
      std::visit([this](auto& one) { put(std::move(one)); }, record);
  }
  void count(const RecordReader& reader) { unread_.add(reader.unread()); }
  // Why some lines were not read; empty: all records were.
  std::string unread() const { return unread_.text(); }
  const std::optional<ResultRecord>& result() const noexcept { return result_; }
  void finish() { outcome_.discovered = discovered_.take(); }

private:
  static constexpr std::size_t kMostHosts = 100;

  // The contract calls a second result an error of the hook. The last one counts; the others are unread records.
  void put(ResultRecord result) {
    if (result_) unread_.add({1, "ArchiveResult before another", 0});
    result_ = std::move(result);
  }
  void put(SnapshotRecord snapshot) { discovered_.add(std::move(snapshot)); }
  void put(TagRecord tag) {
    auto& tags = outcome_.tags;
    if (std::find(tags.begin(), tags.end(), tag.name) != tags.end()) return;
    if (tags.size() == kMostTags) return unread_.add({1, "Tag", 0});
    tags.push_back(std::move(tag.name));
  }
  void put(BinaryRecord binary) { outcome_.binaries.push_back(std::move(binary)); }
  void put(MachineRecord machine) { outcome_.machine_records.push_back(std::move(machine)); }
  // The longest of each host counts: the worker tells the database of each.
  void put(RateLimitRecord limit) {
    auto& limits = outcome_.rate_limits;
    const auto known =
        std::find_if(limits.begin(), limits.end(), [&](const auto& one) { return one.host == limit.host; });
    if (known == limits.end() && limits.size() == kMostHosts) return unread_.add({1, "RateLimit", 0});
    if (known == limits.end())
      limits.push_back(std::move(limit));
    else if (known->retry_after_seconds < limit.retry_after_seconds)
      *known = std::move(limit);
  }
  void put(RedirectRecord redirect) { outcome_.redirects.push_back(std::move(redirect.location)); }
  void put(ResponseRecord response) { outcome_.response = std::move(response); }
  void put(FactsRecord record) { base::merge_facts(outcome_.facts, record.facts); }
  void put(UnreachableRecord unreachable) { outcome_.unreachable = std::move(unreachable.reason); }
  void put(SignedOutRecord signed_out) { outcome_.signed_out = std::move(signed_out.reason); }

  HookOutcome& outcome_;
  std::optional<ResultRecord> result_;
  DiscoveredUrls discovered_;
  UnreadRecords unread_;
};

} // namespace holdfast::hooks
