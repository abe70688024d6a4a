#include "services/capture/browser/view.hpp"

#include "lib/base/text/encoding.hpp"
#include "services/capture/browser/browser_page.hpp"
#include "services/capture/browser/chromium.hpp"
#include "services/capture/browser/page.hpp"
#include "services/capture/browser/page_record.hpp"
#include "services/capture/embedded.hpp"
#include "services/capture/extract/picture.hpp"

#include <algorithm>
#include <cmath>

namespace holdfast::capture {

namespace {

constexpr double kThumbnailWidth = 480; // pixels

// The tab that the browser plugin keeps, looked at by another hook.
class View {
public:
  explicit View(Job& job) : job_(job), page_(page_of(job)), browser_(browser_socket()) {
    if (page_.target.empty()) throw failed("the browser has closed the page");
    browser_.on_event([this](const std::string& method, const Json& parameters, const std::string& session) {
      close_dialog(browser_, method, parameters, session);
      if (method == "Inspector.targetCrashed") throw failed("the page crashed the browser");
    });
    session_ = browser_.attach_to(page_.target, job.deadline());
    browser_.send("Inspector.enable", {}, session_);
  }
  Json call(const std::string& method, Json parameters = nullptr) {
    return browser_.call(method, std::move(parameters), session_, job_.deadline());
  }
  std::string bytes(const std::string& method, Json parameters) {
    const auto answer = call(method, std::move(parameters));
    auto data = base::base64_decode(answer.at("data").get_ref<const std::string&>());
    refuse_other_page();
    return data;
  }
  // A script may have put another document in the place of the page, which is held.
  void refuse_other_page() {
    if (const auto led = error_page_shown(browser_, session_, job_.deadline()); !led.empty())
      throw failed(led + reason_on_error_page(browser_, session_, job_.deadline()));
    const auto shown = call("Page.getFrameTree")["frameTree"]["frame"];
    if (text_at(shown, "loaderId") != page_.document)
      throw failed("the page has made way for " + text_at(shown, "url").substr(0, 500));
  }
  // A page cut off by the time limit is kept, but it is no success.
  Result result(const std::string& file) const {
    if (!page_.broken.empty())
      throw failed("the page broke off: " + page_.broken + "; kept what there was", page_.about());
    if (!page_.complete)
      throw failed("the page did not arrive whole within the time limit; kept what there was", page_.about());
    if (!page_.doubt.empty()) throw failed(page_.doubt, page_.about());
    return {file, page_.about()};
  }
  const PageRecord& page() const { return page_; }
  // Calls reader/view.js, in the world of this hook; null if the page does not answer as it should.
  Json ask(const std::string& what) {
    if (world_ == 0) {
      const auto frame = call("Page.getFrameTree")["frameTree"]["frame"]["id"];
      world_ = call("Page.createIsolatedWorld", {{"frameId", frame}}).value("executionContextId", 0);
      evaluate(view_expressions().front());
    }
    return evaluate("view." + what);
  }

private:
  Json evaluate(const std::string& expression) {
    return browser_.evaluate(expression, session_, job_.deadline(), world_);
  }
  static PageRecord page_of(Job& job) {
    auto page = load_page_record(job);
    if (!page) {
      browser_program(); // without one, the hook is skipped and says so
      throw failed("the browser plugin has not loaded the page");
    }
    page->report(job);
    if (page->ending) throw *page->ending;
    return *page;
  }

