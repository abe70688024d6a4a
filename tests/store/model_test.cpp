// Thousands of random calls by several nodes, against a small model in memory that knows what each of them must do. The
// order is decided by one number, which is printed; HOLDFAST_MODEL_SEED plays another one.
#include "lib/base/uuid.hpp"
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

struct Page {
  int depth{0}, attempts{0}, owners_lost{0};
  std::int64_t fence{0};
  std::string id, owner, outcome; // outcome: sealed
  bool started{false}, running{false};
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
        std::count_if(pages.begin(), pages.end(), [](const auto& page) { return page.second.outcome.empty(); }));
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
  void settle() {
    if (expanded && seeds.empty() && open() == 0) sealed = true;
  }
};

class Model {
public:
  Model(Stage& stage, unsigned seed) : stage_(stage), random_(seed) {
    for (int i = 0; i < 4; ++i)
      nodes_.push_back(stage_.node());
  }

  void step() {
    const int dice = pick(100);
    if (dice < 6) {
      add();
    } else if (dice < 18) {
      expand(any_node());
    } else if (dice < 42) {
      claim(any_node(), pick(6));
    } else if (dice < 55) {
      start_or_run();
    } else if (dice < 62) {
      release();
    } else if (dice < 84) {
      seal();
    } else if (dice < 92) {
      stale();
    } else if (dice < 95) {
      beat(any_node());
    } else if (dice < 98) {
      lose(pick(static_cast<int>(nodes_.size())), pick(2) == 0);
    } else {
      leave(pick(static_cast<int>(nodes_.size())));
    }
  }

  // Works until nothing is left to be done.
  void drain() {
    const auto node = nodes_[0];
    for (int round = 0; round < 20000 && !all_sealed(); ++round) {
      for (const auto& one : nodes_)
        while (expand(one)) {
        }
      claim(node, 50);
      for (auto& [id, crawl] : crawls_)
        for (auto& [url, page] : crawl.pages)
          if (!page.owner.empty()) finish(id, crawl, url, page);
    }
    CHECK(all_sealed());
  }

  void compare() {
    std::set<std::string> expected, actual;
    for (const auto& [id, crawl] : crawls_)
      for (const auto& [url, page] : crawl.pages)
        expected.insert(id + " " + url + " " + std::to_string(page.depth) + " " +
                        (page.outcome.empty() ? "open" : page.outcome) + " " + std::to_string(page.fence) + " " +
                        std::to_string(page.attempts) + " " + std::to_string(page.owners_lost));
    const auto rows = stage_.connection.call(
        "select crawl_id || ' ' || url || ' ' || depth || ' ' || coalesce(outcome, 'open') || ' ' || "
        "fence || ' ' || attempts || ' ' || owners_lost as line from holdfast.v_snapshot");
    for (std::size_t i = 0; i < rows.size(); ++i)
      actual.insert(rows[i].text("line"));
    CHECK(rows.size() == expected.size());
    CHECK(actual == expected);
    for (const auto& [id, crawl] : crawls_) {
      const auto progress = store::crawl_progress(stage_.connection, id);
      CHECK((progress.status == "sealed") == crawl.sealed);
      CHECK(progress.open == static_cast<std::int64_t>(crawl.open()));
      CHECK(progress.seeds_left == static_cast<std::int64_t>(crawl.seeds.size()));
      CHECK((progress.stop_reason == "max_urls") == crawl.cut);
      CHECK((crawl.max_urls == 0 || progress.total <= static_cast<std::int64_t>(crawl.max_urls)));
    }
  }

  void check_invariants() {
    const auto broken = store::check_invariants(stage_.connection);
    for (std::size_t i = 0; i < broken.size(); ++i)
      FAIL_CHECK(broken[i].text("invariant") << ": " << broken[i].text_or("detail", ""));
  }

  std::map<std::string, int> done; // how often each thing happened: a test that does nothing proves nothing

private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  const std::string& any_node() { return nodes_[static_cast<std::size_t>(pick(static_cast<int>(nodes_.size())))]; }
  bool all_sealed() const {
    return std::all_of(crawls_.begin(), crawls_.end(), [](const auto& crawl) { return crawl.second.sealed; });
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
      all.push_back({url, "site.test", "", {}});
    return all;
  }
  struct Held {
    std::string crawl, url;
  };
  std::optional<Held> any_held() {
    std::vector<Held> all;
    for (const auto& [id, crawl] : crawls_)
      for (const auto& [url, page] : crawl.pages)
        if (!page.owner.empty()) all.push_back({id, url});
    if (all.empty()) return std::nullopt;
    return all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
  }

  void add() {
    if (crawls_.size() >= 60) return;
    store::NewCrawl crawl;
    crawl.id = base::new_uuid();
    crawl.max_depth = pick(3);
    crawl.max_urls = pick(2) == 0 ? 0 : 2 + pick(12);
    const auto seeds = urls(pick(9));
    stage_.add(as_seeds(seeds), crawl);
    crawls_[crawl.id].max_depth = crawl.max_depth;
    crawls_[crawl.id].max_urls = static_cast<std::size_t>(crawl.max_urls);
    crawls_[crawl.id].seeds = seeds;
    ++done["add"];
  }

