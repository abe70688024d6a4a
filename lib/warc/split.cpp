#include "lib/warc/split.hpp"

#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/warc/capture.hpp"
#include "lib/warc/surt.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace holdfast::warc {

namespace {

constexpr std::size_t kMostNames = 16; // in a group

bool has_fraction(std::string_view date) {
  constexpr std::size_t kFractionAt = std::string_view("2026-01-31T23:59:59").size();
  return date.size() > kFractionAt && date[kFractionAt] == '.';
}

// Truncates to the millisecond, the precision of browsers. Returns the first of all times if it is not a date.
base::Timestamp time_of(const std::string& date) {
  const auto time = base::read_timestamp(std::string(base::trimmed(date))).value_or(base::Timestamp());
  return std::chrono::floor<std::chrono::milliseconds>(time);
}

// Returns the page that a record was made of, such as a screenshot: "urn:text:http://example.com/" ->
// "http://example.com/". Else empty.
std::string_view page_named_by(std::string_view url) {
  const auto colon = url.starts_with("urn:") ? url.find(':', 4) : url.npos;
  const auto page = colon == url.npos ? std::string_view() : url.substr(colon + 1);
  return page.find("://") == page.npos ? std::string_view() : page;
}

bool is_page_type(std::string_view mime) { return mime == "text/html" || mime == "application/xhtml+xml"; }

} // namespace

bool Splitter::add_page(const std::string& url, const std::string& date, const std::string& id) {
  listed_ = true;
  const auto whole = whole_seconds(date);
  if (whole.empty() && !date.empty()) return false;
  exact_ = exact_ && (date.empty() || has_fraction(date));
  if (!id.empty()) page_of_id_[number_of_id(id)] = static_cast<std::uint32_t>(pages_.size());
  begins_.push_back(date.empty() ? base::Timestamp::max() : time_of(date)); // no record is placed there by its time
  by_key_[url_key(url)].emplace(begins_.back(), static_cast<std::uint32_t>(pages_.size()));
  pages_.push_back({url, whole, pages_.size(), false, 0, "", 0, 0});
  return true;
}

void Splitter::add_file(int file, std::uint64_t begin, std::uint64_t end,
                        const std::function<void(const Damaged&)>& damaged) {
  Reader reader(file, begin, end, Reader::Digests::compare);
  for (;;) {
    try {
      const auto record = reader.next();
      if (!record) break;
      take(reader, *record);
    } catch (const Damaged& damage) {
      if (damage.used() != Damaged::Used::whole) end_group(); // what comes next is no neighbour
      damaged(damage);
    }
  }
  end_group();
  ++files_;
}

void Splitter::take(Reader& reader, const Record& record) {
  const auto id = header_of(record.headers, "warc-record-id");
  const auto refers = header_of(record.headers, "warc-concurrent-to");
  const auto has = [&](const std::string& name) {
    return !name.empty() && std::find(open_->names.begin(), open_->names.end(), name) != open_->names.end();
  };
  const bool is_response = record.type == "response" || record.type == "revisit" || record.type == "resource";
  const bool joins =
      open_ && open_->names.size() < kMostNames && !(is_response && open_->response.found) && (has(id) || has(refers));
  std::optional<Open> next; // whole before it counts: the record may be damaged
  if (joins) {
    next = open_;
  } else {
    next = Open{};
    next->group.file = files_;
    next->group.offset = record.offset;
    const auto date = header_of(record.headers, "warc-date");
    next->group.time = time_of(date);
    exact_ = exact_ && has_fraction(date);
  }
  if (next->page_id.empty()) next->page_id = header_of(record.headers, "warc-page-id");
  for (const auto& name : {id, refers})
    if (!name.empty()) next->names.push_back(name);
  if (is_response) take_response(reader, record, *next);
  if (record.type == "request")
    if (const auto head = reader.read_http_head())
      next->destination = base::lower_case(header_of(head->headers, "sec-fetch-dest"));
  next->group.length += reader.finish();
  if (!joins) end_group();
  open_ = std::move(next);
}

