#pragma once
// Options of a worker. Plain aggregate; immutable while the worker lives. The functions are pure.

#include "lib/hooks/environment.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/hooks/plugin_set.hpp"
#include "lib/persona/key_ring.hpp"
#include "lib/pg/connection.hpp"
#include "lib/store/snapshot.hpp"
#include "services/egress/destination.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::worker {

struct Options {
  std::string dsn;
  std::size_t connections{3};
  std::string version;
  std::filesystem::path data_dir, work_dir, archive_root, shim;
  std::filesystem::path temporary_dir;                   // TMPDIR of hooks; the worker's own if empty
  std::vector<std::filesystem::path> binary_directories; // looked in before PATH, and first on the PATH of hooks
  std::filesystem::path libexec;                         // stand-ins, last on the PATH of hooks; may be empty
  // Returns the last directories on the PATH of hooks: the stand-ins, and programs beside the shim (holdfast-capture).
  std::string last_on_path() const {
    const auto own = shim.parent_path().string();
    return libexec.empty() ? own : libexec.string() + ":" + own;
  }
  std::shared_ptr<const hooks::PluginSet> plugin_set;
  hooks::Options hook_options;                      // of this machine: weaker than the crawl's
  std::vector<std::string> environment_names;       // further variables of ours that hooks may see
  hooks::HookLimits hook_limits;                    // timeout: default for hooks without one
  std::string sandbox{"off"};                       // of hooks: auto, required, off
  std::string hook_users{"50000-59999"};            // whom hooks run as in it, if we are root
  bool egress{false};                               // hooks reach the web through a proxy of ours
  egress::Ports ports;                              // that it connects to
  std::vector<std::filesystem::path> secret_paths;  // files and directories that no hook may see
  persona::KeyRing key_ring;                        // opens personas
  std::string key_ring_problem;                     // why it has no keys
  std::string address{"0.0.0.0"};                   // where servers reach it for sign-ins: as the database sees it
  std::uint16_t port{0};                            // 0: any that is free
  std::vector<std::string> labels, persona_plugins; // of the worker; plugins that get what is secret of a persona
  bool redact{true};                                // what is secret of a persona is no part of the archive
  bool cgroups{true};                               // for hooks, where there may be some
  bool allow_private{false};
  int slots{4};
  std::chrono::milliseconds snapshot_timeout{0}; // of all hooks of a snapshot together; 0: no limit
  std::string kind{"all"};                       // all, crawl (turns seeds into snapshots), snapshot
  std::string parent_id;                         // of the runner that started it; may be empty
  store::ClaimOrder claim_order;                 // within a crawl
  // Works only on these: crawls, and of them, unless that is empty, these snapshots. No crawls: on all.
  std::vector<std::string> only_crawls, only_snapshots;
  int rate_limit_retries{4};                         // of a page whose site asked us to slow down
  std::chrono::milliseconds robots_delay_max{30000}; // a longer Crawl-delay is cut
  std::string deduplicate{"collection"};             // towards which WARC records: collection, crawl, off
  bool check_replay{false};                          // capture.check
  bool reuse_files{true};                            // changes.reuse
  std::chrono::milliseconds learn_changes{std::chrono::minutes(15)}; // changes.learn
  std::uint64_t text_bytes{256 << 10};                               // of a page, for search; 0: none is stored
  std::chrono::milliseconds poll{5000}, lease{60000}, heartbeat{15000}, margin{20000}, kill_grace{5000},
      drain_timeout{120000}, stop_timeout{20000};
  std::size_t session_max{4};                      // crawls with hooks open at once
  std::chrono::milliseconds session_linger{30000}; // kept open after the last snapshot
  // A worker takes no new work below or above these.
  std::uint64_t minimum_free_bytes{512ull << 20}; // on disk
  std::uint64_t minimum_free_memory_bytes{0};     // 0: does not look
  std::int64_t maximum_load{0};                   // per processor; 0: does not look
};

// Returns how long a worker waits for the database, as a function of its lease. An answer after the end of trust is of
// no use, so no call waits longer than trust could last.
pg::ConnectionOptions connection_options(const std::string& label, const Options& worker);
// A heartbeat that hangs is worth less than the next one: the session is given up, and a new one made, in time for it.
pg::ConnectionOptions heartbeat_options(const std::string& label, const Options& worker);

} // namespace holdfast::worker