  bool expand(const std::string& node) {
    // Go on with one that the node has, or claim another.
    std::string id;
    for (const auto& [one, crawl] : crawls_)
      if (crawl.owner == node) id = one;
    if (id.empty()) {
      const auto lease = store::crawl_claim(stage_.connection, node, 1h);
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
      crawl.owner = node;
    }
    Crawl& crawl = crawls_.at(id);
    const auto batch = std::min<std::size_t>(crawl.seeds.size(), static_cast<std::size_t>(1 + pick(5)));
    const auto expansion = store::crawl_expand(stage_.connection, node, {id, crawl.fence, 0},
                                               static_cast<int>(std::max<std::size_t>(batch, 1)));
    const auto end = crawl.seeds.begin() + static_cast<std::ptrdiff_t>(batch);
    CHECK(expansion.inserted == crawl.insert({crawl.seeds.begin(), end}, 0));
    crawl.seeds.erase(crawl.seeds.begin(), end);
    crawl.expanded = true;
    if (crawl.cut) crawl.seeds.clear();
    CHECK(expansion.seeds_left == static_cast<std::int64_t>(crawl.seeds.size()));
    if (crawl.seeds.empty()) crawl.owner.clear();
    crawl.settle();
    CHECK((expansion.status == "sealed") == crawl.sealed);
    ++done["expand"];
    return true;
  }

  void claim(const std::string& node, int room) {
    std::size_t due = 0;
    for (const auto& [id, crawl] : crawls_)
      for (const auto& [url, page] : crawl.pages)
        due += page.owner.empty() && page.outcome.empty();
    std::vector<std::string> near;
    for (const auto& [id, crawl] : crawls_)
      if (pick(10) == 0) near.push_back(id);
    const auto claims = store::snapshot_claim(stage_.connection, node, room, near);
    CHECK(claims.size() == std::min(due, static_cast<std::size_t>(room)));
    for (const auto& one : claims) {
      Page& page = crawls_.at(one.lease.crawl_id).pages.at(one.url);
      CHECK(page.owner.empty());
      CHECK(page.outcome.empty());
      CHECK(one.lease.fence == ++page.fence);
      CHECK(one.attempts == ++page.attempts);
      CHECK(one.owners_lost == page.owners_lost);
      CHECK(one.depth == page.depth);
      CHECK((page.id.empty() || page.id == one.lease.snapshot_id));
      page.id = one.lease.snapshot_id;
      page.owner = node;
      page.started = page.running = false;
      ++done["claim"];
    }
  }

  void start_or_run() {
    const auto held = any_held();
    if (!held) return;
    Page& page = crawls_.at(held->crawl).pages.at(held->url);
    const store::Lease lease{page.id, held->crawl, page.fence};
    if (!page.started) {
      store::snapshot_start(stage_.connection, page.owner, lease);
      page.started = true;
    } else if (!page.running) {
      store::result_start(stage_.connection, page.owner, lease,
                          {"wget", "hook" + std::to_string(pick(3)), 1, 1, 1s, false});
      page.running =
          stage_.value("select count(*) from holdfast.archive_result where ended_at is null and snapshot_id = $1::uuid",
                       pg::Params::of(page.id)) != "0";
    } else {
      finish_hooks(lease, page);
    }
    ++done["run"];
  }

  void finish_hooks(const store::Lease& lease, Page& page) {
    for (const char* hook : {"hook0", "hook1", "hook2"}) {
      const auto refused =
          refusal([&] { store::result_finish(stage_.connection, page.owner, lease, "wget", hook, "succeeded", "{}"); });
      CHECK((refused.empty() || refused == "HF001")); // HF001: that one was never started
    }
    page.running = false;
  }

  void put_back(Page& page) {
    page.owner.clear();
    page.started = page.running = false;
  }

  void release() {
    const auto held = any_held();
    if (!held) return;
    Page& page = crawls_.at(held->crawl).pages.at(held->url);
    const bool spend = pick(2) == 0;
    const store::Lease lease{page.id, held->crawl, page.fence};
    const auto owner = page.owner;
    for (int i = 0; i < 1 + pick(2); ++i)
      store::snapshot_release(stage_.connection, owner, lease, "released", 0ms, "again", spend);
    if (!spend) --page.attempts;
    put_back(page);
    ++done["release"];
  }

  void seal() {
    const auto held = any_held();
    if (!held) return;
    Crawl& crawl = crawls_.at(held->crawl);
    finish(held->crawl, crawl, held->url, crawl.pages.at(held->url));
  }

