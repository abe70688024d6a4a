#pragma once
// The Asio vocabulary of the project in one cheap include. Domain state lives on the main thread; a coroutine runs on
// the executor it was spawned on, and side threads only post back to it.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

namespace holdfast {

namespace asio = boost::asio;
using boost::asio::awaitable;

} // namespace holdfast
