#pragma once
// Live progress of one crawl on a terminal: a thread with its own connection that redraws a few lines a few times a
// second. Owned by the verb; the destructor stops the thread, joins it and leaves the last state on the screen. Draws
// on standard error, and only if that is a terminal: quiet in a pipe. Lines of the log go above the display.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace holdfast::cli {

class Progress {
public:
  Progress(std::string dsn, std::string crawl_id);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

private:
  void loop();
  void erase(); // with screen_ held

  std::string dsn_, crawl_id_;
  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_{false};
  std::mutex screen_;    // guards what is drawn
  std::size_t drawn_{0}; // lines
  std::thread thread_;   // last: starts when the rest is there
};

} // namespace holdfast::cli
