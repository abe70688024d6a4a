#pragma once
// Context of every verb: settings, the database (an embedded server if none is configured), the plugins. Owned by main;
// main thread only. The destructor closes the connection and leaves the embedded server.

#include "lib/config/settings.hpp"
#include "lib/hooks/plugin_set.hpp"
#include "lib/persona/key_ring.hpp"
#include "lib/pg/connection.hpp"
#include "lib/server/embedded_server.hpp"
#include "services/webhook/deliverer.hpp"
#include "services/worker/options.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

class Collection;

struct GlobalOptions {
  std::string config_file;
  std::vector<std::pair<std::string, std::string>> overrides; // setting, value
  bool json{false};                                           // JSON lines even on a terminal
  bool table{false};                                          // the other way round
  char** arguments{nullptr};                                  // of this program, as the system gave them
};

// Instead of a verb, with a data directory: stops its server if no process uses it. For holdfast-guard.
inline constexpr const char* kStopUnusedServer = "--stop-unused-server";

class Context {
public:
  explicit Context(GlobalOptions options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const config::Settings& settings() const noexcept { return settings_; }
  const GlobalOptions& global() const noexcept { return options_; }
  // Returns true if results are JSON lines: requested, or standard output is no terminal.
  bool json() const noexcept { return json_; }
  // Returns true if commands work with a server over HTTP, the setting `server`, in place of a database.
  bool remote() const;
  bool embedded() const;
  std::filesystem::path data_dir() const;
  std::filesystem::path archive_root() const; // throws Error(usage), as dsn()

  // Returns true if the data directory holds an embedded database already; verbs that only read do not make one.
  bool has_embedded_data() const;
  // The collection, as commands see it that work with a database or a server. `create`: as connection() has it.
  Collection& collection(bool create = false);
  // Returns the address of the database; starts the embedded server if that is it. Throws Error(usage) if there is a
  // server in its place, as connection() does.
  const std::string& dsn();
  // A connection to a database with the right schema: an embedded one is migrated here, another one must be up to date.
  // Throws Error(unavailable) with a hint when there is no collection yet and `create` is false.
  pg::Connection& connection(bool create = false);
  // For verbs that diagnose: the sessions of this process wait for no lock longer than 2 s.
  void diagnose() { diagnosing_ = true; }
  // Returns the session that holds the lock for which a statement waited, if there is a connection; empty: unknown.
  std::string who_blocks() noexcept;
  // For verbs that stay: a session that is not used any more is one that others may need.
  void disconnect() { connection_.reset(); }

  std::shared_ptr<const hooks::PluginSet> plugin_set();
  // Returns the options of workers. Without the database: for verbs that only examine this machine.
  worker::Options worker_options(bool with_database = true);
  // For verbs that start hooks, before they do anything: they run below holdfast-guard, which leaves nothing behind
  // however they end. Replaces this process by the guard unless it is our parent already; returns only in the guarded
  // process, which notes signals. Throws Error(configuration) if the settings break the lease rule.
  void guard();
  // The keys of personas; without any if no file is set. Once there is an embedded database, a key is made. Throws
  // Error(configuration).
  persona::KeyRing key_ring() const;
  // Returns a sender of webhooks and e-mail, which works while it lives; nothing if neither webhooks.secret_file nor
  // mail.server is set, nor apprise.config with a program.
  std::unique_ptr<webhook::Deliverer> deliverer(const std::string& role);

  // Throws Error(usage) if the settings name a server in place of a database.
  void need_database() const;

private:
  GlobalOptions options_;
  config::Settings settings_;
  bool json_{false}, diagnosing_{false}, create_{false};
  std::unique_ptr<Collection> collection_;
  std::unique_ptr<server::EmbeddedServer> server_;
  std::string dsn_;
  std::unique_ptr<pg::Connection> connection_;
  std::shared_ptr<const hooks::PluginSet> plugin_set_;
};

std::string user_name();

} // namespace holdfast::cli
