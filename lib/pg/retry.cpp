#include "lib/base/backoff.hpp"
#include "lib/base/error.hpp"
#include "lib/pg/connection.hpp"

#include <algorithm>
#include <thread>

namespace holdfast::pg {

void retry_temporary(std::chrono::steady_clock::time_point deadline, const std::function<void()>& work) {
  using namespace std::chrono_literals;
  base::Backoff backoff(50ms, 2s);
  while (true) {
    try {
      work();
      return;
    } catch (const base::Error& error) {
      const auto now = std::chrono::steady_clock::now();
      if (error.error_class() != base::ErrorClass::temporary || now >= deadline) throw;
      std::this_thread::sleep_until(std::min(deadline, now + backoff.next()));
    }
  }
}

} // namespace holdfast::pg
