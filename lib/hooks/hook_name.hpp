#pragma once
// The file name of a hook: on_<Event>__[<order>_]<rest>[.bg|.finite.bg|.daemon.bg].<ext>.
// Pure.

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::hooks {

enum class Event { crawl_setup, snapshot, binary, crawl_end };

struct HookName {
  Event event{};
  int order{-1};         // the two-digit number; -1 if absent
  std::string name;      // file name minus its last extension: "on_Snapshot__35_wget.finite.bg"
  std::string extension; // "sh", "py", "js" or empty
  bool background{false};
  bool daemon{false}; // in the background until it is stopped
};

// nullopt if it is no hook name or of an event that Holdfast never runs. "Crawl" and "CrawlSetup" are the same event; a
// trailing "Event" in the event's name is accepted.
std::optional<HookName> parse_hook_name(std::string_view file_name);

} // namespace holdfast::hooks
