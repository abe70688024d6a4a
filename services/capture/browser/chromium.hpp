#pragma once
// A Chromium process and the pipe that its DevTools listen on. Messages are texts that end with a NUL. Used from one
// thread; end() kills Chromium with all its processes and removes its profile, which is in the current directory.

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

namespace holdfast::capture {

// Data still to be written to a descriptor.
struct Outgoing {
  std::string bytes; // the first of them may have been written already
  // Returns false if the other end has closed.
  bool flush(int descriptor);

private:
  std::size_t sent_{0};
};

using Take = std::function<void(std::string_view message)>; // without its NUL

// Reads once, and takes the messages that are whole then; `buffer` keeps the beginning of the next one.
enum class Got { some, nothing, end };
Got read_messages(int descriptor, std::string& buffer, const Take& take);

// The browser to use: BROWSER_BINARY, else what is on PATH. The plugin's default is a path,
// because the program of that name on Debian's PATH is a script that would stay between us and the browser. The
// headless shell is Chromium without windows: it renders the same, in about half of the CPU time (tests/bench). Throws
// Ending(skipped) if there is none.
std::string browser_program();

// Returns true if Chromium may get its own sandbox: not as root, which it refuses, and not if CHROME_SANDBOX is false.
bool may_be_sandboxed();

class Chromium {
public:
  // Starts Chromium. Throws Ending if it cannot be started. Only its first answer shows that it runs: without the
  // namespaces that its sandbox needs, it ends at once.
  void start(const std::string& program, bool sandboxed);
  void end();
  bool runs() const { return pid_ >= 0; }

  // Returns false if Chromium has ended.
  bool read(const Take& take);
  bool flush() { return outgoing.flush(commands_); }

  int commands() const { return commands_; } // for poll()
  int answers() const { return answers_; }
  int errors() const { return errors_; }
  // To be called when errors() can be read, lest Chromium blocks there.
  void read_errors();
  // The last line that it has written to stderr so far.
  std::string last_words();

  Outgoing outgoing; // commands

private:
  pid_t pid_{-1};
  int commands_{-1}, answers_{-1}, errors_{-1};
  std::string incoming_, words_;
};

} // namespace holdfast::capture
