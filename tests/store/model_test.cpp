// Thousands of random calls by several workers, against a small model in memory that knows what each of them must do.
// The order is decided by one number, which is printed; HOLDFAST_MODEL_SEED plays another one. The model is one class,
// which makes this file long.
#include "lib/base/uuid.hpp"
#include "lib/store/call.hpp"
#include "lib/store/live.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

using namespace holdfast;
using namespace holdfast::test;

namespace {

using What = store::PageAnswer::What;

constexpr int kMaxAttempts = 2, kMaxLapses = 2, kMaxWorkerErrors = 2; // settings of the collection

struct Page {
  int depth{0}, attempts{0}, lapses{0}, worker_errors{0};
  std::int64_t fence{0};
  std::string id, owner, outcome; // outcome: sealed
  std::set<std::string> hooks;    // that its worker says it runs
  int results{0};                 // of all its attempts

  bool open() const { return outcome.empty(); }
};

struct Crawl {
  int max_depth{0};
  std::size_t max_urls{0};
  std::vector<std::string> seeds;
  std::map<std::string, Page> pages;
  std::string owner;
  std::int64_t fence{0};
  bool expanded{false}, cut{false}, sealed{false};

  std::size_t open() const {
    return static_cast<std::size_t>(
        std::count_if(pages.begin(), pages.end(), [](const auto& page) { return page.second.open(); }));
  }
  // What the database must do with a list of URLs; returns how many are new.
  std::int64_t insert(const std::vector<std::string>& urls, int depth) {
    std::int64_t inserted = 0;
    for (const auto& url : urls) {
      if (pages.count(url) != 0) continue;
      if (max_urls != 0 && pages.size() >= max_urls) {
        cut = true;
        continue;
      }
      pages[url].depth = depth;
      ++inserted;
    }
    return inserted;
  }
  // Its next seeds become pages.
  std::int64_t expand(std::size_t count) {
    const auto end = seeds.begin() + static_cast<std::ptrdiff_t>(count);
    const auto inserted = insert({seeds.begin(), end}, 0);
    seeds.erase(seeds.begin(), end);
    expanded = true;
    if (cut) seeds.clear();
    return inserted;
  }
  void settle() {
    if (expanded && seeds.empty() && open() == 0) sealed = true;
  }
};

// A page as it is submitted, and what must be answered.
struct Ending {
  store::Page page;
  store::PageAnswer expected;
};

class Model {
public:
  Model(Stage& stage, unsigned seed) : stage_(stage), random_(seed) {
    // What fails is tried again at once: the model has no clock.
    stage_.run("update holdfast.collection set max_attempts = $1::integer, max_lapses = $2::integer, "
               "max_worker_errors = $3::integer, retry_base = "
               "'1 microsecond', retry_max = '1 microsecond'",
               pg::Params::of(kMaxAttempts, kMaxLapses, kMaxWorkerErrors));
    for (int i = 0; i < 4; ++i)
      workers_.push_back(stage_.worker());
  }

  void step() {
    const int dice = pick(100);
    if (dice < 6) {
      add();
    } else if (dice < 18) {
      expand(any_worker());
    } else if (dice < 30) {
      claim(any_worker(), pick(6));
    } else if (dice < 42) {
      run_hooks(any_worker());
    } else if (dice < 82) {
      turn(any_worker(), pick(4), pick(6));
    } else if (dice < 92) {
      heartbeat(any_worker());
    } else if (dice < 97) {
      lose(pick(static_cast<int>(workers_.size())), pick(2) == 0);
    } else {
      leave(pick(static_cast<int>(workers_.size())));
    }
  }

  // Works until nothing is left to be done.
  void drain() {
    for (int round = 0; round < 20000 && !all_sealed(); ++round)
      for (const auto& worker : workers_) {
        while (expand(worker)) {
        }
        turn(worker, 50, 50);
      }
    CHECK(all_sealed());
  }