  Job& job_;
  PageRecord page_;
  DevTools browser_;
  std::string session_;
  int world_{0};
};

std::string html_of(View& view) {
  std::string html;
  if (const auto with_shadows = view.ask("html()"); with_shadows.is_string()) {
    html = with_shadows.get<std::string>();
  } else {
    const auto root = view.call("DOM.getDocument", {{"depth", 0}})["root"]["nodeId"];
    html = text_at(view.call("DOM.getOuterHTML", {{"nodeId", root}}), "outerHTML");
  }
  view.refuse_other_page();
  return html;
}

// Returns the size of the page to picture. Frames of other sites are drawn by processes of their own and only inside
// the window, so that it is made as high as the page, unless the page then takes another form.
Json drawn_size(View& view, std::pair<int, int> window, double most) {
  const auto size = view.call("Page.getLayoutMetrics")["cssContentSize"];
  const double height = size.value("height", 0.0);
  if (height > most || view.ask("foreign()") != true) return size;
  view.call("Emulation.setDeviceMetricsOverride", device_metrics({window.first, static_cast<int>(height)}));
  view.ask("drawn()");
  const auto now = view.call("Page.getLayoutMetrics")["cssContentSize"];
  if (std::abs(now.value("height", 0.0) - height) < 2) return size;
  view.call("Emulation.setDeviceMetricsOverride", device_metrics(window));
  return size;
}

// Leaves look.json: styles and pictures by their places, from which a change is found. Each picture is read from a
// small drawing of the page.
void keep_look(const Job& job, View& view, Json clip, std::pair<int, int> window) {
  constexpr double kScale = 0.25;
  auto look = view.ask("look()");
  if (!look.is_object() || !look.contains("pictures")) return;
  clip["scale"] = kScale;
  look["area"] = clip["width"].get<double>() * clip["height"].get<double>();
  if (!look["pictures"].empty()) {
    const bool beyond = clip["width"] > window.first || clip["height"] > window.second;
    const auto bytes =
        view.bytes("Page.captureScreenshot",
                   {{"format", "png"}, {"captureBeyondViewport", beyond}, {"clip", clip}, {"optimizeForSpeed", true}});
    const Picture drawn(bytes);
    for (auto& picture : look["pictures"])
      picture["cells"] = drawn.cells(picture["box"], kScale);
  }
  job.write_json("look.json", look);
}

} // namespace

const std::vector<std::string>& view_expressions() {
  static const std::vector<std::string> all{"globalThis.view = " + std::string(embedded::view_js) + "; null",
                                            "view.still()",
                                            "view.html()",
                                            "view.expand()",
                                            "view.restore()",
                                            "view.look()",
                                            "view.foreign()",
                                            "view.drawn()",
                                            kShownText};
  return all;
}

std::optional<Page> page_of_tab(Job& job) {
  const auto record = load_page_record(job);
  if (!record || record->target.empty() || record->ending) return std::nullopt;
  View view(job);
  // A feed or a text is shown by a page of Chromium's own.
  const auto type = media_type(record->content_type);
  if (type != "text/html" && type != "application/xhtml+xml") return std::nullopt;
  return Page{record->url, "text/html; charset=utf-8", "\xEF\xBB\xBF" + html_of(view), "tab"};
}

Result take_screenshot(Job& job) {
  View view(job);
  const auto window = resolution(job);
  view.call("Emulation.setDeviceMetricsOverride", device_metrics(window));
  view.ask("expand()");
  const double most = Job::number("SCREENSHOT_MAX_HEIGHT", 16000);
  const auto size = drawn_size(view, window, most);
  const Json clip = {{"x", 0},
                     {"y", 0},
                     {"width", std::min(size.value("width", 0.0), kLargestSide)},
                     {"height", std::min(size.value("height", 0.0), most)},
                     {"scale", 1}};
  const auto format = lower_case(Job::setting("SCREENSHOT_FORMAT", "png"));
  if (format != "png" && format != "jpeg" && format != "webp")
    throw failed("SCREENSHOT_FORMAT='" + format + "' is not png, jpeg or webp");
  Json parameters = {{"format", format}, {"captureBeyondViewport", true}, {"clip", clip}, {"optimizeForSpeed", true}};
  if (format != "png") parameters["quality"] = static_cast<int>(Job::number("SCREENSHOT_QUALITY", 85));
  const auto file = "screenshot." + (format == "jpeg" ? "jpg" : format);
  job.write(file, view.bytes("Page.captureScreenshot", parameters));
  keep_look(job, view, clip, window);
  // For lists of pages: the top of the page, as wide as kThumbnailWidth.
  const Json top = {{"x", 0},
                    {"y", 0},
                    {"width", clip["width"]},
                    {"height", std::min(clip["width"].get<double>() * 10 / 16, clip["height"].get<double>())},
                    {"scale", kThumbnailWidth / std::max(clip["width"].get<double>(), 1.0)}};
  const bool beyond = top["width"] > window.first || top["height"] > window.second; // else no new layout
  job.write("thumbnail.jpg",
            view.bytes("Page.captureScreenshot",
                       {{"format", "jpeg"}, {"quality", 75}, {"clip", top}, {"captureBeyondViewport", beyond}}));
  view.ask("restore()");
  return view.result(file);
}

Result print_pdf(Job& job) {
  View view(job);
  job.write("output.pdf", view.bytes("Page.printToPDF", {{"printBackground", true}, {"preferCSSPageSize", true}}));
  return view.result("output.pdf");
}

// Saves the page as it stands, without what runs, for people: its frames are files beside it.
void save_still(Job& job, View& view) {
  const auto still = view.ask("still()");
  if (!still.is_object() || !still.contains("html")) return; // too large for one answer, or no document of HTML
  job.write("still.html", still["html"].get_ref<const std::string&>());
  int number = 0;
  for (const auto& frame : still["frames"])
    job.write("frame-" + std::to_string(++number) + ".html", frame.get_ref<const std::string&>());
}

Result save_dom(Job& job) {
  View view(job);
  save_still(job, view);
  const auto html = html_of(view);
  // The browser returns text and we write UTF-8, whatever the page's <meta> declares: a byte order mark overrides it.
  job.write("output.html", "\xEF\xBB\xBF" + html);
  job.write_json("page.json", {{"url", view.page().url},
                               {"status", view.page().status},
                               {"content_type", "text/html; charset=utf-8"},
                               {"path", "output.html"},
                               {"complete", view.page().complete}});
  return view.result("output.html");
}

} // namespace holdfast::capture
