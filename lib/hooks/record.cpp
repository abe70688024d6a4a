#include "lib/hooks/record.hpp"

#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "lib/hooks/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

namespace holdfast::hooks {

namespace {

using nlohmann::json;

constexpr std::size_t kLongestLine = 1u << 20;
constexpr std::size_t kMostRecords = 100'000;
constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kLongestJson = 64u << 10;
constexpr std::size_t kLongestWord = 256; // tags, binaries, hosts
constexpr std::size_t kMostReasons = 20;
constexpr std::uint32_t kMostResources = 1000000; // of a page
constexpr std::size_t kMostSettings = 1000;

std::string text_of(const json& object, const char* key, std::size_t limit, Lines lines = Lines::one) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  return clean_text(found->get_ref<const std::string&>(), limit, lines);
}

std::optional<Record> result_record(const json& object) {
  // Without a status it claims nothing: the exit code decides, as if the line were not there.
  const auto status = object.find("status");
  if (status == object.end() || !status->is_string()) return std::nullopt;
  ResultRecord record;
  record.status = parse_status(status->get_ref<const std::string&>());
  record.output = text_of(object, "output_str", kLongestText);
  if (record.output.empty()) record.output = text_of(object, "output", kLongestText); // name of the oldest hooks
  if (const auto value = object.find("output_json"); value != object.end() && !value->is_null()) {
    std::string text = base::json_text(*value);
    if (text.size() <= kLongestJson) record.output_json = std::move(text);
  }
  record.error = text_of(object, "error", kLongestText, Lines::many);
  return record;
}

// "a, b" or ["a", "b"].
std::vector<std::string> tags_of(const json& object) {
  std::vector<std::string> tags;
  const auto add = [&](std::string_view text) {
    std::string tag = clean_text(text, kLongestWord, Lines::one);
    if (!tag.empty() && tags.size() < kMostTags && std::find(tags.begin(), tags.end(), tag) == tags.end()) {
      tags.push_back(std::move(tag));
    }
  };
  const auto found = object.find("tags");
  if (found == object.end()) return tags;
  if (found->is_string()) {
    for (const auto& tag : base::split(found->get_ref<const std::string&>(), ","))
      add(tag);
  } else if (found->is_array()) {
    for (const json& tag : *found) {
      if (tag.is_string()) add(tag.get_ref<const std::string&>());
    }
  }
  return tags;
}

std::optional<Record> snapshot_record(const json& object) {
  const auto url = object.find("url");
  if (url == object.end() || !url->is_string()) return std::nullopt;
  SnapshotRecord record;
  record.url = base::trimmed(url->get_ref<const std::string&>());
  if (record.url.empty() || record.url.size() > base::kLongestUrl) return std::nullopt;
  record.title = text_of(object, "title", kLongestText);
  record.bookmarked_at = text_of(object, "bookmarked_at", kLongestWord);
  if (record.bookmarked_at.empty()) record.bookmarked_at = text_of(object, "timestamp", kLongestWord);
  record.plugin = text_of(object, "plugin", kLongestWord);
  record.tags = tags_of(object);
  return record;
}

std::optional<Record> tag_record(const json& object) {
  TagRecord record{text_of(object, "name", kLongestWord)};
  if (record.name.empty()) return std::nullopt;
  return record;
}

std::optional<Record> binary_record(const json& object) {
  BinaryRecord record;
  record.name = text_of(object, "name", kLongestWord);
  if (record.name.empty()) return std::nullopt;
  record.path = text_of(object, "abspath", kLongestText);
  record.version = text_of(object, "version", kLongestWord);
  record.sha256 = text_of(object, "sha256", kLongestWord);
  record.provider = text_of(object, "binprovider", kLongestWord);
  if (record.provider.empty()) record.provider = text_of(object, "binproviders", kLongestWord); // BinaryRequest
  return record;
}

bool setting_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestWord && !(name.front() >= '0' && name.front() <= '9') &&
         std::all_of(name.begin(), name.end(), [](char letter) {
           return (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') || letter == '_';
         });
}

std::optional<Record> machine_record(const json& object) {
  MachineRecord record;
  const auto add = [&](std::string_view key, const json& value) {
    constexpr std::string_view kScope = "config/"; // "config/WGET_BINARY" in one old generation
    if (key.starts_with(kScope)) key.remove_prefix(kScope.size());
    if (!setting_name(key) || value.is_null() || record.config.size() >= kMostSettings) return;
    std::string text = environment_text(value);
    if (text.size() <= kLongestJson) record.config.emplace_back(std::string(key), std::move(text));
  };
  if (const auto config = object.find("config"); config != object.end() && config->is_object()) {
    for (const auto& [key, value] : config->items())
      add(key, value);
  } else if (const auto key = object.find("key"); key != object.end() && key->is_string()) {
    // Only an update sets a value; "unset" and others are not supported.
    const auto method = object.find("_method");
    const auto value = object.find("value");
    if (value != object.end() && (method == object.end() || *method == "update")) {
      add(key->get_ref<const std::string&>(), *value);
    }
  }
  if (record.config.empty()) return std::nullopt;
  return record;
}

std::optional<double> number_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  double value = 0;
  if (found->is_number()) {
    value = found->get<double>();
  } else if (found->is_string()) { // headers are text, and hooks pass them on
    const std::string& text = found->get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  } else {
    return std::nullopt;
  }
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

// Retry-After as a date of HTTP, which hooks pass on as it is.
std::optional<double> seconds_until(const std::string& date) {
  const auto time = base::read_timestamp(date);
  if (!time) return std::nullopt;
  return std::max(0.0, std::chrono::duration<double>(*time - std::chrono::system_clock::now()).count());
}

std::optional<Record> rate_limit_record(const json& object) {
  RateLimitRecord record;
  record.host = base::lower_case(text_of(object, "host", kLongestWord));
  if (record.host.empty()) return std::nullopt;
  if (const auto status = number_of(object, "status"); status && *status >= 100 && *status <= 999) {
    record.status = static_cast<int>(*status);
  }
  auto seconds = number_of(object, "retry_after");
  if (!seconds) seconds = seconds_until(text_of(object, "retry_after", kLongestWord));
  if (seconds && *seconds >= 0) {
    constexpr double kLongestWait = 7.0 * 24 * 3600; // a page must not be able to park a site for ever
    record.retry_after_seconds = std::min(*seconds, kLongestWait);
  }
  return record;
}

std::optional<Record> redirect_record(const json& object) {
  RedirectRecord record;
  record.location = text_of(object, "location", base::kLongestUrl);
  if (record.location.empty()) return std::nullopt;
  return record;
}

// "Text/HTML; charset=utf-8" -> "text/html"
std::string mime_of(std::string_view text) {
  constexpr std::string_view kOthers = "!#$&-^_.+";
  std::string mime = base::lower_case(text.substr(0, text.find_first_of("; \t")));
  const auto slash = mime.find('/');
  const bool valid = slash != std::string::npos && slash > 0 && slash + 1 < mime.size() &&
                     mime.find('/', slash + 1) == std::string::npos &&
                     std::all_of(mime.begin(), mime.end(), [&](char letter) {
                       return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '/' ||
                              kOthers.find(letter) != std::string_view::npos;
                     });
  return valid ? mime : std::string();
}

std::optional<Record> response_record(const json& object) {
  const auto status = number_of(object, "status");
  if (!status || *status < 100 || *status > 999) return std::nullopt;
  return ResponseRecord{static_cast<int>(*status), mime_of(text_of(object, "mime", kLongestWord))};
}

std::optional<Record> unreachable_record(const json& object) {
  UnreachableRecord record{text_of(object, "reason", kLongestText)};
  if (record.reason.empty()) record.reason = "the page cannot be fetched";
  return record;
}

std::optional<Record> signed_out_record(const json& object) {
  return SignedOutRecord{text_of(object, "reason", kLongestWord)};
}

std::optional<Record> resources_record(const json& object) {
  const auto bounded = [](std::optional<double> number) {
    return static_cast<std::uint32_t>(std::clamp(number.value_or(0), 0.0, static_cast<double>(kMostResources)));
  };
  FactsRecord record;
  std::uint32_t sum = 0;
  json reasons = json::object();
  if (const auto missing = object.find("missing"); missing != object.end() && missing->is_object())
    for (const auto& [reason, number] : missing->items()) {
      const auto text = clean_text(reason, kLongestWord, Lines::one);
      const auto count = bounded(number_of(*missing, reason.c_str()));
      if (text.empty() || count == 0 || reasons.size() >= kMostReasons) continue;
      reasons[text] = count;
      sum += count;
    }
  record.facts["resources"] = std::to_string(std::max(bounded(number_of(object, "count")), sum));
  record.facts["resources_missing"] = std::to_string(sum);
  record.facts["missing_reasons"] = reasons.dump();
  return record;
}

std::optional<Record> facts_record(const json& object) {
  auto members = object;
  members.erase("type");
  auto facts = base::read_facts(members);
  if (!facts || facts->empty()) return std::nullopt;
  for (const auto& [name, value] : *facts)
    if (base::fact_source(name) != base::FactSource::hook) return std::nullopt;
  return FactsRecord{std::move(*facts)};
}

using Maker = std::optional<Record> (*)(const json&);
constexpr std::array<std::pair<std::string_view, Maker>, 13> kMakers{{{"ArchiveResult", result_record},
                                                                      {"Snapshot", snapshot_record},
                                                                      {"Tag", tag_record},
                                                                      {"Binary", binary_record},
                                                                      {"BinaryRequest", binary_record},
                                                                      {"Machine", machine_record},
                                                                      {"RateLimit", rate_limit_record},
                                                                      {"Redirect", redirect_record},
                                                                      {"Response", response_record},
                                                                      {"Unreachable", unreachable_record},
                                                                      {"SignedOut", signed_out_record},
                                                                      {"Facts", facts_record},
                                                                      {"Resources", resources_record}}};

std::optional<Record> make_record(const json& object, RecordSource source) {
  const auto type = object.find("type");
  if (source == RecordSource::urls_file) {
    const bool snapshot = type == object.end() || *type == "Snapshot";
    return snapshot ? snapshot_record(object) : std::nullopt;
  }
  if (type == object.end() || !type->is_string()) return std::nullopt;
  const std::string& word = type->get_ref<const std::string&>();
  for (const auto& [name, maker] : kMakers) {
    if (word == name) return maker(object);
  }
  return std::nullopt;
}

// The type of an object that was meant as a record; empty: it is no record.
std::string type_of(const json& object, RecordSource source) {
  const auto type = object.is_object() ? text_of(object, "type", kLongestWord) : std::string();
  return type.empty() && source == RecordSource::urls_file ? "line of urls.jsonl" : type;
}

} // namespace

