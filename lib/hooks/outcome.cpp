#include "lib/hooks/outcome.hpp"

#include "lib/base/text/duration.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/hooks/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>

namespace holdfast::hooks {

namespace {

constexpr int kExitSkipped = 10;

// Returns true for the ends of a hook that obeys HUP, INT or TERM: by the signal itself or, as shells report it, by 128
// + signal.
bool obeyed_signal(const process::Exit& exit) {
  const int signal = exit.signal != 0 ? exit.signal : exit.code - 128;
  return signal == SIGHUP || signal == SIGINT || signal == SIGTERM;
}

bool is_hex32(std::string_view text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](char letter) {
           return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
         });
}

// Lines that runtimes print after the message: stack frames, closing braces, the version of Node.
bool part_of_trace(std::string_view raw, std::string_view line) {
  const bool indented = raw.starts_with(' ') || raw.starts_with('\t');
  if (indented && (line.starts_with("at ") || line.starts_with("File \""))) return true;
  if (line.starts_with("Node.js v")) return true;
  return std::none_of(line.begin(), line.end(),
                      [](unsigned char letter) { return std::isalnum(letter) != 0 || letter >= 0x80; });
}

} // namespace

// Decides the status. By the contract, a record's own status wins; by our first rule, a failure is never stored as a
// success. They meet here: a record overrides the exit code, since hooks claim their result and then fail while
// cleaning up, or the other way round; but no record overrides an end that the hook did not choose (it crashed, ran
// into its timeout, could not be executed, or had to be killed), because its files may be half written by then. The
// polite end of a background hook is one that it did choose.
Status decide_status(const process::Exit& exit, const std::optional<ResultRecord>& record, bool has_outputs,
                     bool ended_politely, bool timed_out) {
  const bool polite = ended_politely && (exit.clean() || obeyed_signal(exit));
  if (exit.start_errno != 0 || timed_out) return Status::failed;
  if (exit.signal != 0 && !polite) return Status::failed;
  if (record) return record->status;
  if (exit.code == 0 || polite) return has_outputs ? Status::succeeded : Status::noresults;
  if (exit.code == kExitSkipped) return Status::skipped;
  return Status::failed;
}

bool is_runner_file(std::string_view file_name) {
  constexpr std::array<std::string_view, 5> kSuffixes{".stdout.log", ".stderr.log", ".log", ".pid", ".sh"};
  if (std::any_of(kSuffixes.begin(), kSuffixes.end(),
                  [&](std::string_view suffix) { return file_name.ends_with(suffix); })) {
    return true;
  }
  // <hook>.<32hex>.<anything>
  for (auto dot = file_name.find('.'); dot != std::string_view::npos; dot = file_name.find('.', dot + 1)) {
    const auto next = file_name.find('.', dot + 1);
    if (next != std::string_view::npos && is_hex32(file_name.substr(dot + 1, next - dot - 1))) return true;
  }
  return false;
}

std::string telling_line(std::string_view stderr_text) {
  constexpr std::size_t kLongest = 500;
  std::string fallback;
  while (!stderr_text.empty()) {
    const auto newline = stderr_text.find_last_of('\n');
    const std::string_view raw = newline == std::string_view::npos ? stderr_text : stderr_text.substr(newline + 1);
    stderr_text = newline == std::string_view::npos ? std::string_view() : stderr_text.substr(0, newline);
    std::string line = clean_text(raw, kLongest, Lines::one);
    if (line.empty()) continue;
    if (!part_of_trace(raw, line)) return line;
    if (fallback.empty()) fallback = std::move(line);
  }
  return fallback;
}

std::string in_seconds(std::chrono::milliseconds duration) {
  const auto tenths = (duration.count() + 50) / 100;
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text + "s";
}

bool ended_by_stop(const process::Exit& exit) {
  constexpr std::array<int, 4> kSignals{SIGHUP, SIGINT, SIGTERM, SIGKILL};
  constexpr std::array<int, 4> kCodes{0, 128 + SIGHUP, 128 + SIGINT, 128 + SIGTERM};
  if (exit.start_errno != 0) return false;
  if (exit.signal != 0) return std::find(kSignals.begin(), kSignals.end(), exit.signal) != kSignals.end();
  return std::find(kCodes.begin(), kCodes.end(), exit.code) != kCodes.end();
}

std::string describe_excess(const process::Exit& exit, const process::Limits& limits) {
  switch (exit.exceeded) {
  case process::TreeLimit::memory:
    return "memory exceeded " + base::format_size(limits.tree_memory_bytes.value_or(0));
  case process::TreeLimit::processes:
    return "had more than " + std::to_string(limits.tree_processes.value_or(0)) + " processes";
  case process::TreeLimit::none:
    break;
  }
  return {};
}

} // namespace holdfast::hooks
