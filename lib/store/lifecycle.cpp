#include "lib/store/lifecycle.hpp"

namespace holdfast::store {

std::string mermaid(std::string_view lifecycle) {
  std::string text = "stateDiagram-v2\n  direction LR\n";
  std::string_view initial;
  for (const Edge& edge : kEdges)
    if (edge.lifecycle == lifecycle && initial.empty()) initial = edge.from;
  if (initial.empty()) return {};
  text.append("  [*] --> ").append(initial).append("\n");
  for (const Edge& edge : kEdges) {
    if (edge.lifecycle != lifecycle) continue;
    text.append("  ").append(edge.from).append(" --> ").append(edge.to).append(" : ").append(edge.event).append("\n");
  }
  for (std::size_t i = 0; i < kEdges.size(); ++i) {
    if (kEdges[i].lifecycle != lifecycle || leaves(lifecycle, kEdges[i].to)) continue;
    bool printed = false;
    for (std::size_t j = 0; j < i; ++j)
      printed |= kEdges[j].lifecycle == lifecycle && kEdges[j].to == kEdges[i].to;
    if (!printed) text.append("  ").append(kEdges[i].to).append(" --> [*]\n");
  }
  return text;
}

} // namespace holdfast::store
