#include "services/worker/session_directory.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/base/error.hpp"
#include "lib/base/log.hpp"
#include "lib/base/no_links.hpp"
#include "lib/base/text.hpp"
#include "lib/base/write_all.hpp"
#include "lib/store/json.hpp"
#include "services/worker/hook_sandbox.hpp"
#include "services/worker/on_thread.hpp"
#include "services/worker/scratch.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace holdfast::worker {

namespace {

constexpr std::chrono::seconds kHeartbeat{5};
constexpr int kHeartbeatKills = 180; // seconds without a heartbeat after which hooks take a session for dead

// Hooks may write in the directory: a link that one of them left there must not lead our write elsewhere. If something
// stands in the way, the heartbeat is left out.
void write_heartbeat(const std::filesystem::path& file, const std::string& text) {
  const auto partial = file.string() + ".new";
  base::remove_no_links(partial);
  const auto fd = base::open_no_links(partial, O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (fd && base::write_all(fd.get(), text)) ::rename(partial.c_str(), file.c_str());
}

} // namespace

SessionDirectory::SessionDirectory(JobContext& context, const std::string& crawl_id, const std::string& session_id,
                                   const std::string& persona)
    : context_(context), crawl_id_(crawl_id), session_id_(session_id), persona_(persona),
      path_(context.options.work_dir / "crawls" / session_id), sandbox_(context.sandbox), pulse_(context.executor) {}

std::filesystem::path SessionDirectory::personas() const { return path_ / ".persona"; }

std::filesystem::path SessionDirectory::library() const {
  return hooks_ && sandboxed() ? path_ / ".library" : context_.options.data_dir / "lib";
}

std::filesystem::path SessionDirectory::temporary() const {
  return context_.options.work_dir / "tmp" / short_id(session_id_);
}

std::filesystem::path SessionDirectory::attempts() const { return context_.options.work_dir / "attempts" / crawl_id_; }

awaitable<void> SessionDirectory::make() {
  co_await on_thread(context_.files, [this] {
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (error)
      throw base::Error(base::ErrorClass::cannot_create, "cannot create " + path_.string() + ": " + error.message(),
                        "check owner, permissions and free space of work_dir");
    for (const auto& needed : {attempts(), sandboxed() ? temporary() : path_})
      std::filesystem::create_directories(needed, error);
    if (sandboxed()) user_ = context_.hook_users.lease();
    if (user_) sandbox_.user = user_->user();
    give_to_hooks(sandbox_, temporary());
    if (hooks_) std::filesystem::create_directories(library(), error);
    if (hooks_ && sandboxed())
      for (const auto& entry : std::filesystem::directory_iterator(context_.options.data_dir / "lib", error))
        std::filesystem::create_symlink(entry.path(), library() / entry.path().filename(), error);
    std::filesystem::create_directories(personas() / persona_, error);
    give_to_hooks(sandbox_, path_);
  });
}

awaitable<void> SessionDirectory::keep_heartbeat() {
  for (;;) {
    const nlohmann::json text = {{"runtime", "holdfast"},
                                 {"crawl_id", crawl_id_},
                                 {"owner_pid", getpid()},
                                 {"last_alive_at", base::utc_timestamp()},
                                 {"kill_after_seconds", kHeartbeatKills}};
    write_heartbeat(path_ / ".heartbeat.json", store::json_text(text) + "\n");
    pulse_.expires_after(kHeartbeat);
    const auto [cancelled] = co_await pulse_.async_wait(asio::as_tuple(asio::use_awaitable));
    if (cancelled) co_return;
  }
}

awaitable<void> SessionDirectory::remove() {
  pulse_.cancel();
  co_await on_thread(context_.files, [this] {
    user_.reset(); // before what its processes may still write is removed
    std::error_code ignored;
    std::filesystem::remove(attempts(), ignored); // only if no attempt is there
    for (const auto& directory : {path_, sandboxed() ? temporary() : path_}) {
      try {
        archive::remove_directory(directory);
      } catch (const base::Error& error) {
        spdlog::warn("left behind: {}", error.what());
      }
    }
  });
}

} // namespace holdfast::worker
