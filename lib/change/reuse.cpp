#include "lib/change/reuse.hpp"

#include "lib/base/text/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace holdfast::change {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Reuse, from, crawl, why_not, hooks, inputs, scripts, calm, proofs,
                                                varies, reused)

namespace {

constexpr int kMostOfFiles = 100, kMostOfScripts = 64, kMostProofs = 5, kAfterMiss = -3;

// Words of scripts that get something from elsewhere than the recorded answers, or may hide such words.
constexpr std::array<std::string_view, 18> kSources{
    "date", "random", "performance", "crypto",      "intl",    "timeout", "interval",    "animation", "eval",
    "atob", "worker", "socket",      "eventsource", "storage", "cookie",  "requestidle", "rtcpeer",   "function(\""};

// Finds an attribute like onload= in a tag. Text that looks like one costs no more than a capture by hooks.
bool has_handler(std::string_view html) {
  for (auto at = html.find("on"); at != std::string_view::npos; at = html.find("on", at + 2)) {
    if (at == 0 || std::isspace(static_cast<unsigned char>(html[at - 1])) == 0) continue;
    auto end = at + 2;
    while (end < html.size() && html[end] >= 'a' && html[end] <= 'z')
      ++end;
    if (end > at + 3 && end < html.size() && html[end] == '=') return true;
  }
  return false;
}

} // namespace

int reuse_limit(const Reuse& reuse) {
  if (reuse.proofs < 0) return 0;
  if (!reuse.scripts) return kMostOfFiles;
  if (reuse.proofs == 0) return reuse.calm ? 1 : 0;
  return std::min(2 << reuse.proofs, kMostOfScripts);
}

std::string why_hooks(const Reuse& reuse, std::string_view hooks) {
  if (reuse.from.empty()) return "no capture by hooks is known";
  if (!reuse.why_not.empty()) return reuse.why_not;
  if (reuse.hooks != hooks) return "hooks or options are others";
  if (reuse.varies) return "its files differ from load to load";
  const auto limit = reuse_limit(reuse);
  if (reuse.proofs < 0) return "with the same files, the page had changed once";
  if (limit == 0) return "its scripts may show something else with the same files; no second capture has checked that";
  if (reuse.reused >= limit) return "every " + std::to_string(limit + 1) + "th capture checks that";
  return "";
}

Reuse after_hooks(const Reuse& before, Reuse now, bool same) {
  now.proofs = before.proofs;
  if (before.inputs.empty() || before.hooks != now.hooks) return now;
  const bool equal = before.inputs == now.inputs;
  if (equal) now.proofs = same ? std::min(before.proofs + 1, kMostProofs) : kAfterMiss;
  now.varies = same && !equal;
  return now;
}

void look_at(Reuse& reuse, std::string_view body, bool script) {
  const auto text = base::lower_case(body);
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  if (!script && !has("<script") && !has("javascript:") && !has_handler(text)) return;
  if (!std::exchange(reuse.scripts, true)) reuse.calm = true;
  reuse.calm = reuse.calm && std::none_of(kSources.begin(), kSources.end(), has);
}

nlohmann::json to_json(const Reuse& reuse) {
  nlohmann::json json = reuse;
  json["next"] = why_hooks(reuse, reuse.hooks); // for why
  return json;
}

Reuse reuse_from(const nlohmann::json& json) {
  try {
    return json.get<Reuse>();
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

} // namespace holdfast::change