void Splitter::take_response(Reader& reader, const Record& record, Open& open) {
  auto& response = open.response;
  response = {record.url, whole_seconds(header_of(record.headers, "warc-date")), 0, true, 0, "", files_, record.offset};
  const auto head = reader.read_http_head();
  response.status = head ? head->status : 0;
  response.mime = base::lower_case(media_type(header_of(head ? head->headers : record.headers, "content-type")));
  response.revisit = record.type == "revisit";
  // A revisit record has no payload by its nature, which some writers call truncated. Segments are not put together.
  response.truncated = (!response.revisit && !header_of(record.headers, "warc-truncated").empty()) ||
                       !header_of(record.headers, "warc-segment-number").empty();
  if (response.url.empty() || response.date.empty()) response.found = false;
}

void Splitter::end_group() {
  if (!open_) return;
  auto& open = *open_;
  by_browser_ = by_browser_ || !open.destination.empty();
  if (!open.page_id.empty()) open.group.id = number_of_id(open.page_id);
  if (listed_ && open.group.id != kNone) open.group.page = page_of_id_[open.group.id];
  if (const auto about = page_named_by(open.response.url); !about.empty())
    about_.emplace_back(groups_.size(), url_key(about));
  else if (open.response.found)
    claim(open);
  if (open.group.page != kNone) name_page(open.group);
  groups_.push_back(open.group);
  open_.reset();
}

std::uint32_t Splitter::number_of_id(const std::string& id) {
  const auto [known, is_new] = ids_.emplace(id, static_cast<std::uint32_t>(page_of_id_.size()));
  if (is_new) page_of_id_.push_back(kNone);
  return known->second;
}

// Gives the group to the page whose response it has. Without a list, it may become one.
void Splitter::claim(Open& open) {
  const auto& response = open.response;
  if (!listed_) {
    const Candidate candidate{groups_.size(), response, open.destination == "document"};
    if (!first_) first_ = candidate;
    if (is_page_type(response.mime) && response.status < 300) candidates_.push_back(candidate);
    return;
  }
  if (open.group.page != kNone) { // of the page, but perhaps no response of its URL
    if (url_key(response.url) == url_key(pages_[open.group.page].url)) found(open.group.page, open);
    return;
  }
  const auto pages = by_key_.find(url_key(response.url));
  if (pages == by_key_.end()) return;
  const auto [before, after] = around(pages->second, open.group.time);
  const auto apart = [&](std::uint32_t page) { return std::chrono::abs(begins_[page] - open.group.time); };
  const bool later =
      before == kNone || (after != kNone && std::pair(apart(after), after) < std::pair(apart(before), before));
  const auto nearest = later ? after : before;
  open.group.page = nearest;
  found(nearest, open);
}

// Returns the first of the pages that began last before a time, or then, and the first of those that began next; kNone
// if there is none.
std::pair<std::uint32_t, std::uint32_t> Splitter::around(const Pages& pages, base::Timestamp time) {
  const auto next = pages.upper_bound({time, kNone});
  const auto before = next == pages.begin() ? kNone : pages.lower_bound({std::prev(next)->first, 0})->second;
  return {before, next == pages.end() ? kNone : next->second};
}

// Records that this is a response of the page's URL.
void Splitter::found(std::uint32_t number, const Open& open) {
  const auto& response = open.response;
  auto& page = pages_[number];
  const bool better = !page.found || (page.status / 100 != 2 && response.status / 100 == 2);
  if (!better) return;
  const auto listed = page.listed;
  const auto url = page.url;
  page = response;
  page.listed = listed;
  page.url = url;
  auto& pages = by_key_[url_key(url)];
  pages.erase({begins_[number], number});
  pages.emplace(open.group.time, number);
  begins_[number] = open.group.time;
}