std::string_view to_string(Status status) noexcept {
  constexpr std::string_view kNames[] = {"succeeded", "failed", "skipped", "noresults"}; // as Status lists them
  return kNames[static_cast<std::size_t>(status)];
}

Status parse_status(std::string_view text) noexcept {
  if (text == "succeeded" || text == "success" || text == "succeded") return Status::succeeded;
  if (text == "skipped") return Status::skipped;
  if (text == "noresults" || text == "noresult") return Status::noresults;
  return Status::failed;
}

void UnreadRecords::add(const UnreadRecords& more) {
  if (records == 0) first = more.first;
  records += more.records;
  dropped += more.dropped;
}

std::string UnreadRecords::text() const {
  const auto counted = [](std::size_t count, const char* noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
  };
  std::string text;
  if (records > 0)
    text = counted(records, "record") + " that nothing reads (" + (records == 1 ? "" : "the first: ") + first + ")";
  if (dropped > 0) text += (text.empty() ? "" : "; ") + counted(dropped, "line") + " over a limit, not read";
  return text;
}

std::vector<Record> RecordReader::feed(std::string_view bytes) {
  std::vector<Record> records;
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const auto newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline);
    if (overlong_ || partial_.size() + piece.size() > kLongestLine) {
      overlong_ = true;
      partial_.clear();
      partial_.shrink_to_fit();
    } else if (newline == std::string_view::npos || !partial_.empty()) {
      partial_ += piece;
    }
    if (newline == std::string_view::npos) break;
    if (overlong_) {
      ++unread_.dropped;
      overlong_ = false;
    } else {
      take_line(partial_.empty() ? piece : std::string_view(partial_), records);
      partial_.clear();
    }
    bytes.remove_prefix(newline + 1);
  }
  return records;
}

