#pragma once
// Selectors of elements, a part of CSS that needs no tree: tags, #id, .class and [role=name], one in another ("#shop
// .price") or directly in it ("ul > li"), several with commas. Pure; any thread.

#include "lib/formats/html.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::formats {

struct Element {
  std::string name, id, role;
  std::vector<std::string> classes;
};
// Returns the element that a start tag opens.
Element element_of(const Token& token);

class Selector {
public:
  // Throws Error(usage) for what is no such selector.
  explicit Selector(std::string_view text);

  // Returns true if it selects the last of these elements, each of which is in the one before it.
  bool selects(const std::vector<Element>& open) const;

private:
  struct Part {
    Element wanted;
    bool directly{false}; // in the element of the part before it
    bool fits(const Element& element) const;
  };
  std::vector<std::vector<Part>> choices_;
};

} // namespace holdfast::formats
