#pragma once
// The crawl that the options of `add` describe, checked against the settings and plugins of this machine. Main thread.

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
  std::string patience, identify;
};

struct AddOptions {
  std::vector<std::string> inputs; // URLs, files, "-" for standard input
  int depth{0};
  std::int64_t max_urls{-1}; // -1: the setting crawl.max_urls
  std::vector<std::string> plugins, tags, options;
  std::string label, notes, persona;
  std::string parser{"auto"}; // see input.hpp
  bool requested{false}; // over HTTP: the inputs are URLs, never files; `text` and `file` are what files would hold
  std::string text, file;
  LimitOptions limits;
  bool wait{false}, background{false};
  bool strict{false}; // a line that cannot be used is an error
};
struct PlannedCrawl {
  store::NewCrawl crawl;
  std::vector<store::Seed> seeds;
  std::size_t left_out{0}; // lines that cannot be used
  std::string problems;    // what is wrong with them; only if requested, else it is on standard error
};
PlannedCrawl plan_crawl(Context& context, const AddOptions& options);

} // namespace holdfast::cli