  void compare() {
    std::set<std::string> expected, running;
    int results = 0;
    for (const auto& [id, crawl] : crawls_)
      for (const auto& [url, page] : crawl.pages) {
        expected.insert(id + " " + url + " " + std::to_string(page.depth) + " " +
                        (page.open() ? "open" : page.outcome) + " " + std::to_string(page.fence) + " " +
                        std::to_string(page.attempts) + " " + std::to_string(page.lapses) + " " + page.owner);
        for (const auto& hook : page.hooks)
          running.insert(page.owner + " " + page.id + " " + hook);
        results += page.results;
      }
    CHECK(lines("select crawl_id || ' ' || url || ' ' || depth || ' ' || coalesce(outcome, 'open') || ' ' || fence || "
                "' ' || attempts || ' ' || lapses || ' ' || coalesce(case when outcome is null then "
                "owner_id::text end, '') as line from holdfast.v_snapshot") == expected);
    CHECK(lines("select process_id || ' ' || snapshot_id || ' ' || hook_name as line from holdfast.v_running") ==
          running);
    CHECK(stage_.value("select count(*) from holdfast.archive_result") == std::to_string(results));
    CHECK(stage_.value("select coalesce(sum(cardinality(hooks)), 0) from holdfast.attempt") ==
          std::to_string(hooks_lost_));
    for (const auto& [id, crawl] : crawls_) {
      const auto progress = store::crawl(stage_.connection, id);
      CHECK((progress.status == "sealed") == crawl.sealed);
      CHECK(progress.open == static_cast<std::int64_t>(crawl.open()));
      CHECK(progress.seeds_left == static_cast<std::int64_t>(crawl.seeds.size()));
      CHECK((progress.stop_reason == "max_urls") == crawl.cut);
      CHECK((crawl.max_urls == 0 || progress.total <= static_cast<std::int64_t>(crawl.max_urls)));
    }
  }

  void check_invariants() {
    const auto broken = store::call(stage_.connection, "check_invariants");
    for (std::size_t i = 0; i < broken.size(); ++i)
      FAIL_CHECK(broken[i].text("invariant") << ": " << broken[i]["detail"].value_or(""));
  }

  std::map<std::string, int> done; // how often each thing happened: a test that does nothing proves nothing

private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  const std::string& any_worker() {
    return workers_[static_cast<std::size_t>(pick(static_cast<int>(workers_.size())))];
  }
  bool all_sealed() const {
    return std::all_of(crawls_.begin(), crawls_.end(), [](const auto& crawl) { return crawl.second.sealed; });
  }
  std::set<std::string> lines(const std::string& sql) {
    const auto rows = stage_.connection.call(sql);
    std::set<std::string> all;
    for (std::size_t i = 0; i < rows.size(); ++i)
      all.insert(rows[i].text("line"));
    CHECK(all.size() == rows.size());
    return all;
  }
  std::vector<std::string> urls(int count) {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i)
      all.push_back(Stage::seed(std::to_string(pick(40))).url);
    return all;
  }
  static std::vector<store::Seed> as_seeds(const std::vector<std::string>& urls) {
    std::vector<store::Seed> all;
    for (const auto& url : urls)
      all.push_back({url, "", {}});
    return all;
  }
  struct Held {
    std::string crawl, url;
    Page* page;
    store::Claim claim() const {
      store::Claim made;
      made.lease = {page->id, crawl, page->fence};
      made.host = "site.test";
      return made;
    }
  };
  // What a worker holds, or (of no worker) all that is held.
  std::vector<Held> held(const std::string& worker) {
    std::vector<Held> all;
    for (auto& [id, crawl] : crawls_)
      for (auto& [url, page] : crawl.pages)
        if (!page.owner.empty() && (worker.empty() || page.owner == worker)) all.push_back({id, url, &page});
    return all;
  }

  void add() {
    if (crawls_.size() >= 90) return;
    store::NewCrawl crawl;
    crawl.id = base::new_uuid();
    crawl["max_depth"] = pick(3);
    crawl["max_urls"] = pick(2) == 0 ? 0 : 2 + pick(12);
    const auto seeds = urls(pick(9));
    stage_.add(as_seeds(seeds), crawl);
    crawls_[crawl.id].max_depth = crawl["max_depth"];
    crawls_[crawl.id].max_urls = crawl["max_urls"];
    crawls_[crawl.id].seeds = seeds;
    ++done["add"];
  }

