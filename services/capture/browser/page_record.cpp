#include "services/capture/browser/page_record.hpp"

#include "lib/base/text/url.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::capture {

namespace {

constexpr const char* kFile = "page.json";
constexpr std::size_t kMostLacking = 200; // listed by URL

// Texts that a page may lack, by their names in the file.
constexpr std::pair<const char*, std::string PageRecord::*> kTexts[] = {
    {"path", &PageRecord::source},           {"icon", &PageRecord::icon},     {"icon_url", &PageRecord::icon_url},
    {"target", &PageRecord::target},         {"broken", &PageRecord::broken}, {"doubt", &PageRecord::doubt},
    {"user_agent", &PageRecord::user_agent}, {"read", &PageRecord::read},     {"document", &PageRecord::document}};

constexpr const char* kPlainAgent = "Mozilla/5.0 (compatible; Holdfast)";

} // namespace

std::string identified(const std::string& agent) {
  const auto who = Job::setting("IDENTIFY");
  if (who.empty() || who == "false" || who == "False" || agent.find("Holdfast") != std::string::npos) return agent;
  const bool contact = who != "true" && who != "True";
  return agent + " (compatible; Holdfast" + (contact ? "; +" + one_line(who, 200) : "") + ")";
}

std::string user_agent(const Job& job) {
  if (const auto agent = Job::setting("USER_AGENT"); !agent.empty()) return identified(agent);
  return job.sibling(std::string("browser/") + kFile).value("user_agent", identified(kPlainAgent));
}

std::string languages() {
  auto language = Job::setting("LANG");
  language.erase(std::min(language.find('.'), language.size()));
  std::replace(language.begin(), language.end(), '_', '-');
  if (language.size() < 2 || language == "POSIX" || language.starts_with("en-US")) return "en-US,en";
  const auto general = language.substr(0, language.find('-'));
  return language + (general != language ? "," + general : "") + (general == "en" ? "" : ",en-US,en");
}

std::string host_in(const std::string& url) {
  return lower_case(base::split_authority(base::split_url(url).authority).bare_host());
}

Json PageRecord::about() const {
  Json about = {{"url", url}, {"status", status}, {"complete", complete}, {"finished", finished}};
  if (!cut.empty()) about["cut"] = cut;
  return about;
}

Json PageRecord::redirect_list() const {
  Json list = Json::array();
  for (const auto& [from, to, code, how] : redirects)
    list.push_back({{"url", from}, {"status", code}, {"location", to}, {"how", how}});
  return list;
}

void PageRecord::report(Job& job) const {
  for (const auto& redirect : redirects)
    job.report_redirect(redirect.url, redirect.location, redirect.how == "http" ? redirect.status : 0);
  if (status == 0) return;
  job.report_response(url, status, content_type);
  if (status == 429 || status == 503) job.report_rate_limit(host_in(url), status, headers.value("retry-after", ""));
}

void save_page_record(const Job& job, const PageRecord& page) {
  Json record = {{"url", page.url},
                 {"status", page.status},
                 {"reason", page.reason},
                 {"headers", page.headers},
                 {"redirects", page.redirect_list()},
                 {"content_type", page.content_type},
                 {"complete", page.complete},
                 {"finished", page.finished}};
  if (page.documents.size() > 1) record["documents"] = page.documents;
  for (const auto& [url, path] : page.files)
    record["files"].push_back({{"url", url}, {"path", path}});
  if (page.ends_within) record["ends_within"] = true;
  for (const auto& [name, text] : kTexts)
    if (!(page.*text).empty()) record[name] = page.*text;
  if (!page.steps.empty()) record["steps"] = page.steps;
  if (!page.held.empty()) record["held"] = page.held;
  for (const auto& [url, reason] : page.missing)
    if (record["missing"].size() < kMostLacking) record["missing"].push_back({{"url", url}, {"reason", reason}});
  if (page.ending)
    record["ending"] = {
        {"status", page.ending->status}, {"reason", page.ending->reason}, {"unreachable", page.ending->unreachable}};
  job.write_json(kFile, record);
}

std::optional<PageRecord> load_page_record(const Job& job) {
  const auto record = job.sibling(std::string("browser/") + kFile);
  if (record.empty()) return std::nullopt;
  PageRecord page;
  page.url = record.value("url", job.url());
  page.status = record.value("status", 0);
  page.reason = record.value("reason", "");
  page.content_type = record.value("content_type", "");
  page.headers = record.value("headers", Json::object());
  for (const auto& item : record.value("redirects", Json::array()))
    page.redirects.push_back(
        {item.value("url", ""), item.value("location", ""), item.value("status", 0), item.value("how", "http")});
  for (const auto& [name, text] : kTexts)
    page.*text = record.value(name, "");
  page.complete = record.value("complete", false);
  page.finished = record.value("finished", false);
  page.ends_within = record.value("ends_within", false);
  if (const auto ending = record.find("ending"); ending != record.end())
    page.ending = Ending{ending->value("status", Status::failed), ending->value("reason", ""), nullptr,
                         ending->value("unreachable", false)};
  return page;
}

} // namespace holdfast::capture