std::vector<Record> RecordReader::finish() {
  std::vector<Record> records;
  if (overlong_) {
    ++unread_.dropped;
  } else if (!partial_.empty()) {
    take_line(partial_, records);
  }
  overlong_ = false;
  partial_.clear();
  return records;
}

void RecordReader::take_line(std::string_view line, std::vector<Record>& out) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return; // blank lines are nothing, not prose
  if (records_ >= kMostRecords) {
    ++unread_.dropped;
    return;
  }
  const json object = parse_record_line(line);
  auto record = object.is_object() ? make_record(object, source_) : std::nullopt;
  if (!record) {
    if (auto type = type_of(object, source_); !type.empty()) unread_.add({1, std::move(type), 0});
    return;
  }
  ++records_;
  out.push_back(std::move(*record));
}

void DiscoveredUrls::add(SnapshotRecord record) {
  const auto [position, added] = index_.try_emplace(record.url, records_.size());
  if (added) {
    records_.push_back(std::move(record));
    return;
  }
  SnapshotRecord& known = records_[position->second];
  if (record.title.size() > known.title.size()) known.title = std::move(record.title);
  if (known.bookmarked_at.empty()) known.bookmarked_at = std::move(record.bookmarked_at);
  if (known.plugin.empty()) known.plugin = std::move(record.plugin);
  for (std::string& tag : record.tags) {
    const bool present = std::find(known.tags.begin(), known.tags.end(), tag) != known.tags.end();
    if (!present && known.tags.size() < kMostTags) known.tags.push_back(std::move(tag));
  }
}

} // namespace holdfast::hooks
