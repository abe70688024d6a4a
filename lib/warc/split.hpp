#pragma once
// Divides the records of WARC files among the pages that were archived into them. A response, its request and records
// that belong to them stay together. They go to the page that they name (WARC-Page-ID, or urn:text:URL and the like, as
// Browsertrix writes them); else to the page whose own response they hold; else to the page that was archived last
// before them. Of several pages of that time, one in the same file is preferred. Without a list of pages, each HTML
// document that a browser requested as a document is one; without such information in the requests, each HTML document.
// Used from one thread.

#include "lib/base/text/time.hpp"
#include "lib/warc/reader.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::warc {

struct SplitPage {
  std::string url, date; // "2026-01-31T23:59:59Z"
  std::size_t listed{0}; // its place in the list of pages
  bool found{false};     // its own response is there:
  int status{0};
  std::string mime;
  std::size_t file{0};
  std::uint64_t offset{0};
  bool revisit{false};   // another record has its payload
  bool truncated{false}; // by the record
};

class Splitter {
public:
  // Adds a page; pages come first. `id`: the id of the page in records; empty: none. Returns false if the date is not
  // one of WARC.
  bool add_page(const std::string& url, const std::string& date, const std::string& id);
  // The bytes [begin, end) of a file; offsets count from `begin`. `damaged`: called for each record that cannot be
  // read; it is left out.
  void add_file(int file, std::uint64_t begin, std::uint64_t end, const std::function<void(const Damaged&)>& damaged);
  void finish();

  const std::vector<SplitPage>& pages() const noexcept { return pages_; }
  // The bytes of a page: file (by the order of add_file), offset and length, in order.
  using Part = std::function<void(std::size_t file, std::uint64_t offset, std::uint64_t length)>;
  void each_part(std::size_t page, const Part& take) const;

private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Group {                                   // records that are neighbours and belong together
    std::uint32_t file{0}, page{kNone}, id{kNone}; // id: its number in page_of_id_
    std::uint64_t offset{0}, length{0};
    base::Timestamp time{};
  };
  using Pages = std::set<std::pair<base::Timestamp, std::uint32_t>>; // by begin
  struct Open {                                                      // the group that is being read
    Group group;
    std::vector<std::string> names; // ids of its records, and of those that they belong to
    SplitPage response;             // found: there is one
    std::string destination;        // Sec-Fetch-Dest of its request
    std::string page_id;
  };
  void take(Reader& reader, const Record& record);
  void take_response(Reader& reader, const Record& record, Open& open);
  void end_group();
  void claim(Open& open);
  static std::pair<std::uint32_t, std::uint32_t> around(const Pages& pages, base::Timestamp time);
  std::uint32_t number_of_id(const std::string& id);
  void found(std::uint32_t page, const Open& open);
  void name_page(const Group& group);
  void choose_pages();
  void place_by_id();
  void place_by_url();
  void place_by_time();

  bool listed_{false}, by_browser_{false}; // by_browser_: requests have their purpose
  bool exact_{true};                       // all dates have a fraction of a second
  std::vector<SplitPage> pages_;
  std::vector<base::Timestamp> begins_; // of each page
  struct Candidate {                    // what is a page if there is no list of them
    std::size_t group{0};
    SplitPage page;
    bool document{false}; // by its request
  };
  std::vector<Candidate> candidates_;
  std::map<std::string, Pages> by_key_;
  std::map<std::string, std::uint32_t> ids_;               // WARC-Page-ID: its number
  std::vector<std::uint32_t> page_of_id_;                  // from the list, or the page's own response
  std::vector<std::pair<std::size_t, std::string>> about_; // groups that a page's URL names: their number, its key
  std::vector<Group> groups_;
  std::vector<std::uint32_t> order_; // groups, by page
  std::optional<Open> open_;
  std::optional<Candidate> first_; // response of all
  std::uint32_t files_{0};
};

} // namespace holdfast::warc
