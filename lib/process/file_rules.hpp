#pragma once
// Restricts what hooks can open at level user of the sandbox: rules of Landlock (Linux), which every process may give
// itself, and which are inherited by all that it starts. Paths without a rule are closed; there is no way to open a
// directory and close another one below it. A process under such rules can trace, or read memory, environment and open
// files of, no process but its own. Modes, times and sockets are not covered.
//
// The kernel's sets of rules are made here and taken on by the hook's process (shim/view.hpp). The hooks of a page
// share one, because each path in it is opened when it is made, and /etc alone may have 150. They belong to the files
// found at these paths then. Owned by a launcher; used from its thread; the destructor closes them.
//
// Requires the third version of Landlock (Linux 6.2): before it, files could be cut that may not be written.

#include "lib/base/file.hpp"

#include <list>
#include <string>

namespace holdfast::process {

struct Sandbox;

class FileRules {
public:
  // A descriptor of the rules for these lists, open until the next call; -1: `error` has an errno value. ELOOP: a link
  // is on the way to one of them, which another hook may have left there.
  int of(const Sandbox& sandbox, int& error);

private:
  struct Kept {
    std::string lists;
    base::Fd rules;
  };
  static constexpr std::size_t kMost = 32; // pages and crawls at a time; the one used last is in front

  std::list<Kept> kept_;
};

} // namespace holdfast::process