  void finish(const std::string& id, Crawl& crawl, const std::string& url, Page& page) {
    const store::Lease lease{page.id, id, page.fence};
    const auto links = urls(pick(5));
    auto sealing = Stage::succeeded(as_seeds(links));
    if (!page.started) {
      CHECK(refusal([&] { store::snapshot_seal(stage_.connection, page.owner, lease, sealing); }) == "HF001");
      store::snapshot_start(stage_.connection, page.owner, lease);
      page.started = true;
    }
    if (page.running) {
      CHECK(refusal([&] { store::snapshot_seal(stage_.connection, page.owner, lease, sealing); }) == "HF001");
      finish_hooks(lease, page);
    }
    const auto owner = page.owner;
    const auto sealed = store::snapshot_seal(stage_.connection, owner, lease, sealing);
    const int depth = page.depth;
    page.outcome = "succeeded";
    put_back(page);
    CHECK(sealed.children == (depth < crawl.max_depth ? crawl.insert(links, depth + 1) : 0));
    crawl.settle();
    CHECK(sealed.crawl_sealed == crawl.sealed);
    if (pick(4) == 0) CHECK(store::snapshot_seal(stage_.connection, owner, lease, sealing).children == 0);
    CHECK(crawl.pages.count(url) == 1);
    ++done["seal"];
  }

  // Somebody writes with a fence that is not, or no more, the row's.
  void stale() {
    const auto held = any_held();
    if (!held) return;
    const Page& page = crawls_.at(held->crawl).pages.at(held->url);
    const bool other = pick(2) == 0 && nodes_.size() > 1;
    const auto node = other ? base::new_uuid() : page.owner;
    const store::Lease lease{page.id, held->crawl, other ? page.fence : page.fence + 1};
    CHECK(refusal([&] { store::snapshot_seal(stage_.connection, node, lease, Stage::succeeded(as_seeds(urls(3)))); }) ==
          "HF003");
    CHECK(refusal([&] { store::snapshot_start(stage_.connection, node, lease); }) == "HF003");
    CHECK(refusal([&] { store::snapshot_release(stage_.connection, node, lease, "released", 0ms, "x", true); }) ==
          "HF003");
    CHECK(refusal([&] {
            store::result_start(stage_.connection, node, lease, {"wget", "late", 1, 1, 1s, false});
          }) == "HF003");
    ++done["stale"];
  }

  void beat(const std::string& node) {
    std::vector<store::Lease> held;
    for (const auto& [id, crawl] : crawls_)
      for (const auto& [url, page] : crawl.pages)
        if (page.owner == node) held.push_back({page.id, id, page.fence});
    const auto answer = store::node_beat(stage_.connection, node, 1h, held, "{}");
    CHECK(answer.lost.empty());
    CHECK(answer.extra.empty());
    ++done["beat"];
  }

  // Its work goes back, by a call of lapse_nodes or by the claim of another node.
  void lose(int index, bool by_claim) {
    const auto dead = nodes_[static_cast<std::size_t>(index)];
    nodes_[static_cast<std::size_t>(index)] = stage_.node();
    stage_.expire(dead);
    gone(dead, true);
    if (by_claim) {
      claim(nodes_[static_cast<std::size_t>(index)], 2);
    } else {
      store::lapse_nodes(stage_.connection);
    }
    CHECK(refusal([&] { store::snapshot_claim(stage_.connection, dead, 1, {}); }) == "HF002");
    ++done["lapse"];
  }

  void leave(int index) {
    const auto node = nodes_[static_cast<std::size_t>(index)];
    nodes_[static_cast<std::size_t>(index)] = stage_.node();
    store::node_leave(stage_.connection, node, 0, "done");
    gone(node, false);
    ++done["leave"];
  }

  void gone(const std::string& node, bool died) {
    for (auto& [id, crawl] : crawls_) {
      if (crawl.owner == node) crawl.owner.clear();
      for (auto& [url, page] : crawl.pages) {
        if (page.owner != node) continue;
        if (died) {
          if (++page.owners_lost == 3) page.outcome = "quarantined";
        } else {
          --page.attempts;
        }
        put_back(page);
      }
      crawl.settle();
    }
  }

  Stage& stage_;
  std::mt19937 random_;
  std::vector<std::string> nodes_;
  std::map<std::string, Crawl> crawls_;
};

} // namespace

TEST_CASE("whatever several nodes do, in whatever order, the database does what the model says, and all ends sealed") {
  const char* asked = std::getenv("HOLDFAST_MODEL_SEED");
  const unsigned seed = asked != nullptr ? static_cast<unsigned>(std::strtoul(asked, nullptr, 10)) : 20260101;
  MESSAGE("HOLDFAST_MODEL_SEED=" << seed);
  Stage stage;
  stage.run("select setseed($1::float8)", pg::Params::of((seed % 1000) / 1000.0)); // claims walk from a random place
  Model model(stage, seed);
  for (int i = 0; i < 5000; ++i) {
    model.step();
    if (i % 10 == 0) model.check_invariants();
    if (i % 250 == 0) model.compare();
  }
  for (const char* what : {"add", "expand", "claim", "run", "release", "seal", "stale", "beat", "lapse", "leave"})
    CHECK_MESSAGE(model.done[what] > 20, what);
  model.drain();
  model.check_invariants();
  model.compare();
  CHECK(stage.value("select count(*) - count(distinct (crawl_id, url)) from holdfast.v_snapshot") == "0");
  CHECK(stage.value("select count(*) from holdfast.snapshot_queue") == "0");
  CHECK(stage.value("select count(*) > 0 from holdfast.snapshot_sealed where outcome = 'quarantined'") == "t");
}
