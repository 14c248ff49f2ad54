// Hostile files in a process that is answering: the answer is what it is on a quiet day, whatever is opened
// beside it.

#include <gtest/gtest.h>

#include <limits>

#include "engine/engine.h"
#include "engine/model/gguf_file.h"
#include "engine/model_preview.h"
#include "engine/output_collector.h"
#include "tests/hostile/hostile_files.h"
#include "tests/support/temporary_folder.h"

namespace octavo::test {
namespace {

using namespace std::chrono_literals;

EngineOptions small_options(const std::filesystem::path& path) {
  EngineOptions options;
  options.model = path.string();
  options.threads = 1;
  options.num_kv_blocks = 40;
  options.swap_space = 0.0;
  return options;
}

GenerationRequest request_of(std::string prompt, std::uint64_t seed, std::int32_t max_tokens = 100) {
  GenerationRequest request;
  request.prompt = TextPrompt{.text = std::move(prompt)};
  request.sampling.max_tokens = max_tokens;
  request.sampling.ignore_eos = true;
  request.sampling.seed = seed;
  return request;
}

std::vector<RequestOutput> run_all(Engine& engine, std::vector<GenerationRequest> requests) {
  OutputCollector collector;
  for (const RequestId id : engine.submit_all(std::move(requests))) collector.expect(id, 1);
  while (!collector.done()) {
    for (const EngineEvent& event : engine.poll(100ms)) collector.add(event);
  }
  return collector.take();
}

RequestOutput run_one(Engine& engine, GenerationRequest request) {
  return run_all(engine, {std::move(request)}).front();
}

// One answer at a time in progress, over and over.
class EndlessChat {
 public:
  explicit EndlessChat(const std::filesystem::path& model) : engine_(*Engine::create(small_options(model))) {
    quiet_ = run_one(*engine_, request());
    begin();
  }
  const RequestOutput& quiet() const { return quiet_; }
  int num_answers() const { return num_answers_; }

  // Takes in what came since; a whole answer must be the quiet one.
  void look() {
    for (const EngineEvent& event : engine_->poll(0us)) collector_.add(event);
    if (!collector_.done()) return;
    const RequestOutput answer = collector_.take().front();
    EXPECT_FALSE(answer.error.has_value()) << answer.error->message;
    ASSERT_EQ(answer.outputs.size(), 1u);
    EXPECT_EQ(answer.outputs[0].token_ids, quiet_.outputs[0].token_ids);
    ++num_answers_;
    begin();
  }

 private:
  static GenerationRequest request() { return request_of("the other chat", 5, 200); }
  void begin() {
    collector_ = OutputCollector();
    collector_.expect(engine_->submit(request()), 1);
  }

  std::unique_ptr<Engine> engine_;
  OutputCollector collector_;
  RequestOutput quiet_;
  int num_answers_ = 0;
};

bool is_about_a_file(ErrorCode code) {
  return code == ErrorCode::kDamagedFile || code == ErrorCode::kUnsupported || code == ErrorCode::kIo ||
         code == ErrorCode::kNotFound || code == ErrorCode::kOutOfMemory;
}

TEST(HostileFilesBesideAChat, HarmNoAnswerThatIsInProgress) {
  const TemporaryFolder folder;
  EndlessChat chat(unharmed_file().make(folder.path()));
  ASSERT_EQ(chat.quiet().outputs.at(0).token_ids.size(), 200u);
  for (const HostileFile& file : all_hostile_files()) {
    SCOPED_TRACE(file.name);
    const TemporaryFolder own;
    auto engine = Engine::create(small_options(file.make(own.path())));
    chat.look();
    if (file.refused == Refused::kOpening || file.refused == Refused::kLoading) {
      ASSERT_FALSE(engine.has_value());
      EXPECT_TRUE(is_about_a_file(engine.error().code))
          << error_code_name(engine.error().code) << ": " << engine.error().message;
      EXPECT_NE(engine.error().message.find(escape_for_message(file.sentence)), std::string::npos)
          << engine.error().message;
      continue;
    }
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    GenerationRequest request = request_of("the", 1, 4);
    if (file.refused == Refused::kMessages)
      request.prompt = ChatPrompt{.messages = {{.role = Role::kUser, .content = "hello"}}};
    const RequestOutput answer = run_one(**engine, std::move(request));
    ASSERT_TRUE(answer.error.has_value());
    if (file.refused == Refused::kAnswering) {
      EXPECT_EQ(answer.error->code, ErrorCode::kInvalidLogits) << answer.error->message;
    }
    chat.look();
  }
  EXPECT_GE(chat.num_answers(), 3);
}

// ---- weights that are not finite, reached by one request only

constexpr TokenId kLetterQ = 3 + 'q';  // of the tiny vocabulary

ModelDraft with_nan_for_q(TensorType type) {
  ModelDraft draft = tiny_draft({.weight_type = type, .num_layers = 2, .own_output = true});
  std::vector<std::byte>& bytes = draft.tensor("token_embd.weight").bytes;
  const std::size_t row_bytes = bytes.size() / kTinyVocabularySize;
  const std::size_t begin = row_bytes * static_cast<std::size_t>(kLetterQ);
  if (type == TensorType::kF32) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(&bytes[begin], &nan, sizeof nan);  // one number of the row
  } else {
    const std::uint16_t nan = 0x7e00;
    std::memcpy(&bytes[begin], &nan, sizeof nan);  // the scale of its first block
  }
  return draft;
}

TEST(WeightsThatAreNotFinite, FailTheRequestsThatUseThemAndNobodyElse) {
  for (const TensorType type : {TensorType::kF32, TensorType::kQ8_0, TensorType::kQ4_0}) {
    for (const ActivationType activation :
         {ActivationType::kInt16, ActivationType::kInt8, ActivationType::kF32}) {
      for (const KvCacheType kv : {KvCacheType::kF16, KvCacheType::kF32, KvCacheType::kInt8,
                                   KvCacheType::kFp8E4m3, KvCacheType::kBf16}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(type)) + " " +
                     std::to_string(static_cast<int>(activation)) + " " +
                     std::to_string(static_cast<int>(kv)));
        const TemporaryFolder folder;
        tiny_draft({.weight_type = type, .num_layers = 2, .own_output = true}).write(folder / "good.gguf");
        with_nan_for_q(type).write(folder / "bad.gguf");
        EngineOptions options = small_options(folder / "good.gguf");
        options.activation_dtype = activation;
        options.kv_cache_dtype = kv;
        auto good = Engine::create(options);
        options.model = (folder / "bad.gguf").string();
        auto bad = Engine::create(options);
        ASSERT_TRUE(good.has_value()) << good.error().message;
        ASSERT_TRUE(bad.has_value()) << bad.error().message;
        // Blocks of requests that failed are used again by others, and must not show.
        std::size_t num_compared = 0;
        for (std::uint64_t round = 0; round < 3; ++round) {
          const auto three = [&] {
            return std::vector<GenerationRequest>{
                request_of("the first one here", 10 + round, 12),
                request_of("a q stands in the middle of it", 20 + round, 12),
                request_of("another answer that goes on", 30 + round, 12)};
          };
          const auto expected = run_all(**good, three());
          const auto found = run_all(**bad, three());
          for (const std::size_t i : {0u, 2u}) {
            const std::vector<TokenId>& wanted = expected[i].outputs.at(0).token_ids;
            if (std::find(wanted.begin(), wanted.end(), kLetterQ) != wanted.end())
              continue;  // it used the row itself
            ASSERT_FALSE(found[i].error.has_value()) << found[i].error->message;
            EXPECT_EQ(found[i].outputs.at(0).token_ids, wanted);
            ++num_compared;
          }
          ASSERT_TRUE(found[1].error.has_value());
          EXPECT_EQ(found[1].error->code, ErrorCode::kInvalidLogits) << found[1].error->message;
        }
        EXPECT_GE(num_compared, 3u);
      }
    }
  }
}

