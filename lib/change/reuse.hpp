#pragma once
// Decides whether the next capture of a URL may ask the site for the files of an earlier capture, in place of running
// hooks. Values and pure functions.

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace holdfast::change {

// Evidence of the captures of a URL so far; column reuse of holdfast.fingerprint.
struct Reuse {
  std::string from, crawl; // the last capture by hooks, whose files may be shown again
  std::string why_not;     // its files do not decide what a reader sees; empty: they may
  std::string hooks;       // digest of the hooks and options that made it
  std::string inputs;      // digest of all answers that it recorded
  bool scripts{false};     // it has scripts, whose result may also depend on time and chance
  bool calm{false};        // these name neither clock nor chance nor another source
  // Captures by hooks in a row that were `same` whenever all answers were. Below 0: one was not, and as many more must
  // be.
  int proofs{0};
  bool varies{false}; // the last capture by hooks was `same` although an answer differed
  int reused{0};      // captures since then that ran no hook
};

// Returns how many captures in a row may run no hook. Without scripts, a page is a function of its files.
int reuse_limit(const Reuse& reuse);
// Returns why the next capture, by these hooks, has to run them; empty: it may ask for the files first.
std::string why_hooks(const Reuse& reuse, std::string_view hooks);
// Continues `before` with a capture by hooks. `same`: it found no change since the capture before.
Reuse after_hooks(const Reuse& before, Reuse now, bool same);

// Takes a body of the page into account: HTML, or (`script`) a script.
void look_at(Reuse& reuse, std::string_view body, bool script);

nlohmann::json to_json(const Reuse& reuse);
Reuse reuse_from(const nlohmann::json& json); // what is missing has its default

} // namespace holdfast::change
