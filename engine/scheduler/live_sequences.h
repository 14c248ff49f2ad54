// The sequences of a group that are neither ended nor an idle seat, in order of output. They may change their
// status while one goes through them. (Clang 14 cannot compile libstdc++'s std::views::filter.)
#pragma once

#include <span>

#include "engine/scheduler/sequence.h"

namespace octavo::scheduler {

template <typename AnySequence>  // Sequence or const Sequence
class LiveSequences {
 public:
  class Iterator {
   public:
    Iterator(AnySequence* at, AnySequence* end) : at_(at), end_(end) { skip(); }
    AnySequence& operator*() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      skip();
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    void skip() {
      while (at_ != end_ && !at_->is_live()) ++at_;
    }

    AnySequence* at_;
    AnySequence* end_;
  };

  explicit LiveSequences(std::span<AnySequence> sequences)
      : begin_(sequences.data()), end_(sequences.data() + sequences.size()) {}
  Iterator begin() const { return {begin_, end_}; }
  Iterator end() const { return {end_, end_}; }

 private:
  AnySequence* begin_;
  AnySequence* end_;
};

}  // namespace octavo::scheduler
