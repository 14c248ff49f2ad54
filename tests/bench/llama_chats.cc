// Many chats in one llama.cpp context of a fixed number of cells (its word for the keys and values of one
// token), as tests/bench/concurrent_chats compares them with Octavo's pool. Built by that script against a
// folder of llama.cpp.
//
//   llama_chats --model FILE --requests-file FILE --chats 6 --max-tokens 160 --cells 2048 [--mode
//   unified|split]
//               [--slots 6] [--share] [--when-full latest|all] [--threads 2]
//
// The requests file is `octavo generate`'s: JSON lines with "prompt_token_ids". Each chat is a sequence that
// generates max-tokens greedy tokens, whatever they are. All start together, or as many as there are slots,
// and decode in common batches. One line of JSON tells what became of them; its seconds count from the first
// batch, without loading.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <llama.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::json;

struct Options {
  std::string model, requests_file;
  std::int32_t chats = 1;
  std::int32_t max_tokens = 16;
  std::int32_t cells = 2048;
  std::int32_t slots = 0;  // 0: one for each chat
  std::int32_t threads = 2;
  bool unified = true;
  bool share = false;
  bool end_all_when_full = false;
};

// llama.cpp gives a sequence cells in such portions and rounds up; here the number is rounded down, to stay
// within --cells.
constexpr std::int32_t kCellPortion = 256;

struct Chat {
  std::vector<llama_token> tokens;  // prompt, then output
  std::size_t num_prompt_tokens = 0;
  std::size_t num_computed_tokens = 0;
  llama_seq_id sequence = 0;

  std::size_t num_output_tokens() const { return tokens.size() - num_prompt_tokens; }
  bool is_prefilling() const { return num_computed_tokens + 1 < tokens.size(); }
};

std::size_t common_start(const Chat& a, const Chat& b) {
  const auto end = std::mismatch(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end());
  return static_cast<std::size_t>(end.first - a.tokens.begin());
}

llama_token likeliest(const float* logits, std::int32_t vocabulary_size) {
  return static_cast<llama_token>(std::max_element(logits, logits + vocabulary_size) - logits);
}

class ChatRunner {
 public:
  ChatRunner(llama_context* context, std::int32_t vocabulary_size, std::vector<Chat> chats,
             const Options& options)
      : context_(context),
        memory_(llama_get_memory(context)),
        vocabulary_size_(vocabulary_size),
        options_(options),
        chats_(std::move(chats)),
        num_batch_tokens_(static_cast<std::int32_t>(llama_n_batch(context))),
        batch_(llama_batch_init(num_batch_tokens_, 0, 1)),
        batch_limit_(num_batch_tokens_) {
    for (llama_seq_id sequence = options.slots; sequence-- > 0;) free_sequences_.push_back(sequence);
  }
  ~ChatRunner() { llama_batch_free(batch_); }
  ChatRunner(const ChatRunner&) = delete;
  ChatRunner& operator=(const ChatRunner&) = delete;

  // false: llama_decode failed for another reason than want of cells
  bool run() {
    const auto begin = std::chrono::steady_clock::now();
    start_waiting();
    while (!running_.empty()) {
      fill_batch();
      const std::int32_t status = llama_decode(context_, batch_);
      if (status == 0) {
        take_tokens();
        batch_limit_ = num_batch_tokens_;
      } else if (status == 1) {
        give_way();
      } else {
        std::fprintf(stderr, "llama_chats: llama_decode returned %d\n", status);
        return false;
      }
      start_waiting();
    }
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return true;
  }

  Json report() const {
    Json outputs = Json::array();
    std::size_t num_output_tokens = 0, num_finished = 0;
    for (const Chat& chat : chats_) {
      const bool finished = is_finished(chat);
      num_finished += finished ? 1 : 0;
      num_output_tokens += chat.num_output_tokens();
      const auto first_output = chat.tokens.begin() + static_cast<std::ptrdiff_t>(chat.num_prompt_tokens);
      outputs.push_back(finished ? Json(std::vector<llama_token>(first_output, chat.tokens.end())) : Json());
    }
    return {{"chats", chats_.size()},
            {"finished", num_finished},
            {"failed_for_cells", num_failed_},
            {"output_tokens", num_output_tokens},
            {"peak_resident", peak_resident_},
            {"cells", llama_n_ctx(context_)},
            {"cells_of_a_sequence", llama_n_ctx_seq(context_)},
            {"seconds", seconds_},
            {"output_token_ids", outputs}};
  }

 private:
  bool is_finished(const Chat& chat) const {
    return chat.num_output_tokens() == static_cast<std::size_t>(options_.max_tokens);
  }

