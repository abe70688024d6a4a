#pragma once
// Switches for the fault suite, read from the environment: HOLDFAST_TEST_<NAME>. A build without tests
// (HOLDFAST_TESTS=OFF) has no_test_points.cpp in place of test_points.cpp: there nothing is read, and such a variable
// is an unknown setting. Any thread.
//
// HOLDFAST_TEST_POINT=<action>:<point>[:<pass>] ends, stops or fails a process at a place, at that pass only (1: the
// first). Several are parted by commas.
//
//   kill      SIGKILL to this process
//   stop      SIGSTOP to this process; it goes on with SIGCONT
//   fail      throws Error(temporary), as if the answer of the database had been lost
//   stop-fail SIGSTOP, and once continued the same
//   hang      the calling thread sleeps for ever; the others go on

#include <string_view>

namespace holdfast::base {

void test_point(const char* name);

bool test_switch(const char* name);

// Returns true for a variable that is a switch of the tests and not a misspelt setting.
bool is_test_variable(std::string_view variable);

} // namespace holdfast::base
