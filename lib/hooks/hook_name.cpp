#include "lib/hooks/hook_name.hpp"

#include "lib/base/text/characters.hpp"
#include "lib/base/text/utf8.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::hooks {

namespace {

// Runner files append ".<32hex>.stdout.log" to the name, and a file name has 255 bytes at most.
constexpr std::size_t kLongestHookName = 200;

constexpr std::array<std::pair<std::string_view, Event>, 5> kEvents{{{"CrawlSetup", Event::crawl_setup},
                                                                     {"Crawl", Event::crawl_setup},
                                                                     {"Snapshot", Event::snapshot},
                                                                     {"Binary", Event::binary},
                                                                     {"CrawlEnd", Event::crawl_end}}};

std::optional<Event> parse_event(std::string_view word) {
  constexpr std::string_view kSuffix = "Event";
  if (word.size() > kSuffix.size() && word.ends_with(kSuffix)) word.remove_suffix(kSuffix.size());
  for (const auto& [name, event] : kEvents) {
    if (word == name) return event;
  }
  return std::nullopt;
}

bool printable(std::string_view text) {
  return base::is_utf8(text) &&
         std::none_of(text.begin(), text.end(), [](char letter) { return base::is_control(letter) || letter == '/'; });
}

} // namespace

std::optional<HookName> parse_hook_name(std::string_view file_name) {
  constexpr std::string_view kPrefix = "on_";
  if (!file_name.starts_with(kPrefix) || file_name.size() > kLongestHookName || !printable(file_name))
    return std::nullopt;
  const auto separator = file_name.find("__", kPrefix.size());
  if (separator == std::string_view::npos) return std::nullopt;
  const auto event = parse_event(file_name.substr(kPrefix.size(), separator - kPrefix.size()));
  if (!event) return std::nullopt;

  std::string_view rest = file_name.substr(separator + 2);
  int order = -1;
  std::size_t digits = 0;
  while (digits < rest.size() && base::is_digit(rest[digits]))
    ++digits;
  if (digits > 0 && digits < rest.size() && rest[digits] == '_') {
    order = 0;
    constexpr int kLargestOrder = 1'000'000; // saturates: an absurd number still sorts after the sane ones
    for (std::size_t index = 0; index < digits; ++index) {
      order = std::min(order * 10 + (rest[index] - '0'), kLargestOrder);
    }
    rest.remove_prefix(digits + 1);
  }

  // The last extension goes, unless it is the background marker of a program without an extension.
  std::string_view stem = file_name;
  std::string_view extension;
  const auto dot = rest.rfind('.');
  if (dot != std::string_view::npos && dot + 1 < rest.size() && rest.substr(dot + 1) != "bg") {
    extension = rest.substr(dot + 1);
    stem.remove_suffix(extension.size() + 1);
    rest = rest.substr(0, dot);
  }
  if (rest.empty()) return std::nullopt;

  HookName result;
  result.event = *event;
  result.order = order;
  result.name = std::string(stem);
  if (extension == "sh" || extension == "py" || extension == "js") result.extension = std::string(extension);
  result.background = rest.ends_with(".bg") || rest.find(".bg.") != std::string_view::npos ||
                      rest.find("__background") != std::string_view::npos; // the old marker
  result.daemon = result.background && rest.find(".daemon.") != std::string_view::npos;
  return result;
}

} // namespace holdfast::hooks
