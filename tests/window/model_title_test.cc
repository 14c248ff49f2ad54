#include "app/window/models/model_title.h"

#include <gtest/gtest.h>

namespace octavo::app {
namespace {

TEST(ModelTitle, IsTheFilesNameAsWords) {
  const auto title = [](const char* path) { return model_title(path, "Ep2"); };
  EXPECT_EQ(title("/models/SmolLM2-135M-Instruct.Q4_1.gguf"), "SmolLM2 135M Instruct");
  EXPECT_EQ(title("Qwen2.5-1.5B-Instruct-Q4_K_M.gguf"), "Qwen2.5 1.5B Instruct");
  EXPECT_EQ(title("Llama-3.2-1B-Instruct-IQ2_XXS.gguf"), "Llama 3.2 1B Instruct");
  EXPECT_EQ(title("tiny_llama-bf16.gguf"), "tiny llama");
  EXPECT_EQ(title("Mistral-7B-v0.3.fp16-00001-of-00003.gguf"), "Mistral 7B v0.3");
  EXPECT_EQ(title("q8-theory.gguf"), "q8 theory") << "a name that begins like a type is a name";
  EXPECT_EQ(title("a\xff.gguf"), "a\xef\xbf\xbd");
}

TEST(ModelTitle, IsTheNameInsideWhereTheFilesSaysNothing) {
  const auto title = [](const char* path) { return model_title(path, "A model"); };
  for (const char* path :
       {"model.gguf", "ggml-model-q4_0.gguf", "/blobs/sha256-0123", "0123456789abcdef01.gguf", "7.gguf"})
    EXPECT_EQ(title(path), "A model") << path;
  EXPECT_EQ(model_title("model.gguf", ""), "model");
}

}  // namespace
}  // namespace octavo::app
