#include "services/worker/session/session_persona.hpp"

#include "lib/base/coroutine.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/machine/scratch.hpp"
#include "services/worker/turn/failure.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>

namespace holdfast::worker {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLargestChange = 64u << 20;
constexpr std::size_t kVersions = 8;
constexpr std::size_t kMostRenewed = 10000;

awaitable<store::Persona> load(HookServices& context, const std::string& name) {
  std::string problem;
  try {
    if (auto found = co_await context.retry.repeat(&store::persona_load, context.options.key_ring, name))
      co_return std::move(*found);
    problem = "there is no persona \"" + name + "\"";
  } catch (const base::Error& error) {
    if (error.error_class() != base::ErrorClass::configuration) throw;
    problem = error.what();
  }
  throw Failure{Failure::Kind::no_plugin, problem};
}

} // namespace

SessionPersona::SessionPersona(HookServices& context, store::Persona persona)
    : context_(context), persona_(std::move(persona)) {}

awaitable<std::unique_ptr<SessionPersona>> SessionPersona::open(HookServices& context, const std::string& name) {
  if (name.empty()) co_return nullptr;
  auto persona = co_await load(context, name);
  co_return std::unique_ptr<SessionPersona>(new SessionPersona(context, std::move(persona)));
}

void SessionPersona::add_secrets(warc::Redactor& redactor) const {
  for (const auto& [version, state] : given_)
    for (const auto& secret : persona::secrets_of(state))
      redactor.add(secret);
  for (const auto& secret : renewed_)
    redactor.add(secret);
}

awaitable<void> SessionPersona::signed_out(std::int64_t version, const store::Lease& lease, std::string reason) {
  const store::PersonaHeld page{context_.worker_id, lease.snapshot_id, lease.fence};
  const bool news = co_await context_.retry.repeat(&store::persona_signed_out, page, version, reason);
  reason = "persona \"" + persona_.name + "\" is signed out: " + reason;
  if (news) spdlog::warn("{}; its crawls wait until it is signed in again", reason);
  throw Failure{Failure::Kind::later, reason};
}

awaitable<void> SessionPersona::make(const SessionDirectory& directory) {
  directory_ = &directory;
  co_await take(persona_);
}

awaitable<void> SessionPersona::take(store::Persona persona) {
  persona_ = std::move(persona);
  given_[persona_.version] = persona_.state;
  while (given_.size() > kVersions)
    given_.erase(given_.begin());
  co_await base::on_thread(context_.files, [this] { write_files(); });
}

void SessionPersona::write_files() const {
  auto state = nlohmann::ordered_json::parse(persona_.state.text());
  state["version"] = persona_.version;
  state["checks"] = persona_.checks;
  state["hosts"] = persona_.hosts;
  for (const auto& [name, text] :
       {std::pair{"cookies.txt", persona::cookies_txt(persona_.state)}, std::pair{"auth.json", state.dump()}})
    if (const auto file = directory_->persona_files() / name; !replace_own_file(file, text, 0600))
      throw_cannot_create(file, base::errno_text(errno));
  give_to_hooks(directory_->sandbox(), directory_->persona_files());
}

awaitable<void> SessionPersona::renew() {
  auto newest = co_await load(context_, persona_.name);
  if (newest.version != persona_.version || newest.checks != persona_.checks || newest.hosts != persona_.hosts)
    co_await take(std::move(newest));
}

std::vector<SessionPersona::Change> SessionPersona::read_changes() const {
  std::vector<Change> changes;
  std::error_code error;
  for (fs::directory_iterator entry(directory_->persona_files() / "changes", error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".json") continue;
    const auto text = base::tail_of(entry->path(), kLargestChange);
    base::remove_no_links(entry->path());
    try {
      std::vector<std::string> left_out;
      changes.push_back({nlohmann::json::parse(text).value("version", std::int64_t{0}),
                         persona::State::parse(text, "changes", left_out)});
    } catch (const std::exception&) { // the hook's mistake; it says nothing that may be logged
      spdlog::warn("persona \"{}\": the changes reported by a hook cannot be read", persona_.name);
    }
  }
  return changes;
}

awaitable<void> SessionPersona::keep(store::Lease lease) {
  const auto changes = co_await base::on_thread(context_.files, [this] { return read_changes(); });
  for (const auto& change : changes) {
    for (auto& secret : persona::secrets_of(change.state))
      if (renewed_.size() < kMostRenewed) renewed_.insert(std::move(secret));
    const auto before = given_.find(change.version);
    if (before == given_.end()) continue;
    const auto given = before->second;
    const auto apply = [&](persona::State& current) { return persona::apply_changes(current, given, change.state); };
    const store::PersonaHeld page{context_.worker_id, lease.snapshot_id, lease.fence};
    try {
      // If its answer is lost, another seems to have been faster, and the next try finds the change made.
      auto kept =
          co_await context_.retry.repeat(&store::persona_keep, context_.options.key_ring, page, persona_.name, apply);
      if (kept) co_await take(std::move(*kept));
    } catch (const base::Error& error) {
      spdlog::warn("persona \"{}\": its new cookies are not kept: {}", persona_.name, error.what());
    }
  }
}

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
