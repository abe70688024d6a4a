#pragma once
// A WebSocket between a user's page and a browser on a worker (services/worker/session/sign_ins.hpp). Bytes are passed
// on as they come, and neither kept nor logged; to the worker they go over TLS. Runs on the connection's strand; ends
// with either side, and when the user's token is no longer valid.

#include "lib/base/async.hpp"
#include "services/serve/http_message.hpp"

#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

namespace holdfast::serve {

// Answers the request to open the WebSocket, and completes when it is closed. Calls `response.far_end` on `blocking`
// until the browser is ready.
awaitable<void> relay_view(boost::beast::tcp_stream stream,
                           boost::beast::http::request<boost::beast::http::string_body> request,
                           const Response& response, asio::thread_pool& blocking);

} // namespace holdfast::serve
