#include "services/worker/session/session_directory.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text/time.hpp"
#include "lib/store/call.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/machine/scratch.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <cerrno>

namespace holdfast::worker {

namespace {

constexpr std::chrono::seconds kHeartbeat{5};
constexpr int kHeartbeatKills = 180; // seconds without a heartbeat after which hooks take a session for dead

} // namespace

SessionDirectory::SessionDirectory(HookServices& context, const std::string& crawl_id, const std::string& session_id,
                                   const std::string& persona)
    : context_(context), crawl_id_(crawl_id), session_id_(session_id), persona_(persona),
      path_(context.options.work_dir / "crawls" / session_id), sandbox_(context.sandbox), pulse_(context.executor) {}

std::filesystem::path SessionDirectory::persona_files() const {
  return persona_.empty() ? "" : context_.options.work_dir / "personas" / session_id_;
}

std::filesystem::path SessionDirectory::library() const {
  return hooks_ && sandboxed() ? path_ / ".library" : context_.options.data_dir / "lib";
}

std::filesystem::path SessionDirectory::temporary() const {
  return context_.options.work_dir / "tmp" / short_id(session_id_);
}

std::filesystem::path SessionDirectory::attempts() const { return context_.options.work_dir / "attempts" / crawl_id_; }

awaitable<void> SessionDirectory::make() {
  co_await base::on_thread(context_.files, [this] {
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (error) throw_cannot_create(path_, error.message());
    for (const auto& needed : {attempts(), sandboxed() ? temporary() : path_})
      std::filesystem::create_directories(needed, error);
    if (sandboxed()) user_ = context_.hook_users.lease();
    if (user_) sandbox_.user = user_->user();
    give_to_hooks(sandbox_, temporary());
    if (hooks_) std::filesystem::create_directories(library(), error);
    if (hooks_ && sandboxed())
      for (const auto& entry : std::filesystem::directory_iterator(context_.options.data_dir / "lib", error))
        std::filesystem::create_symlink(entry.path(), library() / entry.path().filename(), error);
    std::filesystem::create_directories(personas() / (persona_.empty() ? "Default" : persona_), error);
    give_to_hooks(sandbox_, path_);
    if (const auto secret = persona_files(); !persona_.empty()) {
      if (!base::make_directories_no_links(secret / "changes", 0700))
        throw_cannot_create(secret, base::errno_text(errno));
      // A hook of another user reaches its own below it, and can list none.
      std::filesystem::permissions(secret.parent_path(), std::filesystem::perms(0711), error);
      give_to_hooks(sandbox_, secret);
    }
  });
}

void SessionDirectory::describe(hooks::HookContext& hook) const {
  hook.crawl_dir = path_;
  hook.library_dir = library();
  hook.personas_dir = personas();
  hook.persona_files = persona_files();
  if (!persona_.empty()) hook.persona = persona_;
}

awaitable<void> SessionDirectory::keep_heartbeat() {
  for (;;) {
    const nlohmann::json text = {{"runtime", "holdfast"},
                                 {"crawl_id", crawl_id_},
                                 {"owner_pid", getpid()},
                                 {"last_alive_at", base::utc_timestamp()},
                                 {"kill_after_seconds", kHeartbeatKills}};
    // If something stands in the way, it is left out.
    replace_own_file(path_ / ".heartbeat.json", store::json_text(text) + "\n", 0644);
    pulse_.expires_after(kHeartbeat);
    const auto [cancelled] = co_await pulse_.async_wait(asio::as_tuple(asio::use_awaitable));
    if (cancelled) co_return;
  }
}

awaitable<void> SessionDirectory::remove() {
  pulse_.cancel();
  co_await base::on_thread(context_.files, [this] {
    user_.reset(); // before what its processes may still write is removed
    std::error_code ignored;
    std::filesystem::remove(attempts(), ignored); // only if no attempt is there
    for (const auto& directory :
         {path_, sandboxed() ? temporary() : path_, persona_.empty() ? path_ : persona_files()}) {
      try {
        archive::remove_directory(directory);
      } catch (const base::Error& error) {
        spdlog::warn("could not remove files of a session: {}", error.what());
      }
    }
  });
}

} // namespace holdfast::worker
