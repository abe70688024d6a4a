#include "services/capture/browser_page.hpp"

#include "services/capture/browser_host.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace holdfast::capture {

std::pair<int, int> resolution(const Job& job) {
  std::string name = job.plugin();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  name += "_RESOLUTION";
  const auto text = Job::setting(name.c_str(), Job::setting("RESOLUTION", "1440,900"));
  int width = 0, height = 0, end = 0;
  if (std::sscanf(text.c_str(), "%5d,%5d%n", &width, &height, &end) != 2 ||
      static_cast<std::size_t>(end) != text.size() || width < 1 || height < 1 || width > kLargestSide ||
      height > kLargestSide)
    throw failed(name + "='" + text + "' is not WIDTH,HEIGHT");
  return {width, height};
}

Json device_metrics(std::pair<int, int> size) {
  return {{"width", size.first}, {"height", size.second}, {"deviceScaleFactor", 1}, {"mobile", false}};
}

std::filesystem::path browser_socket() {
  return std::filesystem::path(Job::setting("CRAWL_DIR", ".")) / "browser" / kBrowserSocket;
}

std::string error_page_shown(DevTools& browser, const std::string& session, Clock::time_point until) {
  const auto frame = browser.call("Page.getFrameTree", nullptr, session, until)["frameTree"]["frame"];
  const auto wanted = text_of(frame, "unreachableUrl");
  if (wanted.empty() && !text_of(frame, "url").starts_with("chrome-error:")) return {};
  return "the page led to " + (wanted.empty() ? "another page" : wanted.substr(0, 500)) + ": ";
}

std::string reason_on_error_page(DevTools& browser, const std::string& session, Clock::time_point until) {
  const auto shown = browser.call("Runtime.evaluate",
                                  {{"expression", "document.body.innerText"}, {"returnByValue", true}}, session, until);
  const auto text = text_of(shown.value("result", Json::object()), "value");
  for (const char* prefix : {"ERR_", "DNS_PROBE_"})
    if (const auto at = text.find(prefix); at != std::string::npos)
      return "net::" + text.substr(at, text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", at) - at);
  return "it cannot be reached";
}

bool close_dialog(DevTools& browser, const std::string& method, const Json& parameters, const std::string& session) {
  if (method != "Page.javascriptDialogOpening") return false;
  browser.send("Page.handleJavaScriptDialog", {{"accept", text_of(parameters, "type") == "beforeunload"}}, session);
  return true;
}

} // namespace holdfast::capture
