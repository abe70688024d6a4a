#pragma once
// The verbs. Each is called by main with its parsed options and returns the exit code; failures are Errors, which main
// prints.

#include "lib/store/crawl.hpp"
#include "services/cli/context.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

// How far and how fast a crawl may go; see limits.hpp.
struct LimitOptions {
  std::string max_bytes, max_page_bytes, max_time, same, max_age, keep, delay; // as typed; empty: not given
  int parallel{0}, priority{0};
  std::vector<std::string> allow, deny, schemes;
  bool only_new{false}, update{false}, overwrite{false};
  std::optional<bool> robots; // nullopt: the setting
};

struct AddOptions {
  std::vector<std::string> inputs; // URLs, files, "-" for standard input
  int depth{0};
  std::int64_t max_urls{-1}; // -1: the setting crawl.max_urls
  std::vector<std::string> plugins, tags, options;
  std::string label, notes, persona;
  std::string parser{"auto"}; // see input.hpp
  LimitOptions limits;
  bool wait{false}, background{false};
  bool strict{false}; // a line that cannot be used is an error
};
// The crawl that these options describe, checked against the settings and plugins of this machine.
struct PlannedCrawl {
  store::NewCrawl crawl;
  std::vector<store::Seed> seeds;
  std::size_t left_out{0}; // lines that cannot be used
};
PlannedCrawl plan_crawl(Context& context, const AddOptions& options);
// Whether `add` will run hooks itself (and so must be guarded).
bool add_works(const AddOptions& options, const Context& context);
int add(Context& context, const AddOptions& options);

struct WorkerOptions {
  std::string kind;   // as the setting worker.kind; empty: as that says
  std::string parent; // id of the runner that starts it; may be empty
};
int work(Context& context, const WorkerOptions& options);
// Duties only. `standby`: wait for the leading runner to be gone.
int run_duties(Context& context, bool standby);
// Who leads, who waits, and what the duties have done. 1 if no healthy runner leads.
int runner_status(Context& context);
// All in one: duties and local workers, until nothing is left to do, or for ever.
int run(Context& context, bool daemon);

int status(Context& context);
struct ListOptions {
  std::string what{"snapshots"};
  std::string crawl, snapshot, status, outcome, host, since, url, tag, plugin;
  std::vector<std::string> columns; // of tables, CSV and JSON; empty: the usual ones
  std::int64_t limit{50};
  bool csv{false};
};
int list(Context& context, const ListOptions& options);
int show(Context& context, const std::string& id);

int migrate(Context& context, bool force);
int show_config(Context& context, const std::string& key);
int version(Context& context);
int inspect_lifecycle(const std::string& name, bool mermaid);
// docs of settings (from the key table) or of views (from their comments), as Markdown: deploy/reference-*.md are this.
int inspect_reference(Context& context, const std::string& topic);
int check(Context& context);

} // namespace holdfast::cli