// Documents that requests show to be frames are no pages. Without any document, the first response is one.
void Splitter::choose_pages() {
  if (by_browser_) std::erase_if(candidates_, [](const auto& candidate) { return !candidate.document; });
  if (candidates_.empty() && first_) candidates_.push_back(*first_);
  for (const auto& candidate : candidates_) {
    auto& group = groups_[candidate.group];
    group.page = static_cast<std::uint32_t>(pages_.size());
    if (candidate.document) name_page(group);
    by_key_[url_key(candidate.page.url)].emplace(group.time, group.page);
    begins_.push_back(group.time);
    pages_.push_back(candidate.page);
  }
}

// The first group of a page that has an id names the page of that id.
void Splitter::name_page(const Group& group) {
  if (group.id != kNone && page_of_id_[group.id] == kNone) page_of_id_[group.id] = group.page;
}

void Splitter::place_by_id() {
  for (auto& group : groups_)
    if (group.page == kNone && group.id != kNone) group.page = page_of_id_[group.id];
}

// A screenshot of a page was made after the page had begun, and before the same URL was archived again.
void Splitter::place_by_url() {
  for (const auto& [number, key] : about_) {
    auto& group = groups_[number];
    if (group.page != kNone) continue;
    const auto pages = by_key_.find(key);
    if (pages == by_key_.end()) continue;
    const auto [before, after] = around(pages->second, group.time);
    group.page = before != kNone ? before : after;
  }
}

void Splitter::finish() {
  if (!listed_) choose_pages();
  if (pages_.empty()) return;
  if (!exact_) { // a time that has a fraction must not be after one of the same second that has none
    for (auto& time : begins_)
      time = std::chrono::floor<std::chrono::seconds>(time);
    for (auto& [key, pages] : by_key_) {
      Pages whole;
      for (const auto& [time, page] : pages)
        whole.emplace(begins_[page], page);
      pages = std::move(whole);
    }
    for (auto& group : groups_)
      group.time = std::chrono::floor<std::chrono::seconds>(group.time);
  }
  place_by_id();
  place_by_url();
  place_by_time();
  order_.resize(groups_.size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](auto left, auto right) { return groups_[left].page < groups_[right].page; });
}

// Pages and records of one time are distinguished by their position in the files. Of pages that began at the same time,
// one of the record's own file is taken first: the last one before it there, or the first one behind.
void Splitter::place_by_time() {
  using Begin = std::tuple<base::Timestamp, std::size_t, std::uint32_t>; // time, place, page
  std::vector<std::size_t> places(pages_.size(), groups_.size());
  for (std::size_t i = 0; i < groups_.size(); ++i)
    if (groups_[i].page != kNone) places[groups_[i].page] = std::min(places[groups_[i].page], i);
  std::vector<Begin> begins;
  for (std::uint32_t page = 0; page < pages_.size(); ++page)
    begins.emplace_back(begins_[page], places[page], page);
  std::sort(begins.begin(), begins.end());
  const auto first_after = [&](base::Timestamp time, std::size_t place) {
    return std::upper_bound(begins.begin(), begins.end(), Begin(time, place, kNone));
  };
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    auto& group = groups_[i];
    if (group.page != kNone) continue;
    const auto later = first_after(group.time, i);
    const Begin* begin = later == begins.begin() ? &begins.front() : &*std::prev(later);
    const auto time = std::get<0>(*begin);
    const auto is_near = [&](const Begin& other) {
      const auto place = std::get<1>(other);
      return std::get<0>(other) == time && place < groups_.size() && groups_[place].file == group.file;
    };
    const auto behind = first_after(time, i);
    if (behind != begins.begin() && is_near(*std::prev(behind)))
      begin = &*std::prev(behind);
    else if (behind != begins.end() && is_near(*behind))
      begin = &*behind;
    group.page = std::get<2>(*begin);
  }
}

void Splitter::each_part(std::size_t page, const Part& take) const {
  const auto begin = std::lower_bound(order_.begin(), order_.end(), page,
                                      [&](auto group, std::size_t wanted) { return groups_[group].page < wanted; });
  for (auto it = begin; it != order_.end() && groups_[*it].page == page; ++it)
    take(groups_[*it].file, groups_[*it].offset, groups_[*it].length);
}

} // namespace holdfast::warc
