// Compiles what structured output asks for into a grammar over a model's vocabulary, by xgrammar, and keeps
// what it compiled.
//
// Nothing that it is given is trusted. Sizes, nesting and counts are checked first (json_schema.h,
// grammar_text.h); the rest runs in a child process with limits (confined_work.h), which hands the compiled
// grammar over as text: one that would take all time or memory, or crash the compiler, is refused, and this
// process never knew. Whatever the compiler would pass over with a warning is refused, too.
//
// Thread: any; compile() waits for the child.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "engine/api/structured_output.h"
#include "engine/base/result.h"
#include "engine/grammar/confined_work.h"
#include "engine/grammar/token_grammar.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo {

struct GrammarLimits {
  WorkLimits work = {};
  std::size_t most_grammar_bytes = std::size_t{128} << 20u;  // of one that is compiled
  std::size_t most_kept_bytes = std::size_t{256} << 20u;     // of all that are kept; those in use live on
  std::size_t most_kept = 256;                               // those that were refused among them
};

class GrammarCompiler {
 public:
  // The tokenizer outlives the compiler and its grammars.
  explicit GrammarCompiler(const tokenizer::Tokenizer& tokenizer, GrammarLimits limits = {});
  ~GrammarCompiler();

  // One sentence for what is refused, with subject "structured_output". kCancelled soon after `stop`.
  // The same that was asked before, and is kept, is the same object.
  Result<std::shared_ptr<const TokenGrammar>> compile(const StructuredOutput& wanted,
                                                      std::stop_token stop = {});

  std::int64_t num_compiled() const;  // in child processes, so far

 private:
  class Vocabulary;  // as xgrammar has it
  using Compiled = Result<std::shared_ptr<const TokenGrammar>>;
  struct Kept {
    std::string key;
    Compiled compiled;
    std::size_t bytes = 0;
  };

  std::shared_ptr<const Vocabulary> vocabulary();
  void keep(Kept compiled);

  const tokenizer::Tokenizer& tokenizer_;
  const GrammarLimits limits_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Vocabulary> vocabulary_;  // guarded by mutex_; made when it is first needed
  std::list<Kept> kept_;                          // guarded by mutex_; the last used comes first
  std::size_t kept_bytes_ = 0;                    // guarded by mutex_
  std::int64_t num_compiled_ = 0;                 // guarded by mutex_
};

}  // namespace octavo