  bool expand(const std::string& worker) {
    // Go on with one that the worker has, or claim another.
    std::string id;
    for (const auto& [one, crawl] : crawls_)
      if (crawl.owner == worker) id = one;
    if (id.empty()) {
      const auto lease = store::crawl_claim(stage_.connection, worker, 1h);
      const bool any = std::any_of(crawls_.begin(), crawls_.end(), [](const auto& one) {
        return one.second.owner.empty() && (!one.second.expanded || !one.second.seeds.empty());
      });
      CHECK(lease.has_value() == any);
      if (!lease) return false;
      id = lease->crawl_id;
      Crawl& crawl = crawls_.at(id);
      CHECK(crawl.owner.empty());
      CHECK(lease->fence == crawl.fence + 1);
      CHECK(lease->seeds_left == static_cast<std::int64_t>(crawl.seeds.size()));
      crawl.fence = lease->fence;
      crawl.owner = worker;
    }
    Crawl& crawl = crawls_.at(id);
    const auto batch = std::min<std::size_t>(crawl.seeds.size(), static_cast<std::size_t>(1 + pick(5)));
    const auto expansion = store::crawl_expand(stage_.connection, worker, {id, crawl.fence, 0},
                                               static_cast<int>(std::max<std::size_t>(batch, 1)));
    CHECK(expansion.inserted == crawl.expand(batch));
    CHECK(expansion.seeds_left == static_cast<std::int64_t>(crawl.seeds.size()));
    if (crawl.seeds.empty()) crawl.owner.clear();
    crawl.settle();
    CHECK((expansion.status == "sealed") == crawl.sealed);
    ++done["expand"];
    return true;
  }

  store::ClaimRequest claim_request(int room) {
    store::ClaimRequest request;
    request.room = room;
    for (const auto& [id, crawl] : crawls_)
      if (pick(10) == 0) request.open.push_back(id);
    request.open_only = pick(6) == 0;
    request.order = {pick(4) == 0, pick(4) == 0 ? 5 : 0};
    request.seeds = pick(3) == 0 ? 5 : 0;
    return request;
  }

  // A claim of whole new crawls, if there were any that it may open: one of them is open now.
  void opened(const store::ClaimRequest& request) {
    const bool may = request.seeds > 0 && request.room > 0 && !request.open_only;
    std::set<std::string> candidates;
    std::size_t waiting = 0;
    for (const auto& [id, crawl] : crawls_) {
      if (!crawl.owner.empty() || (crawl.expanded && crawl.seeds.empty())) continue;
      ++waiting;
      if (may && !crawl.expanded && !crawl.seeds.empty() &&
          crawl.seeds.size() <= static_cast<std::size_t>(request.seeds))
        candidates.insert(id);
    }
    std::vector<std::string> found;
    for (const auto& id : lines("select id::text as line from holdfast.crawl where status = 'started'"))
      if (!crawls_.at(id).expanded) found.push_back(id);
    CHECK(found.size() <= 1);
    CHECK((found.size() == 1 || candidates.empty() || waiting > 16)); // it looks at so many
    for (const auto& id : found) {
      CHECK(candidates.count(id) == 1);
      crawls_.at(id).expand(crawls_.at(id).seeds.size());
      ++done["open"];
    }
  }

  // What a claim with this request must have taken.
  void claimed(const std::string& worker, const store::ClaimRequest& request, const std::vector<store::Claim>& claims) {
    opened(request);
    std::size_t due = 0;
    for (const auto& [id, crawl] : crawls_)
      if (!request.open_only || std::count(request.open.begin(), request.open.end(), id) > 0)
        for (const auto& [url, page] : crawl.pages)
          due += page.owner.empty() && page.open();
    CHECK(claims.size() == std::min(due, static_cast<std::size_t>(request.room)));
    for (const auto& one : claims) {
      Page& page = crawls_.at(one.lease.crawl_id).pages.at(one.url);
      CHECK(page.owner.empty());
      CHECK(page.open());
      CHECK(one.lease.fence == ++page.fence);
      CHECK(one.attempts == ++page.attempts);
      CHECK(one.lapses == page.lapses);
      CHECK(one.depth == page.depth);
      CHECK((page.id.empty() || page.id == one.lease.snapshot_id));
      page.id = one.lease.snapshot_id;
      page.owner = worker;
      ++done["claim"];
    }
  }

  void claim(const std::string& worker, int room) {
    const auto request = claim_request(room);
    claimed(worker, request, stage_.claim_as(worker, request));
  }

