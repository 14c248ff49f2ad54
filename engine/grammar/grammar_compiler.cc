#include "engine/grammar/grammar_compiler.h"

#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/grammar/grammar_text.h"
#include "engine/grammar/json_schema.h"
#include "engine/grammar/structural_tag.h"
#include "engine/grammar/structure_error.h"

namespace octavo {
namespace {

class Matcher final : public TokenMatcher {
 public:
  Matcher(xgrammar::GrammarMatcher matcher, std::int64_t num_words)
      : matcher_(std::move(matcher)), num_words_(num_words) {}

  bool fill_mask(std::span<std::uint32_t> mask) override {
    OCTAVO_CHECK(std::ssize(mask) >= num_words_, "a mask of %zu words for %lld", mask.size(),
                 static_cast<long long>(num_words_));
    std::ranges::fill(mask, 0u);
    DLTensor tensor{.data = mask.data(),
                    .device = {kDLCPU, 0},
                    .ndim = 1,
                    .dtype = xgrammar::GetBitmaskDLType(),
                    .shape = &num_words_,
                    .strides = nullptr,
                    .byte_offset = 0};
    try {
      if (matcher_.IsTerminated()) return false;
      matcher_.FillNextTokenBitmask(&tensor);
      return true;
    } catch (const std::exception&) {
      std::ranges::fill(mask, 0u);
      return false;
    }
  }

  bool accept(TokenId token_id) override {
    try {
      return !matcher_.IsTerminated() && matcher_.AcceptToken(token_id);
    } catch (const std::exception&) {
      return false;
    }
  }

  void roll_back(std::int32_t num_tokens) override { matcher_.Rollback(num_tokens); }

  std::unique_ptr<TokenMatcher> fork() const override {
    return std::make_unique<Matcher>(matcher_.Fork(), num_words_);
  }

 private:
  xgrammar::GrammarMatcher matcher_;
  std::int64_t num_words_;
};

class Grammar final : public TokenGrammar {
 public:
  explicit Grammar(xgrammar::CompiledGrammar compiled) : compiled_(std::move(compiled)) {}

  std::unique_ptr<TokenMatcher> start() const override {
    const auto vocabulary_size = static_cast<std::size_t>(compiled_.GetTokenizerInfo().GetVocabSize());
    return std::make_unique<Matcher>(xgrammar::GrammarMatcher(compiled_),
                                     static_cast<std::int64_t>(num_mask_words(vocabulary_size)));
  }

 private:
  const xgrammar::CompiledGrammar compiled_;
};

// What xgrammar is asked to compile.
struct Source {
  enum class Kind : char { kSchema = 'S', kPattern = 'R', kRules = 'G', kTag = 'T' };
  Kind kind = Kind::kRules;
  std::string text;
  std::string key() const { return std::string(1, static_cast<char>(kind)) + text; }
};

// As a literal of the compiler's EBNF.
std::string literal_of(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    constexpr std::string_view kDigits = "0123456789abcdef";
    if (c == '"' || c == '\\') {
      literal += '\\';
      literal += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      literal += "\\u00";
      literal += kDigits[byte / 16];
      literal += kDigits[byte % 16];
    } else {
      literal += c;
    }
  }
  return literal + '"';
}

Result<Source> source_of(const AnyJsonObject&) {
  return Source{Source::Kind::kSchema, R"({"type":"object"})"};
}

Result<Source> source_of(const JsonSchema& wanted) {
  OCTAVO_TRY(std::string schema, read_json_schema(wanted.schema));
  return Source{Source::Kind::kSchema, std::move(schema)};
}

Result<Source> source_of(const RegularExpression& wanted) {
  OCTAVO_TRY_VOID(check_pattern(wanted.pattern));
  return Source{Source::Kind::kPattern, wanted.pattern};
}

Result<Source> source_of(const GrammarText& wanted) {
  OCTAVO_TRY(std::string rules, read_grammar_text(wanted.text));
  return Source{Source::Kind::kRules, std::move(rules)};
}

Result<Source> source_of(const ChoiceOfTexts& wanted) {
  std::string rules = "root ::= ";
  for (const std::string& text : wanted.texts) {
    if (sanitise_utf8(text) != text || text.find('\0') != std::string::npos)
      return structure_error("a text of the choice is no valid UTF-8 without zero bytes");
    if (&text != &wanted.texts.front()) rules += " | ";
    rules += literal_of(text);
  }
  return Source{Source::Kind::kRules, std::move(rules)};
}

Result<Source> source_of(const StructuralTag& wanted) {
  OCTAVO_TRY(std::string tag, read_structural_tag(wanted));
  return Source{Source::Kind::kTag, std::move(tag)};
}

xgrammar::CompiledGrammar compile_source(const Source& source, const xgrammar::TokenizerInfo& vocabulary) {
  xgrammar::GrammarCompiler compiler(vocabulary, /*max_threads=*/1, /*cache_enabled=*/false);
  switch (source.kind) {
    case Source::Kind::kSchema:
      return compiler.CompileJSONSchema(source.text, /*any_whitespace=*/true, std::nullopt, std::nullopt,
                                        /*strict_mode=*/true, kMostBlanks);
    case Source::Kind::kPattern: return compiler.CompileRegex(source.text);
    case Source::Kind::kTag: return compiler.CompileStructuralTag(source.text);
    case Source::Kind::kRules: break;
  }
  return compiler.CompileGrammar(source.text, "root");
}

// In the child. The first byte says what follows: a compiled grammar, or the reason why there is none.
constexpr char kCompiled = 'G', kRefused = 'E';
std::string compile_to_text(const Source& source, const xgrammar::TokenizerInfo& vocabulary) {
  std::ostringstream warnings;
  std::cerr.rdbuf(warnings.rdbuf());
  try {
    const std::string text = compile_source(source, vocabulary).SerializeJSON();
    if (!warnings.str().empty()) return kRefused + warnings.str();
    return kCompiled + text;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return kRefused + std::string(error.what());
  }
}

// xgrammar's sentence without the time and place of its own source before it.
std::string reason_of(std::string_view told) {
  const std::size_t source = told.rfind(".cc:");
  if (source != std::string_view::npos) told.remove_prefix(std::min(told.find(": ", source), told.size()));
  constexpr std::string_view kWarning = ": Warning: ";
  if (told.starts_with(kWarning)) told.remove_prefix(kWarning.size());
  while (!told.empty() && (told.front() == ':' || told.front() == ' ')) told.remove_prefix(1);
  while (!told.empty() && (told.back() == '\n' || told.back() == ' ' || told.back() == '.'))
    told.remove_suffix(1);
  return told.empty() ? "it is not understood" : escape_for_message(told, 240);
}

}  // namespace

