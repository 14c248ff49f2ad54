// Failures as values. `Result<T>` carries either a T or an Error; nothing in Octavo throws across a folder or
// a thread, and adapters catch what third-party code throws.
//
// An Error's message is one sentence for a person: what is wrong, where, and what to do about it, e.g.
//   "model.gguf: tensor blk.3.attn_q has type F64; supported are F32, F16, ... : choose another
//   quantisation"
// Text that came from a file or a user must pass through `escape_for_message`
// (text.h) before it is put in one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace octavo {

enum class ErrorCode {
  kInvalidArgument,  // an option or a request says something impossible
  kNotFound,         // a file, a model, a name that does not exist
  kIo,               // the operating system refused to read or write
  kDamagedFile,      // a file contradicts its own format
  kUnsupported,      // valid, but nothing here can do it
  kOutOfMemory,      // would not fit; the message holds both numbers
  kTooLong,          // a request that can never fit the model or the pool
  kInvalidLogits,    // the model produced numbers that are not finite
  kDevice,           // a backend failed
  kDeviceLost,  // a graphics processor failed while it ran: nothing runs on it until the program starts again
  kCancelled,   // the user asked for it
  kInternal,    // a broken promise of our own
};

// The name that programs outside see ("invalid_argument", "too_long", ...).
std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;       // one sentence, no trailing newline
  std::string subject = {};  // the option, metadata key or tensor it is about; may be empty
  std::optional<std::uint64_t> byte_offset = {};  // where in the file, when there is a where
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: has_value()
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !has_value()
  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  // REQUIRES: !has_value()
  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace octavo

#define OCTAVO_CONCAT_INNER(a, b) a##b
#define OCTAVO_CONCAT(a, b) OCTAVO_CONCAT_INNER(a, b)
#define OCTAVO_TRY_INNER(temporary, declaration, expression)       \
  auto temporary = (expression);                                   \
  if (!temporary.has_value()) return std::move(temporary).error(); \
  declaration = *std::move(temporary)

// OCTAVO_TRY(auto file, WeightFile::open(path));   returns the error from the enclosing function, else binds
// the value.
#define OCTAVO_TRY(declaration, expression) \
  OCTAVO_TRY_INNER(OCTAVO_CONCAT(octavo_try_, __LINE__), declaration, expression)

// OCTAVO_TRY_VOID(validate(options));   the same for Result<void>.
#define OCTAVO_TRY_VOID(expression)                                                  \
  do {                                                                               \
    auto octavo_try_result = (expression);                                           \
    if (!octavo_try_result.has_value()) return std::move(octavo_try_result).error(); \
  } while (false)
