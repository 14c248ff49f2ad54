// A visitor of a std::variant made from lambdas, one for each alternative:
//   std::visit(Overloaded{[](const A& a) { ... }, [](const B& b) { ... }}, variant);
#pragma once

namespace octavo {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace octavo
