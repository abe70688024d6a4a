#pragma once
// How much a page is read: BROWSER_EFFORT and the options beside it.

#include "services/capture/hook.hpp"

#include <cstdint>
#include <string>

namespace holdfast::capture {

enum class Presses { shows, all }; // only what by its role shows more; also what may be tried

struct Effort {
  bool acts{true};                                   // clicks and lets films run; waits for timers
  bool every{false};                                 // each size of each picture too
  Seconds quiet{0.3};                                // without requests or changes: the page rests
  Seconds wait{8}, scroll{12}, click{12}, files{15}; // the longest, on a machine that is not busy
  double share{0.75}, height{40'000};                // of a window in one step; pixels
  int clicks{150};
  std::uint64_t media{100u << 20}; // bytes of one film
  std::string own{};               // a behavior of the operator for this host
  int quality{720};                // lines of a film that comes in several
  Presses presses{Presses::all};
};
// `signed_in`: the browser has a persona's session. Throws Ending if the options make no sense.
Effort effort_of(const Job& job, bool signed_in);

} // namespace holdfast::capture
