#pragma once
// The page of one attempt on its way to the database, and what became of it. Owned by SnapshotJob; main thread only.

#include "lib/base/async.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/attempt/page_work.hpp"
#include "services/worker/turn/failure.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::worker {

class Submission {
public:
  enum class Ending { sealed, released, cancelled, lost };

  // Submits the page, or what becomes of it after a failure. A page that the database rejects is submitted once more,
  // as a failure and without anything that it could reject. `lost`: gets the reason if the lease is lost; may have one.
  awaitable<Ending> submit(PageWork& work, std::vector<store::HookResult> rows, const std::optional<Failure>& failure,
                           std::string& lost);

  // The hooks are gone, and the page was submitted: it takes up no slot.
  bool submitted() const noexcept { return submitted_; }
  // The seal may have been granted without our knowing.
  bool in_doubt() const noexcept { return in_doubt_; }
  // Returns true if this snapshot was its crawl's last.
  bool sealed_crawl() const noexcept { return sealed_crawl_; }

private:
  awaitable<std::optional<base::Error>> try_to_submit(PageWork& work, store::Page page, std::optional<Failure> why,
                                                      std::string& lost);
  Ending take_answer(const store::PageAnswer& answer, std::string& lost);

  Ending ending_{Ending::lost};
  bool submitted_{false}, in_doubt_{false}, sealed_crawl_{false};
};

} // namespace holdfast::worker
