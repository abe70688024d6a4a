#pragma once
// Deadlines for answers of the server. libpq waits for them without one, and neither statement_timeout (the server may
// never have received the statement) nor TCP (a firewall or proxy between us may go on acknowledging) ends that wait.
// One thread for the whole process shuts the socket of a session that is overdue, or whose server has been superseded;
// libpq then reports the session lost. Private to lib/pg. Any thread.

#include "lib/pg/hosts.hpp"

#include <chrono>
#include <cstdint>

namespace holdfast::pg {

// In force from construction to destruction; the socket must stay open meanwhile, and `timeline` live. Zero: no
// deadline.
class AnswerDeadline {
public:
  AnswerDeadline(int socket, std::chrono::milliseconds timeout, const SessionTimeline* timeline = nullptr);
  ~AnswerDeadline();
  AnswerDeadline(const AnswerDeadline&) = delete;
  AnswerDeadline& operator=(const AnswerDeadline&) = delete;

private:
  std::uint64_t id_{0};
};

} // namespace holdfast::pg