  // First come, first served, while there is a free sequence.
  void start_waiting() {
    while (next_chat_ < chats_.size() && !free_sequences_.empty()) {
      Chat& chat = chats_[next_chat_];
      if (options_.share && !copy_start(chat, free_sequences_.back())) return;
      chat.sequence = free_sequences_.back();
      free_sequences_.pop_back();
      running_.push_back(&chat);
      ++next_chat_;
    }
  }

  // Gives `sequence` the cells of the longest start that a running chat has in common with `chat`; its last
  // prompt token is always computed, for the logits. false: that start is still being computed.
  bool copy_start(Chat& chat, llama_seq_id sequence) {
    const Chat* donor = nullptr;
    std::size_t longest = 0;
    for (const Chat* running : running_) {
      const std::size_t length = std::min(common_start(*running, chat), chat.num_prompt_tokens - 1);
      if (length > longest) {
        longest = length;
        donor = running;
      }
    }
    if (donor == nullptr) return true;
    if (donor->num_computed_tokens < longest) return false;
    llama_memory_seq_cp(memory_, donor->sequence, sequence, 0, static_cast<llama_pos>(longest));
    chat.num_computed_tokens = longest;
    return true;
  }

  // Decoding chats first, then prompts, each in the order of sequences, as llama.cpp's server does.
  void fill_batch() {
    std::sort(running_.begin(), running_.end(),
              [](const Chat* a, const Chat* b) { return a->sequence < b->sequence; });
    batch_.n_tokens = 0;
    rows_.clear();
    for (const bool prefilling : {false, true}) {
      for (Chat* const chat : running_) {
        if (chat->is_prefilling() == prefilling) add_rows(*chat);
      }
    }
  }

  void add_rows(Chat& chat) {
    for (std::size_t i = chat.num_computed_tokens; i < chat.tokens.size() && batch_.n_tokens < batch_limit_;
         ++i) {
      const std::int32_t row = batch_.n_tokens++;
      batch_.token[row] = chat.tokens[i];
      batch_.pos[row] = static_cast<llama_pos>(i);
      batch_.n_seq_id[row] = 1;
      batch_.seq_id[row][0] = chat.sequence;
      batch_.logits[row] = i + 1 == chat.tokens.size() ? 1 : 0;
      rows_.push_back(&chat);
    }
  }

  void take_tokens() {
    for (std::int32_t row = 0; row < batch_.n_tokens; ++row) {
      Chat& chat = *rows_[static_cast<std::size_t>(row)];
      ++chat.num_computed_tokens;
      if (batch_.logits[row] == 0) continue;
      chat.tokens.push_back(likeliest(llama_get_logits_ith(context_, row), vocabulary_size_));
    }
    const auto holds_cells = [](const Chat* chat) { return chat->num_computed_tokens > 0; };
    peak_resident_ = std::max(peak_resident_, std::count_if(running_.begin(), running_.end(), holds_cells));
    const std::vector<Chat*> running = running_;
    for (Chat* const chat : running) {
      if (is_finished(*chat)) end(*chat);
    }
  }

  // No cells for the batch: try with less, as the server does; when not even one token fits, a chat or all of
  // them end.
  void give_way() {
    if (batch_.n_tokens > 1) {
      batch_limit_ = batch_.n_tokens / 2;
      return;
    }
    batch_limit_ = num_batch_tokens_;
    std::vector<Chat*> ending = running_;
    if (!options_.end_all_when_full) {
      // Only a sequence's own cells help it when they are split; else the chat that came last makes room.
      ending = {options_.unified ? *std::max_element(running_.begin(), running_.end()) : rows_.front()};
    }
    for (Chat* const chat : ending) {
      ++num_failed_;
      end(*chat);
    }
  }

  void end(Chat& chat) {
    llama_memory_seq_rm(memory_, chat.sequence, -1, -1);
    free_sequences_.push_back(chat.sequence);
    running_.erase(std::find(running_.begin(), running_.end(), &chat));
  }

  llama_context* context_;
  llama_memory_t memory_;
  std::int32_t vocabulary_size_;
  Options options_;
  std::vector<Chat> chats_;  // by arrival; never resized
  std::size_t next_chat_ = 0;
  std::vector<Chat*> running_;
  std::vector<llama_seq_id> free_sequences_;
  std::int32_t num_batch_tokens_;  // llama.cpp's default: 2,048, or what the cells allow
  llama_batch batch_;
  std::vector<Chat*> rows_;  // of the batch: whose token it is
  std::int32_t batch_limit_;
  std::int32_t num_failed_ = 0;
  std::ptrdiff_t peak_resident_ = 0;
  double seconds_ = 0.0;
};

