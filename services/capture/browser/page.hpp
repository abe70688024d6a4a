#pragma once
// The page of this snapshot: as another plugin saved it, as the browser's tab shows it, or fetched here if there is
// neither. A plugin that saves the page leaves page.json beside it: {url, status, content_type, path, complete}.

#include "services/capture/hook.hpp"

#include <initializer_list>
#include <optional>
#include <string>

namespace holdfast::capture {

struct Page {
  std::string url; // after redirects: what relative links are relative to
  std::string content_type;
  std::string bytes;
  std::string source; // "read", "dom", "wget", "browser", "fetch"

  std::string file{};       // of `bytes`, which may be the beginning only; "": none
  std::string written_in{}; // the encoding of the document of which this is a copy; "": see encoding()

  std::string type() const; // as browsers see it: by the header and the first bytes
  std::string text() const; // UTF-8; of XHTML, as HTML
  std::string encoding() const;
  bool is_html() const;
  bool is_drawing() const { return type() == "image/svg+xml"; }
  void require_html() const;  // throws Ending(no_results)
  bool is_plain_text() const; // letters without markup: text, tables, Markdown, JSON
};

inline constexpr std::size_t kLargestPage = 8u << 20;

// Returns the page as `plugin` saved it, at most so many bytes of it; "browser" is the document of the server, "read"
// its text with its frames and shadow roots, "tab" the rendered document. nullopt: not saved. Throws Ending if the site
// answered with an error.
std::optional<Page> saved_page(Job& job, const std::string& plugin, std::size_t most = kLargestPage);

// The best copy of the page: the first of `prefer` that there is, else a fetch.
Page load_page(Job& job, std::initializer_list<const char*> prefer = {"dom", "tab", "wget", "browser"});
Page load_html(Job& job, std::initializer_list<const char*> prefer = {"dom", "tab", "wget", "browser"});

// The tab's document as it stands now; nullopt if there is no tab. (view.cpp)
std::optional<Page> page_of_tab(Job& job);

} // namespace holdfast::capture
