#include "services/worker/redaction.hpp"

namespace holdfast::worker {

void redact(const warc::Redactor& redactor, hooks::HookOutcome& outcome) {
  for (auto* text : {&outcome.output, &outcome.output_json, &outcome.error, &outcome.unreachable})
    redactor.apply(*text);
  for (auto& url : outcome.redirects)
    redactor.apply(url);
  for (auto& tag : outcome.tags)
    redactor.apply(tag);
  for (auto& record : outcome.discovered) {
    redactor.apply(record.url);
    redactor.apply(record.title);
    for (auto& tag : record.tags)
      redactor.apply(tag);
  }
  if (outcome.resources) redactor.apply(outcome.resources->reasons);
  if (outcome.signed_out) redactor.apply(*outcome.signed_out);
}

void redact(const warc::Redactor& redactor, archive::SnapshotView& view) {
  for (auto& result : view.results)
    for (auto* text : {&result.output, &result.error, &result.log})
      redactor.apply(*text);
}

} // namespace holdfast::worker
