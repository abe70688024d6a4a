#pragma once
// Archived documents that open no connection. A content security policy is not enough: a browser connects to the host
// of a <link rel=preconnect>, or looks up its name, regardless of the policy, and to that of a frame before it checks
// the policy. Pure; any thread.

#include <string>
#include <string_view>

namespace holdfast::serve {

// The document, of the same length, with all links but style sheets and icons, and all frames but those of near files,
// made elements without a meaning, and without the attributes that hold a further document. HTML or XML in an encoding
// that has ASCII in it.
std::string quiet_markup(std::string text);
// Returns true if it may be in another encoding, in which quiet_markup() would not see the tags that a browser sees.
bool hides_tags(std::string_view text);

} // namespace holdfast::serve