  // From now on a worker runs these hooks of its pages, and says so; sometimes also of a page that it does not hold.
  void run_hooks(const std::string& worker) {
    std::vector<store::ActiveHook> hooks;
    for (const auto& one : held(worker)) {
      one.page->hooks.clear();
      for (const char* hook : {"hook0", "hook1", "hook2"})
        if (pick(3) == 0) {
          one.page->hooks.insert(hook);
          hooks.push_back(Stage::running(one.claim(), "wget", hook));
        }
    }
    if (const auto all = held(""); !all.empty() && pick(4) == 0) {
      auto foreign = all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))].claim();
      foreign.lease.fence -= 1;
      hooks.push_back(Stage::running(foreign, "wget", "late"));
    }
    store::worker_hooks(stage_.connection, worker, hooks);
    ++done["hooks"];
  }

  void put_back(Page& page) {
    page.owner.clear();
    page.hooks.clear();
  }

  Ending seal(const Held& one) {
    Crawl& crawl = crawls_.at(one.crawl);
    static const char* const kOutcomes[] = {"succeeded", "succeeded", "partial", "failed", "refused"};
    Ending ending{Stage::sealed(one.claim(), kOutcomes[pick(5)]), {What::sealed, 0, false}};
    const auto links = urls(pick(5));
    ending.page.links = as_seeds(links);
    if (one.page->depth < crawl.max_depth && ending.page.outcome != "refused")
      ending.expected.children = crawl.insert(links, one.page->depth + 1);
    one.page->outcome = ending.page.outcome;
    ++done["seal"];
    return ending;
  }

  Ending release(const Held& one) {
    Ending ending{Stage::released(one.claim(), 0ms), {What::released, 0, false}};
    static const char* const kEndings[] = {"released",    "released", "released",
                                           "interrupted", "declined", "worker_error"};
    ending.page.ending = kEndings[pick(6)];
    one.page->worker_errors += ending.page.ending == "worker_error";
    ending.page.spend = ending.page.ending == "released" && pick(3) != 0;
    if (pick(3) != 0) ending.page.delay.reset();
    if (ending.page.spend && !ending.page.delay && one.page->attempts >= kMaxAttempts) {
      ending.expected.what = What::failed;
      one.page->outcome = "failed";
      ++done["give up"];
    } else if (ending.page.ending == "worker_error" && one.page->worker_errors >= kMaxWorkerErrors) {
      ending.expected.what = What::failed;
      one.page->outcome = "failed";
    } else if (!ending.page.spend) {
      --one.page->attempts;
    }
    ++done["release"];
    return ending;
  }

  // Written with a fence that is not the row's, or by a worker that does not hold it.
  std::optional<Ending> stale(const std::string& worker) {
    const auto all = held("");
    if (all.empty()) return std::nullopt;
    const auto& one = all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
    auto claim = one.claim();
    if (one.page->owner == worker) claim.lease.fence += 1000;
    Ending ending{pick(2) == 0 ? Stage::sealed(claim) : Stage::released(claim), {What::lost, 0, false}};
    if (ending.page.ending == "sealed") ending.page.links = as_seeds(urls(3));
    ending.page.results = {Stage::result("wget", "late")};
    ++done["stale"];
    return ending;
  }

  // A worker submits up to `count` of its pages and claims into `room`.
  void turn(const std::string& worker, int count, int room) {
    std::vector<Ending> endings;
    if (pick(4) == 0)
      if (auto ending = stale(worker)) endings.push_back(std::move(*ending));
    auto own = held(worker);
    std::shuffle(own.begin(), own.end(), random_);
    own.resize(std::min(own.size(), static_cast<std::size_t>(count)));
    for (const auto& one : own) {
      endings.push_back(pick(2) == 0 ? release(one) : seal(one));
      for (int i = pick(3); i > 0; --i) {
        endings.back().page.results.push_back(Stage::result("wget", "hook" + std::to_string(i)));
        ++one.page->results;
      }
    }
    for (const auto& one : own)
      put_back(*one.page);
    std::map<std::string, std::size_t> last;
    for (std::size_t i = 0; i < endings.size(); ++i)
      last[endings[i].page.lease.crawl_id] = i;
    for (const auto& [id, at] : last) {
      crawls_.at(id).settle();
      endings[at].expected.crawl_sealed = crawls_.at(id).sealed;
    }
    store::TurnRequest request{{}, claim_request(room)};
    for (const auto& ending : endings)
      request.pages.push_back(ending.page);
    const auto answer = store::worker_turn(stage_.connection, worker, request);
    check_answers(endings, answer.pages);
    if (!endings.empty()) request.claim.seeds = 0; // such a turn opens no crawl
    claimed(worker, request.claim, answer.claims);
    if (pick(4) == 0) { // the answer was lost, and the pages are submitted again
      for (auto& ending : endings)
        ending.expected.children = 0;
      check_answers(endings, stage_.finish_all(worker, request.pages));
    }
    ++done["turn"];
  }

  void check_answers(const std::vector<Ending>& endings, const std::vector<store::PageAnswer>& answers) {
    REQUIRE(answers.size() == endings.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      CHECK(store::to_string(answers[i].what) == store::to_string(endings[i].expected.what));
      CHECK(answers[i].children == endings[i].expected.children);
      CHECK(answers[i].crawl_sealed == endings[i].expected.crawl_sealed);
    }
  }

  void heartbeat(const std::string& worker) {
    std::vector<store::Lease> leases;
    for (const auto& one : held(worker))
      leases.push_back(one.claim().lease);
    const auto answer = store::worker_heartbeat(stage_.connection, worker, 1h, leases, "{}");
    CHECK(answer.lost.empty());
    CHECK(answer.extra.empty());
    ++done["heartbeat"];
  }

  // Its work goes back, by a call of lapse_process or by the claim of another worker.
  void lose(int index, bool by_claim) {
    const auto dead = workers_[static_cast<std::size_t>(index)];
    workers_[static_cast<std::size_t>(index)] = stage_.worker();
    stage_.expire(dead);
    gone(dead, true);
    if (by_claim) {
      store::ClaimRequest request;
      request.room = 2;
      const auto& worker = workers_[static_cast<std::size_t>(index)];
      claimed(worker, request, stage_.claim_as(worker, request));
    } else {
      store::call(stage_.connection, "lapse_process");
    }
    CHECK(refusal([&] { stage_.claim_many(dead, 1); }) == pg::kLeaseLapsed);
    ++done["lapse"];
  }

  void leave(int index) {
    const auto worker = workers_[static_cast<std::size_t>(index)];
    workers_[static_cast<std::size_t>(index)] = stage_.worker();
    store::call(stage_.connection, "process_leave", worker, 0, "done");
    gone(worker, false);
    ++done["leave"];
  }

  void gone(const std::string& worker, bool died) {
    for (const auto& one : held(worker)) {
      Page& page = *one.page;
      if (died) {
        hooks_lost_ += page.hooks.size();
        if (++page.lapses == kMaxLapses) page.outcome = "quarantined";
      } else {
        --page.attempts;
      }
      put_back(page);
    }
    for (auto& [id, crawl] : crawls_) {
      if (crawl.owner == worker) crawl.owner.clear();
      crawl.settle();
    }
  }

  Stage& stage_;
  std::mt19937 random_;
  std::vector<std::string> workers_;
  std::map<std::string, Crawl> crawls_;
  std::size_t hooks_lost_{0};
};

} // namespace

