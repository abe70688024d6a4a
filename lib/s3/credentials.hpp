#pragma once
// The keys for an object store, from where other programs find them. Blocking; any thread.

#include "lib/base/text/time.hpp"
#include "lib/s3/location.hpp"

#include <optional>
#include <string>

namespace holdfast::s3 {

struct Credentials {
  std::string key_id, secret, session_token;
  std::optional<base::Timestamp> expires;
};

// The machine's instance metadata (IMDSv2) if the location asks for it. Else AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN); else a role (AWS_ROLE_ARN) for the token in
// AWS_WEB_IDENTITY_TOKEN_FILE; else the section AWS_PROFILE ("default") of the file AWS_SHARED_CREDENTIALS_FILE
// (~/.aws/credentials). Throws Error(configuration) if there are none, and Error(unavailable) if a server does not give
// them.
Credentials find_credentials(const Location& location);

} // namespace holdfast::s3