// Throws what nlohmann throws when the file is not as promised.
std::vector<Chat> read_chats(const Options& options) {
  std::ifstream file(options.requests_file);
  std::vector<Chat> chats;
  std::string line;
  while (static_cast<std::int32_t>(chats.size()) < options.chats && std::getline(file, line)) {
    Chat chat;
    chat.tokens = Json::parse(line).at("prompt_token_ids").get<std::vector<llama_token>>();
    chat.num_prompt_tokens = chat.tokens.size();
    chats.push_back(std::move(chat));
  }
  return chats;
}

// 0: so many slots cannot have a portion each
std::int32_t context_cells(const Options& options) {
  if (options.unified) return options.cells / kCellPortion * kCellPortion;
  return options.cells / options.slots / kCellPortion * kCellPortion * options.slots;
}

llama_context* make_context(llama_model* model, const Options& options) {
  // By default keys and values are f16, and attention is flash attention where that works.
  llama_context_params parameters = llama_context_default_params();
  parameters.n_ctx = static_cast<std::uint32_t>(context_cells(options));
  parameters.n_seq_max = static_cast<std::uint32_t>(options.slots);
  parameters.kv_unified = options.unified;
  parameters.n_threads = parameters.n_threads_batch = options.threads;
  return llama_init_from_model(model, parameters);
}

int run(const Options& options) {
  std::vector<Chat> chats = read_chats(options);
  if (static_cast<std::int32_t>(chats.size()) < options.chats) {
    std::fprintf(stderr, "llama_chats: %s holds %zu requests, %d are asked for\n",
                 options.requests_file.c_str(), chats.size(), options.chats);
    return 2;
  }
  if (context_cells(options) == 0) {
    std::cout << Json{{"chats", chats.size()},
                      {"finished", 0},
                      {"failed_for_cells", chats.size()},
                      {"peak_resident", 0},
                      {"cells", 0}}
              << '\n';
    return 0;
  }
  llama_backend_init();
  llama_model* const model = llama_model_load_from_file(options.model.c_str(), llama_model_default_params());
  llama_context* const context = model == nullptr ? nullptr : make_context(model, options);
  if (context == nullptr || static_cast<std::int32_t>(llama_n_ctx(context)) > options.cells) {
    std::fprintf(stderr, "llama_chats: llama.cpp made no context of at most %d cells for %s\n", options.cells,
                 options.model.c_str());
    return 1;
  }
  bool ran = false;
  {
    ChatRunner runner(context, llama_vocab_n_tokens(llama_model_get_vocab(model)), std::move(chats), options);
    ran = runner.run();
    if (ran) {
      Json report = runner.report();
      report["llama_version"] = llama_version();
      std::cout << report << '\n';
    }
  }
  llama_free(context);
  llama_model_free(model);
  return ran ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bool verbose = false;
  std::string mode = "unified", when_full = "latest";
  CLI::App program("Many chats in one llama.cpp context of a fixed number of cells");
  program.add_option("--model", options.model, "GGUF file")->required();
  program.add_option("--requests-file", options.requests_file, "JSON lines with prompt_token_ids")
      ->required();
  program.add_option("--chats", options.chats, "How many of the requests")->check(CLI::Range(1, 256));
  program.add_option("--max-tokens", options.max_tokens, "Greedy tokens of each chat")
      ->check(CLI::PositiveNumber);
  program.add_option("--cells", options.cells, "Tokens whose keys and values the context holds")
      ->check(CLI::PositiveNumber);
  program.add_option("--mode", mode, "Cells for all together, or the same number for each slot")
      ->check(CLI::IsMember({"unified", "split"}));
  program.add_option("--slots", options.slots, "Chats at once; the others wait (default: all)")
      ->check(CLI::Range(1, 256));
  program.add_flag("--share", options.share,
                   "Copy a common start from a running chat (llama_memory_seq_cp; unified only)");
  program
      .add_option("--when-full", when_full,
                  "Which chats end when no cell is left: the latest, or all as in the server")
      ->check(CLI::IsMember({"latest", "all"}));
  program.add_option("--threads", options.threads, "CPU threads")->check(CLI::PositiveNumber);
  program.add_flag("--verbose", verbose, "llama.cpp's own log on standard error");
  CLI11_PARSE(program, argc, argv);
  options.unified = mode == "unified";
  options.end_all_when_full = when_full == "all";
  if (options.slots == 0) options.slots = options.chats;
  if (options.share && !options.unified) {
    std::fprintf(stderr,
                 "llama_chats: --share needs --mode unified: split sequences cannot hold the same cell\n");
    return 2;
  }
  if (!verbose) llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  try {
    return run(options);
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "llama_chats: %s: %s\n", options.requests_file.c_str(), exception.what());
    return 2;
  }
}
