#include "services/worker/page/recapture.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/url.hpp"
#include "lib/store/call.hpp"
#include "services/worker/attempt/recheck.hpp"
#include "services/worker/page/hook_choice.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace holdfast::worker {

namespace {

constexpr const char* kPlugin = "recapture"; // name of its directory and result

std::string option_of(const hooks::Options& options, const char* name) {
  const auto found = options.find(name);
  return found == options.end() ? "" : found->second;
}

std::string digest_of(const HookChoice& choice, const hooks::Options& options) {
  base::Sha256 hash;
  for (const auto* hook : choice.hooks)
    hash.update(hook->plugin->name + "/" + hook->name.name + "\n");
  for (const auto& [name, value] : options)
    hash.update(name + "=" + value + "\n");
  return hash.finish();
}

// A snapshot whose files may be shown again, and its records.
struct Source {
  Earlier earlier;
  std::vector<store::Capture> captures;
};

awaitable<std::optional<Source>> find_source(PageWork& work) {
  const auto call = [&work](pg::Connection& connection) -> std::optional<Source> {
    const auto rows =
        store::call(connection, "recapture_get", work.claim.url, work.claim.persona, work.claim.lease.snapshot_id);
    if (rows.empty()) return std::nullopt;
    const auto row = rows[0];
    Source source{{row["snapshot_id"], row["kind"], base::base64_decode(row.text("body")),
                   change::reuse_from(nlohmann::json::parse(row.text("reuse"))), row["directory"]},
                  {}};
    const auto why = change::why_hooks(source.earlier.reuse, work.hooks);
    spdlog::debug("{}: {}", work.claim.url, why.empty() ? "its files may be unchanged" : "runs hooks: " + why);
    if (!why.empty()) return std::nullopt;
    source.captures = store::captures_of(connection, {source.earlier.reuse.from});
    std::erase_if(source.captures, [](const auto& capture) { return !base::is_web_url(capture.url); });
    return source;
  };
  auto source = co_await work.services.retry.repeat(call);
  co_return source;
}

// Redirects are judged by robots.txt when a hook reports them.
bool leads_elsewhere(const store::Claim& claim, const std::vector<store::Capture>& captures) {
  return std::any_of(captures.begin(), captures.end(), [&](const auto& capture) {
    return capture.url == claim.url && capture.status >= 300 && capture.status < 400;
  });
}

// Shows results of the hooks that made the files, and one of the requests.
void take_results(PageWork& work, HookResults& results, archive::SnapshotView earlier, const Rechecked& checked) {
  auto& view = work.view;
  for (auto& [name, value] : earlier.facts)
    if (base::fact_source(name) != base::FactSource::attempt) view.facts.emplace(name, std::move(value));
  if (!earlier.title.empty()) view.title = earlier.title;
  for (auto& tag : earlier.tags)
    if (std::find(view.tags.begin(), view.tags.end(), tag) == view.tags.end()) view.tags.push_back(std::move(tag));
  for (auto& result : earlier.results) {
    std::erase_if(result.files, [](const auto& file) { return archive::is_warc(file.path); });
    results.add_earlier(std::move(result));
  }
  archive::ResultView result;
  result.plugin = result.hook = kPlugin;
  result.title = "Unchanged files";
  result.status = "succeeded";
  result.output = std::to_string(checked.equal) + " files are unchanged";
  result.files.push_back({std::string(kPlugin) + "/recapture.warc.gz", "application/warc", 0, ""});
  results.add_earlier(std::move(result));
  if (work.claim.depth < work.claim.max_depth)
    for (auto& link : earlier.discovered)
      work.page.links.push_back({link, "", {}, ""});
  view.discovered = std::move(earlier.discovered);
}

} // namespace

awaitable<bool> recapture(PageWork& work, HookResults& results, const hooks::Options& options) {
  const auto& services = work.services;
  const auto& claim = work.claim;
  work.hooks = digest_of(choose_hooks(services, claim, options), options);
  if (!services.options.reuse_files || claim.full || !claim.persona.empty() || !claim.archived.empty() ||
      services.options.deduplicate != "collection" || services.archive_root.bucket() != nullptr)
    co_return false;
  auto source = co_await find_source(work);
  if (!source || (claim.robots && leads_elsewhere(claim, source->captures))) co_return false;
  const auto url = base::try_parse_url(claim.url);
  work.route =
      services.networks.route(nullptr, {claim.host, url ? url->port : std::uint16_t{0}}, claim.max_snapshot_bytes);
  const process::Sandbox none{}; // no hook writes here
  co_await work.files.make(none);
  const Recheck asked{services.archive_root,
                      claim.url,
                      std::move(source->captures),
                      work.route ? work.route->proxy() : "",
                      services.options.allow_private,
                      hooks::enabled(options, "CHECK_SSL_VALIDITY", true),
                      option_of(options, "USER_AGENT"),
                      warc::OmittedHeaders(option_of(options, "WARC_OMIT_HEADERS")),
                      work.files.abandoned()};
  const auto directory = work.files.directory() / kPlugin;
  std::optional<archive::SnapshotView> earlier;
  std::uint64_t linked = 0;
  const auto checked = co_await base::on_thread(services.files, [&] {
    std::filesystem::create_directory(directory);
    auto done = recheck(asked, directory / "recapture.warc.gz");
    if (!done.differs.empty()) return done;
    const auto index = services.archive_root.open_file(source->earlier.directory + "/index.jsonl");
    if (index) earlier = archive::read_index_jsonl(archive::read_rest(index.get(), "index.jsonl"));
    if (earlier)
      linked = archive::link_files(services.archive_root, source->earlier.directory, work.files.directory());
    else
      done.differs = source->earlier.directory + ": its index.jsonl cannot be read";
    return done;
  });
  if (!checked.differs.empty()) {
    spdlog::info("{} is captured by hooks: {}", claim.url, checked.differs);
    co_await base::on_thread(services.files, [&] { work.files.remove_all(); });
    work.route.reset();
    co_return false;
  }
  if (linked > 0) work.view.facts["bytes_saved"] = std::to_string(linked);
  take_results(work, results, std::move(*earlier), checked);
  if (source->earlier.reuse.crawl != claim.lease.crawl_id)
    work.page.originals.emplace(source->earlier.reuse.crawl, source->earlier.reuse.from);
  work.earlier = std::move(source->earlier);
  work.verdict = {"succeeded", "", std::nullopt};
  co_return true;
}

} // namespace holdfast::worker