class GrammarCompiler::Vocabulary {
 public:
  explicit Vocabulary(const tokenizer::Tokenizer& tokenizer) : info_(info_of(tokenizer)) {}
  const xgrammar::TokenizerInfo& info() const { return info_; }

 private:
  // As bytes, whatever spells them in the model's file. A token without any is never drawn, nor is one that
  // is no text.
  static xgrammar::TokenizerInfo info_of(const tokenizer::Tokenizer& tokenizer) {
    std::vector<std::string> texts;
    std::vector<std::int32_t> ends;
    for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
      if (tokenizer.is_end_of_sequence(id)) ends.push_back(id);
      texts.emplace_back(tokenizer.is_control(id) ? std::string_view() : tokenizer.token_bytes(id));
    }
    const auto size = static_cast<int>(texts.size());
    return xgrammar::TokenizerInfo(texts, xgrammar::VocabType::RAW, size, ends);
  }

  xgrammar::TokenizerInfo info_;
};

GrammarCompiler::GrammarCompiler(const tokenizer::Tokenizer& tokenizer, GrammarLimits limits)
    : tokenizer_(tokenizer), limits_(limits) {}
GrammarCompiler::~GrammarCompiler() = default;

std::int64_t GrammarCompiler::num_compiled() const {
  std::lock_guard lock(mutex_);
  return num_compiled_;
}

// Others that need it wait.
std::shared_ptr<const GrammarCompiler::Vocabulary> GrammarCompiler::vocabulary() {
  std::lock_guard lock(mutex_);
  if (!vocabulary_) vocabulary_ = std::make_shared<const Vocabulary>(tokenizer_);
  return vocabulary_;
}

void GrammarCompiler::keep(Kept compiled) {
  std::lock_guard lock(mutex_);
  kept_bytes_ += compiled.bytes;
  kept_.push_front(std::move(compiled));
  while (kept_.size() > 1 && (kept_bytes_ > limits_.most_kept_bytes || kept_.size() > limits_.most_kept)) {
    kept_bytes_ -= kept_.back().bytes;
    kept_.pop_back();
  }
}

Result<std::shared_ptr<const TokenGrammar>> GrammarCompiler::compile(const StructuredOutput& wanted,
                                                                     std::stop_token stop) {
  OCTAVO_TRY_VOID(validate(wanted));
  OCTAVO_TRY(const Source source, std::visit([](const auto& one) { return source_of(one); }, wanted));
  const std::string key = source.key();
  {
    std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(kept_, key, &Kept::key);
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return kept_.front().compiled;
    }
    ++num_compiled_;
  }
  const std::shared_ptr<const Vocabulary> vocabulary = this->vocabulary();
  const auto work = [&] { return compile_to_text(source, vocabulary->info()); };
  WorkResult result = run_confined(work, limits_.work, stop);
  const std::string name(structured_output_name(wanted));
  const auto refuse = [&](const std::string& why) {
    Error error = structure_error(name + " cannot be compiled: " + why);
    keep({.key = key, .compiled = error, .bytes = key.size()});
    return error;
  };
  switch (result.end) {
    case WorkEnd::kStopped:
      return Error{.code = ErrorCode::kCancelled,
                   .message = "the request was cancelled before its grammar was compiled"};
    case WorkEnd::kTimeLimit:
      return refuse("it takes more than " + std::to_string(limits_.work.processor_time.count()) +
                    " seconds; give a simpler one, with smaller counts");
    case WorkEnd::kMemoryLimit:
      return refuse("it takes too much memory; give a simpler one, with smaller counts");
    case WorkEnd::kCrashed: return refuse("the compiler fails on it; give a simpler one");
    case WorkEnd::kDone: break;
  }
  const bool is_compiled = result.text.starts_with(kCompiled);
  const std::string text = result.text.empty() ? std::string() : result.text.substr(1);
  result.text.clear();
  if (!is_compiled) return refuse(reason_of(text));
  try {
    auto read = xgrammar::CompiledGrammar::DeserializeJSON(text, vocabulary->info());
    auto* const compiled = std::get_if<xgrammar::CompiledGrammar>(&read);
    if (compiled == nullptr) return refuse("the compiler's result cannot be read");
    const std::size_t bytes = compiled->MemorySizeBytes();
    if (bytes > limits_.most_grammar_bytes) return refuse("it is too large; give a simpler one");
    std::shared_ptr<const TokenGrammar> grammar = std::make_shared<Grammar>(std::move(*compiled));
    keep({.key = key, .compiled = grammar, .bytes = bytes + key.size()});
    return grammar;
  } catch (const std::exception&) {
    return refuse("the compiler's result cannot be read");
  }
}

}  // namespace octavo
