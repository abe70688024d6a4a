#pragma once
// Places at which the fault suite ends, stops or fails a process on purpose. Nothing happens unless the environment
// names the place: HOLDFAST_TEST_POINT=<action>:<point>[:<pass>], acted upon at that pass only (1: the first). Several
// are parted by commas. Any thread.
//
//   kill      SIGKILL to this process
//   stop      SIGSTOP to this process; it goes on with SIGCONT
//   fail      throws Error(temporary), as if the answer of the database had been lost
//   stop-fail SIGSTOP, and once continued the same
//   hang      the calling thread sleeps for ever; the others go on

namespace holdfast::base {

void test_point(const char* name);

} // namespace holdfast::base
