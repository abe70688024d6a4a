#pragma once
// Writes answers to connections: a body, a file or ranges of it, server-sent events. Used on the strand of the
// connection.

#include "services/serve/http_message.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <chrono>

namespace holdfast::serve {

using Message = boost::beast::http::request<boost::beast::http::string_body>;

// Returns whether all was sent, and the connection may be used again. timeout: of each piece.
boost::asio::awaitable<bool> send_response(boost::beast::tcp_stream& stream, const Message& message, Response& response,
                                           std::chrono::milliseconds timeout);

} // namespace holdfast::serve
