#pragma once
// Recognition of hooks that connect to a server on their machine. Without a network of their own (levels user and none
// of the sandbox), hooks reach every address of the machine, and with it what a server shows to guests. No state; any
// thread; some milliseconds.

namespace holdfast::process {

// Returns true if a process below a shim holds the other end of an accepted TCP connection, or may hold it: it runs as
// the owner of that end, and its open files cannot be read. False for an end on another machine, or in another network
// namespace.
bool comes_from_hook(int socket);

} // namespace holdfast::process
