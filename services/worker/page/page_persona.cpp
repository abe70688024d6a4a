#include "services/worker/page/page_persona.hpp"

#include <algorithm>
#include <initializer_list>

namespace holdfast::worker {

awaitable<void> PagePersona::join(SessionPersona* persona) {
  persona_ = persona;
  if (persona_ == nullptr) co_return;
  co_await persona_->renew();
  version_ = persona_->version();
}

std::optional<warc::Redactor> PagePersona::redactor(const Options& options, const std::string& url) const {
  if (persona_ == nullptr || !options.redact) return std::nullopt;
  warc::Redactor redactor;
  persona_->add_secrets(redactor);
  redactor.except(url); // the user who added it has published it
  return redactor;
}

awaitable<void> PagePersona::heed(const hooks::HookRun& hook, const hooks::HookOutcome& outcome, const Options& options,
                                  const store::Lease& lease) {
  const auto& with_persona = options.persona_plugins;
  if (persona_ != nullptr && outcome.signed_out &&
      std::find(with_persona.begin(), with_persona.end(), hook.hook().plugin->name) != with_persona.end())
    co_await persona_->signed_out(version_, lease, *outcome.signed_out);
}

awaitable<void> PagePersona::keep(const store::Lease& lease, std::optional<warc::Redactor>& redactor,
                                  const std::string& url) {
  if (persona_ == nullptr) co_return;
  co_await persona_->keep(lease);
  if (!redactor) co_return;
  persona_->add_secrets(*redactor);
  redactor->except(url);
}

void hide_secrets(const warc::Redactor& redactor, hooks::HookOutcome& outcome) {
  const auto all = [&](std::initializer_list<std::string*> texts) {
    for (auto* const text : texts)
      redactor.apply(*text);
  };
  all({&outcome.output, &outcome.output_json, &outcome.error, &outcome.unreachable});
  for (auto* const list : {&outcome.redirects, &outcome.tags})
    for (auto& text : *list)
      all({&text});
  for (auto& record : outcome.discovered) {
    all({&record.url, &record.title});
    for (auto& tag : record.tags)
      all({&tag});
  }
  for (auto& [name, value] : outcome.facts)
    all({&value});
  if (outcome.signed_out) all({&*outcome.signed_out});
}

} // namespace holdfast::worker
