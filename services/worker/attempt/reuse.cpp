#include "lib/archive/file_work.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/url.hpp"
#include "lib/warc/coding.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/surt.hpp"
#include "services/worker/attempt/steps.hpp"

#include <map>
#include <set>

namespace holdfast::worker {

namespace {

constexpr std::size_t kMostFiles = 300, kLargestRead = std::size_t{8} << 20;

bool is_usual(int status) {
  static const std::set<int> kUsual{200, 204, 301, 302, 303, 304, 307, 308, 404, 410};
  return kUsual.contains(status);
}

// Returns why the page cannot be judged by requests for its files; empty: it can.
std::string why_not(const PageWork& work) {
  const auto& facts = work.view.facts;
  const auto& records = work.captures.records;
  if (!work.claim.persona.empty()) return "it was captured with a persona";
  if (!work.claim.archived.empty()) return "only some hooks have run";
  if (work.page.outcome != "succeeded") return "its last capture is not complete";
  if (facts.contains("doubt")) return "its last capture is in doubt";
  if (base::fact_number(facts, "resources_missing") > 0) return "its last capture lacks resources";
  if (records.empty()) return "no WARC record has its answers";
  if (!work.captures.problems.empty()) return "its WARC files have damaged records";
  std::map<std::string, std::string> digests;
  for (const auto& record : records) {
    if (!base::is_web_url(record.url)) continue; // notes of wget
    if (record.key != warc::url_key(record.url)) return "it sends requests that are not GET";
    if (!is_usual(record.status)) return record.url + " has status " + std::to_string(record.status);
    const auto [known, is_new] = digests.emplace(record.url, record.digest);
    if (known->second != record.digest) return record.url + " had two answers";
  }
  if (digests.size() > kMostFiles) return "it has more than " + std::to_string(kMostFiles) + " files";
  if (!digests.contains(work.claim.url)) return "no WARC record has its own answer";
  const auto unrecorded = facts.find("unrecorded");
  if (unrecorded != facts.end() && unrecorded->second != "{}") return "it received bytes that are in no record";
  return "";
}

bool is_html(const std::string& mime) { return mime == "text/html" || mime == "application/xhtml+xml"; }
bool is_script(const std::string& mime) {
  return mime.find("javascript") != std::string::npos || mime.find("ecmascript") != std::string::npos ||
         mime == "application/wasm" || mime == "unk";
}

void look_at(const PageWork& work, const warc::Capture& record, change::Reuse& reuse) {
  const bool script = is_script(record.mime);
  if (!script && !is_html(record.mime)) return;
  std::optional<std::string> body;
  try {
    const auto file = archive::open_file_below(work.files.directory(), record.file);
    warc::Reader reader(file.get(), record.offset, record.offset + record.length);
    if (auto head = file && reader.next() ? reader.read_http_head() : std::nullopt) {
      std::string bytes;
      reader.read_rest([&](std::string_view piece) {
        if (bytes.size() < kLargestRead) bytes += piece;
      });
      body = warc::plain_body(std::move(bytes), head->headers, kLargestRead);
    }
  } catch (const warc::Damaged&) {
  }
  change::look_at(reuse, body.value_or("date"), script || !body); // as one that is not calm
}

} // namespace

change::Reuse judge_reuse(const PageWork& work) {
  change::Reuse reuse;
  reuse.from = work.claim.lease.snapshot_id;
  reuse.crawl = work.claim.lease.crawl_id;
  reuse.hooks = work.hooks;
  reuse.why_not = why_not(work);
  if (!reuse.why_not.empty()) return reuse;
  std::set<std::string> answers;
  for (const auto& record : work.captures.records) {
    if (!base::is_web_url(record.url)) continue;
    answers.insert(record.url + " " + std::to_string(record.status) + " " + record.digest + "\n");
    if (record.mime != "warc/revisit") look_at(work, record, reuse);
  }
  base::Sha256 hash;
  for (const auto& answer : answers)
    hash.update(answer);
  reuse.inputs = hash.finish();
  return reuse;
}

} // namespace holdfast::worker
