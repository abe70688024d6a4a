#pragma once
// The services that sessions of crawls use besides hooks. Owned by Worker, which outlives its users; main thread only.

#include "services/worker/hook/hook_services.hpp"

namespace holdfast::worker {

class BinaryResolver;
class BrowserWatch;

struct SessionServices : HookServices {
  BinaryResolver& binary_resolver;
  BrowserWatch& browser;
};

} // namespace holdfast::worker
