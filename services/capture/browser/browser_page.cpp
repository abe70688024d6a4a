#include "services/capture/browser/browser_page.hpp"

#include "services/capture/browser/browser_host.hpp"
#include "services/capture/browser/page_record.hpp"

#include <cstdlib>
#include <string_view>

namespace holdfast::capture {

std::pair<int, int> resolution(const Job& job) {
  const auto name = upper(job.plugin()) + "_RESOLUTION";
  const auto text = Job::setting(name.c_str(), Job::setting("RESOLUTION", "1440,900"));
  int width = 0, height = 0, end = 0;
  if (std::sscanf(text.c_str(), "%5d,%5d%n", &width, &height, &end) != 2 ||
      static_cast<std::size_t>(end) != text.size() || width < 1 || height < 1 || width > kLargestSide ||
      height > kLargestSide)
    throw failed(name + "='" + text + "' is not WIDTH,HEIGHT");
  return {width, height};
}

Json device_metrics(std::pair<int, int> size) {
  return {{"width", size.first}, {"height", size.second},     {"deviceScaleFactor", 1},
          {"mobile", false},     {"screenWidth", size.first}, {"screenHeight", size.second}};
}

namespace {

// Chromium's list of brands has one that no browser has, so that servers do not rely on the list; which one and where
// follows from the version.
Json brands(const std::string& version) {
  constexpr std::string_view kSigns = " (:-./);=?_";
  constexpr const char* kVersions[] = {"8", "99", "24"};
  const auto seed = static_cast<std::size_t>(std::atoi(version.c_str()));
  const bool full = version.find('.') != std::string::npos;
  const std::string filler =
      std::string("Not") + kSigns[seed % kSigns.size()] + "A" + kSigns[(seed + 1) % kSigns.size()] + "Brand";
  auto list = Json::array({{{"brand", filler}, {"version", std::string(kVersions[seed % 3]) + (full ? ".0.0.0" : "")}},
                           {{"brand", "Chromium"}, {"version", version}}});
  if (seed % 2 != 0) std::swap(list[0], list[1]);
  return list;
}

} // namespace

Json identity(const std::string& own) {
  const auto agent = Job::setting("USER_AGENT");
  Json says = {{"userAgent", identified(agent)}, {"acceptLanguage", languages()}};
  if (!agent.empty()) return says;
  auto plain = own;
  const std::string kHeadless = "HeadlessChrome/";
  if (const auto at = plain.find(kHeadless); at != std::string::npos) plain.erase(at, std::string("Headless").size());
  const auto at = plain.find("Chrome/");
  const auto version = at == std::string::npos ? "" : plain.substr(at + 7, plain.find(' ', at) - at - 7);
  const auto major = version.substr(0, version.find('.'));
  if (major.empty()) return says;
  // The user agent has the first part of the version only, as that of Chromium with windows.
  plain.replace(at + 7, version.size(), major + ".0.0.0");
  says["userAgent"] = identified(plain);
  says["userAgentMetadata"] = {{"brands", brands(major)},
                               {"fullVersionList", brands(version)},
                               {"platform", "Linux"},
                               {"platformVersion", ""},
                               {"architecture", "x86"},
                               {"bitness", "64"},
                               {"model", ""},
                               {"mobile", false}};
  says["platform"] = "Linux x86_64";
  return says;
}

std::filesystem::path browser_socket() {
  return std::filesystem::path(Job::setting("CRAWL_DIR", ".")) / "browser" / kBrowserSocket;
}

std::string error_page_shown(DevTools& browser, const std::string& session, Clock::time_point until) {
  const auto frame = browser.call("Page.getFrameTree", nullptr, session, until)["frameTree"]["frame"];
  const auto wanted = text_at(frame, "unreachableUrl");
  if (wanted.empty() && !text_at(frame, "url").starts_with("chrome-error:")) return {};
  return "the page led to " + (wanted.empty() ? "another page" : wanted.substr(0, 500)) + ": ";
}

std::string reason_on_error_page(DevTools& browser, const std::string& session, Clock::time_point until) {
  const auto shown = browser.evaluate(kShownText, session, until);
  const auto text = shown.is_string() ? shown.get<std::string>() : "";
  for (const char* prefix : {"ERR_", "DNS_PROBE_"})
    if (const auto at = text.find(prefix); at != std::string::npos)
      return "net::" + text.substr(at, text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", at) - at);
  return "it cannot be reached";
}

bool close_dialog(DevTools& browser, const std::string& method, const Json& parameters, const std::string& session) {
  if (method != "Page.javascriptDialogOpening") return false;
  browser.send("Page.handleJavaScriptDialog", {{"accept", text_at(parameters, "type") == "beforeunload"}}, session);
  return true;
}

} // namespace holdfast::capture
