#include "lib/hooks/record_sink.hpp"

#include <utility>
#include <variant>

namespace holdfast::hooks {

void RecordSink::take(std::vector<Record> records) {
  for (Record& record : records) {
    if (auto* claimed = std::get_if<ResultRecord>(&record)) {
      // The contract calls a second result an error of the hook. The last one is the hook's latest word; the others
      // count as ignored lines.
      if (result_) ++outcome_.ignored_lines;
      result_ = std::move(*claimed);
    } else if (auto* snapshot = std::get_if<SnapshotRecord>(&record)) {
      discovered_.add(std::move(*snapshot));
    } else if (auto* tag = std::get_if<TagRecord>(&record)) {
      outcome_.tags.push_back(std::move(tag->name));
    } else if (auto* binary = std::get_if<BinaryRecord>(&record)) {
      outcome_.binaries.push_back(std::move(*binary));
    } else if (auto* machine = std::get_if<MachineRecord>(&record)) {
      outcome_.machine_records.push_back(std::move(*machine));
    } else if (auto* rate_limit = std::get_if<RateLimitRecord>(&record)) {
      outcome_.rate_limits.push_back(std::move(*rate_limit));
    } else if (auto* redirect = std::get_if<RedirectRecord>(&record)) {
      outcome_.redirects.push_back(std::move(redirect->location));
    } else if (auto* response = std::get_if<ResponseRecord>(&record)) {
      outcome_.response = std::move(*response);
    } else if (auto* resources = std::get_if<ResourcesRecord>(&record)) {
      outcome_.resources = std::move(*resources);
    } else if (auto* unreachable = std::get_if<UnreachableRecord>(&record)) {
      outcome_.unreachable = std::move(unreachable->reason);
    } else if (auto* signed_out = std::get_if<SignedOutRecord>(&record)) {
      outcome_.signed_out = std::move(signed_out->reason);
    }
  }
}

} // namespace holdfast::hooks
