#pragma once
// Facts of the browser plugin about the page: browser/page.json, which the other hooks read.

#include "services/capture/hook.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::capture {

struct PageRecord {
  struct Redirect {
    std::string url, location;
    int status{0};
    std::string how; // "http"; "refresh" or "script" if the document of `url` led on
  };
  std::string url; // after redirects
  int status{0};
  std::string reason, content_type;
  Json headers = Json::object();  // names in lower case
  std::string document;           // the loader of what the tab shows
  Json documents = Json::array(); // that it has shown, the page last
  std::vector<Redirect> redirects;
  std::vector<std::pair<std::string, std::string>> files; // that the page handed out, by their URLs
  std::string source;         // the file with the document as it was sent; empty: it is only in the WARC
  std::string read;           // a file with what there is to read in it, its frames and shadow roots, as HTML
  std::string icon, icon_url; // the icon that the browser fetched, and its file
  std::string target;         // of the tab; empty: there is none
  bool complete{false};       // the document itself was parsed to its end
  bool finished{false};       // and everything that it asked for has come
  std::string doubt;          // why what is shown is not the page that was asked for
  std::string broken;         // why the document did not arrive whole, if it was not merely slow
  bool ends_within{false};    // the document came in a coding, and ends within a text or a tag: it may be cut
  std::vector<std::pair<std::string, std::string>> missing; // URLs that the record lacks, and why
  std::vector<std::string> cut;                             // steps that time ended: "wait", "scroll", "script"
  std::string user_agent;                                   // what the browser has said of itself
  Json steps = Json::array();                               // of reading it: what each brought, and why it ended
  Json held = Json::array();                                // what presses wanted to send, and was stopped
  std::optional<Ending> ending;                             // why there is no page to show

  Json about() const;
  Json redirect_list() const;
  // The answer of the site, its redirects and its rate limit, as records.
  void report(Job& job) const;
};

void save_page_record(const Job& job, const PageRecord& page);
// Loads the record; nothing if the browser plugin did not run for this page.
std::optional<PageRecord> load_page_record(const Job& job);

// Adds a contact to a user agent, if IDENTIFY is set: "true", or a URL or address.
std::string identified(const std::string& agent);
// Returns the user agent of a hook without the browser: that of the browser, if it has loaded the page.
std::string user_agent(const Job& job);
// Accept-Language of all hooks that load pages, by the option LANG: "de-DE,de,en-US,en" for de_DE.UTF-8.
std::string languages();

// The host in a URL, without port and brackets.
std::string host_in(const std::string& url);

} // namespace holdfast::capture