TEST_CASE(
    "whatever several workers do, in whatever order, the database does what the model says, and all ends sealed") {
  const char* asked = std::getenv("HOLDFAST_MODEL_SEED");
  const unsigned seed = asked != nullptr ? static_cast<unsigned>(std::strtoul(asked, nullptr, 10)) : 20260101;
  MESSAGE("HOLDFAST_MODEL_SEED=" << seed);
  Stage stage;
  stage.run("select setseed($1 / 1000.0)", pg::Params::of(seed % 1000)); // claims walk from a random place
  Model model(stage, seed);
  for (int i = 0; i < 5000; ++i) {
    model.step();
    if (i % 10 == 0) model.check_invariants();
    if (i % 250 == 0) model.compare();
  }
  for (const std::string what : {"add", "expand", "open", "claim", "hooks", "turn", "release", "give up", "seal",
                                 "stale", "heartbeat", "lapse", "leave"}) {
    CAPTURE(what);
    CHECK(model.done[what] > 15);
  }
  model.drain();
  model.check_invariants();
  model.compare();
  CHECK(stage.value("select count(*) - count(distinct (crawl_id, url)) from holdfast.v_snapshot") == "0");
  CHECK(stage.value("select count(*) from holdfast.snapshot_queue") == "0");
  CHECK(stage.value("select count(*) > 0 from holdfast.snapshot_sealed where outcome = 'quarantined'") == "t");
}
