#pragma once
// Selects the hooks of this worker for a page. Stateless; main thread only.

#include "lib/hooks/catalog.hpp"
#include "services/worker/hook/hook_services.hpp"

#include <string>
#include <vector>

namespace holdfast::worker {

struct HookChoice {
  std::vector<const hooks::Hook*> hooks; // in their order; at least one
  bool crawl_hooks{false};               // the crawl has hooks of its own
  std::string reason;                    // why some are left out; empty: none is
};

// Throws Failure(no_plugin) if a plugin is missing here. That does not fail the page, because another worker may have
// it. A claim skips crawls that name a plugin which its worker has not announced, so this is for crawls that name none.
void require_plugins(const HookServices& context, const store::Claim& claim);

// Without those whose results the collection has. `options`: of the page's hooks. Throws Failure(refused) if all that
// this worker can run is archived, Error(configuration) if no plugin is enabled.
HookChoice choose_hooks(const HookServices& context, const store::Claim& claim, const hooks::Options& options);

} // namespace holdfast::worker
