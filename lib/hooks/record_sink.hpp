#pragma once
// Takes the records of one hook, from its output and its files. Owned by one HookRun; main thread only.

#include "lib/hooks/hook_run.hpp"
#include "lib/hooks/record.hpp"

#include <optional>
#include <vector>

namespace holdfast::hooks {

class RecordSink {
public:
  // Into this outcome; the last result is kept apart.
  explicit RecordSink(HookOutcome& outcome) : outcome_(outcome) {}

  void take(std::vector<Record> records);
  void count(const RecordReader& reader) {
    outcome_.ignored_lines += reader.ignored_lines();
    outcome_.dropped_lines += reader.dropped_lines();
  }
  const std::optional<ResultRecord>& result() const noexcept { return result_; }
  void finish() { outcome_.discovered = discovered_.take(); }

private:
  HookOutcome& outcome_;
  std::optional<ResultRecord> result_;
  DiscoveredUrls discovered_;
};

} // namespace holdfast::hooks
