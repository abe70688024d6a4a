#include "services/capture/extract/hands.hpp"

namespace holdfast::capture {

void move_hand(DevTools& browser, const std::string& session, const Json& hand, const Frames::Wait& wait,
               Clock::time_point until) {
  const auto send = [&](const char* method, const Json& what) {
    const auto answer = browser.ask(method, what, session);
    wait(until, [&] { return answer->there; });
  };
  const auto mouse = [&](const char* type, const Json& at, Json more = Json::object()) {
    more.update({{"type", type}, {"x", at[0]}, {"y", at[1]}, {"pointerType", "mouse"}});
    send("Input.dispatchMouseEvent", more);
  };
  if (hand.contains("point"))
    for (const auto& at : hand["point"])
      mouse("mouseMoved", at);
  if (hand.contains("wheel")) {
    const Json at = {hand["wheel"][0], hand["wheel"][1]};
    mouse("mouseWheel", at, {{"deltaX", 0}, {"deltaY", hand["wheel"][2]}});
  }
  if (hand.contains("drag")) {
    const Json button = {{"button", "left"}, {"buttons", 1}, {"clickCount", 1}};
    const auto& way = hand["drag"];
    mouse("mouseMoved", way.front());
    mouse("mousePressed", way.front(), button);
    for (const auto& at : way)
      mouse("mouseMoved", at, {{"button", "left"}, {"buttons", 1}});
    mouse("mouseReleased", way.back(), button);
  }
  if (const auto key = text_at(hand, "key"); !key.empty()) {
    const Json codes = {{"PageDown", 34}, {"PageUp", 33},     {"ArrowDown", 40},
                        {"ArrowUp", 38},  {"ArrowRight", 39}, {"ArrowLeft", 37}};
    for (const char* type : {"rawKeyDown", "keyUp"})
      send("Input.dispatchKeyEvent",
           {{"type", type}, {"key", key}, {"code", key}, {"windowsVirtualKeyCode", codes.value(key, 0)}});
  }
}

} // namespace holdfast::capture