// ---- files that are cut or change

TEST(HostileFilesBesideAChat, EveryCutOfAFileIsATypedError) {
  const TemporaryFolder folder;
  const ModelDraft draft = tiny_draft();
  const std::filesystem::path path = folder / "cut.gguf";
  draft.write(path);
  const std::size_t header_size = draft.header_bytes().size();
  const auto expect_error = [&](std::uint64_t size) {
    std::filesystem::resize_file(path, size);
    const auto file = ModelPreview::open(path);
    ASSERT_FALSE(file.has_value()) << "cut at " << size;
    ASSERT_EQ(file.error().code, ErrorCode::kDamagedFile) << file.error().message;
    ASSERT_EQ(file.error().message.find('\n'), std::string::npos);
  };
  std::vector<std::uint64_t> edges;
  {
    const auto whole = model::GgufFile::open(path);
    ASSERT_TRUE(whole.has_value());
    for (const model::GgufTensor& tensor : whole->tensors()) {
      edges.push_back(tensor.byte_offset);
      edges.push_back(tensor.byte_offset + tensor.num_bytes - 1);
    }
  }
  for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) expect_error(*edge);
  for (std::size_t size = header_size; size-- > 0;) expect_error(size);
}

TEST(HostileFilesBesideAChat, AFileThatShrinksOrChangesWhileItLoadsIsAnError) {
  const TemporaryFolder folder;
  EndlessChat chat(unharmed_file().make(folder.path()));
  const auto load_while = [&](const std::function<void(const std::filesystem::path&)>& change) {
    const std::filesystem::path path = folder / "changing.gguf";
    tiny_draft({.num_layers = 4}).write(path);
    int num_calls = 0;
    auto engine = Engine::create(small_options(path), [&](double) {
      if (++num_calls == 3) change(path);
      return true;
    });
    chat.look();
    EXPECT_GE(num_calls, 3);
    return engine;
  };
  const auto expect_noticed = [](const Result<std::unique_ptr<Engine>>& engine) {
    ASSERT_FALSE(engine.has_value());
    EXPECT_EQ(engine.error().code, ErrorCode::kIo);
    EXPECT_NE(engine.error().message.find("changed while it was in use"), std::string::npos)
        << engine.error().message;
  };
  expect_noticed(load_while([](const auto& path) { std::filesystem::resize_file(path, 0); }));
  expect_noticed(load_while([](const auto& path) { std::filesystem::resize_file(path, 20'000); }));
  expect_noticed(load_while([](const auto& path) { std::ofstream(path, std::ios::app) << "more"; }));
  expect_noticed(load_while([](const auto& path) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(200'000);
    file << "other weights";
  }));
  // Another file under its name is another file: what was opened stays what it was.
  const auto replaced = load_while([&](const auto& path) {
    std::ofstream(folder / "other") << "no model at all";
    std::filesystem::rename(folder / "other", path);
  });
  EXPECT_TRUE(replaced.has_value());
}

}  // namespace
}  // namespace octavo::test
