#include "app/commands/engine_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/input.h"
#include "app/commands/wanted_model.h"
#include "engine/api/option_names.h"

namespace octavo::app {
namespace {

// --name A|B|C for an enumeration. The help text lists the names.
template <class Enumeration>
void add_choice(CLI::App& command, const std::string& name, Enumeration& value,
                NamedValues<Enumeration> choices, const std::string& help) {
  std::string names;
  for (const auto& [text, unused] : choices) names += std::string(names.empty() ? "" : "|") + text;
  command
      .add_option_function<std::string>(
          name,
          [&value, known = std::vector(choices), name, names](const std::string& text) {
            for (const auto& [choice, meaning] : known) {
              if (choice == text) {
                value = meaning;
                return;
              }
            }
            throw CLI::ValidationError(name, "'" + text + "' is not one of " + names);
          },
          help)
      ->type_name(names);
}

// "ID=BIAS", ID below 2^31, BIAS any number.
std::pair<TokenId, double> parse_logit_bias(const std::string& text) {
  const std::size_t equals = text.find_first_of("=:");
  TokenId token_id = 0;
  double bias = 0.0;
  const char* const end = text.data() + text.size();
  bool good = equals != std::string::npos;
  if (good) {
    const auto id = std::from_chars(text.data(), text.data() + equals, token_id);
    const auto number = std::from_chars(text.data() + equals + 1, end, bias);
    good = id.ec == std::errc() && id.ptr == text.data() + equals && number.ec == std::errc() &&
           number.ptr == end;
  }
  if (!good) throw CLI::ValidationError("--logit-bias", "'" + text + "' is not of the form TOKEN_ID=BIAS");
  return {token_id, bias};
}

}  // namespace

void add_computing_flags(CLI::App& command, EngineOptions& options) {
  add_choice<Device>(command, "--device", options.device, kDeviceNames,
                     "Device to run on; auto: a GPU if one works, otherwise the CPU");
  command.add_option("--threads", options.threads, "CPU workers (default: physical cores)");
  add_choice<WeightType>(command, "--dtype", options.dtype, kWeightTypeNames,
                         "Data type of unquantised weights in memory; auto: as in the file");
  add_choice<WeightQuantisation>(command, "--quantization", options.quantisation, kWeightQuantisationNames,
                                 "What unquantised weights become when they are loaded");
  add_choice<ActivationType>(command, "--activation-dtype", options.activation_dtype,
                             {{"auto", ActivationType::kAuto},
                              {"f32", ActivationType::kF32},
                              {"int16", ActivationType::kInt16},
                              {"int8", ActivationType::kInt8}},
                             "Data type of activations for quantised weights; auto: int16, as accurate as "
                             "f32 and nearly as fast as int8");
  add_choice<KvCacheType>(command, "--kv-cache-dtype", options.kv_cache_dtype, kKvCacheTypeNames,
                          "Data type of the KV cache; auto: f16");
}

void add_engine_flags(CLI::App& command, EngineFlags& flags) {
  EngineOptions& options = flags.options;
  command.add_option(
      "--model", options.model,
      "Model file, or org/name[:file] in the models folder or the Hugging Face cache "
      "(default: SmolLM2-135M-Instruct); for generate and chat also http://ADDRESS/v1#NAME on a server");
  command.add_flag("--download", flags.downloads,
                   "Download the model from the Hugging Face hub when it is not here");
  add_sha256_option(command, flags.sha256);
  add_computing_flags(command, options);
  command.add_option("--block-size", options.block_size, "Tokens per KV block")->capture_default_str();
  command.add_option("--num-kv-blocks", options.num_kv_blocks, "Blocks in the device pool");
  command.add_option("--kv-cache-memory", options.kv_cache_memory, "Size of the device pool in MiB");
  command.add_option("--gpu-memory-utilization", options.gpu_memory_utilization,
                     "Fraction of the GPU's memory to use");
  command.add_option("--swap-space", options.swap_space, "Size of the host pool (swap space) in GiB");
  command.add_option("--num-states", options.num_states,
                     "States of a model with recurrent layers, one for each running sequence and checkpoint");
  command.add_option(
      "--num-window-blocks", options.num_window_blocks,
      "Blocks for layers with a sliding window, whose tokens leave them; 0: no pool of their own");
  command.add_option("--max-model-len", options.max_model_len,
                     "Maximum tokens per request, prompt and output together (default: the model's)");
  command.add_option("--max-num-seqs", options.max_num_seqs, "Maximum sequences per step")
      ->capture_default_str();
  command.add_option("--max-num-batched-tokens", options.max_num_batched_tokens,
                     "Maximum tokens per step (default: 512 on a CPU, 2048 on a GPU)");
  command
      .add_option("--target-step-ms", options.target_step_ms,
                  "Split long prompts so that a step takes about this long while others generate; 0: never")
      ->capture_default_str();
  command.add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", options.enable_prefix_caching,
                   "Reuse the KV blocks of shared prefixes (default: on)");
  add_choice<PreemptionPolicy>(
      command, "--preemption-mode", options.preemption_mode, kPreemptionPolicyNames,
      "What happens to a preempted request's blocks; auto: what was measured to be cheaper, until then "
      "recompute for one sequence and swap for several; cost: the same, but it tries a swap to measure it");
  add_choice<AdmissionAfterPreemption>(
      command, "--admit-after-preemption", options.admit_after_preemption,
      {{"resumed", AdmissionAfterPreemption::kResumed}, {"completed", AdmissionAfterPreemption::kCompleted}},
      "When to admit new requests after a preemption: once the preempted ones run again, or once they have "
      "finished");
  add_choice<AdmissionReserve>(
      command, "--admission-reserve", options.admission_reserve,
      {{"look-ahead", AdmissionReserve::kLookAhead},
       {"block-per-sequence", AdmissionReserve::kBlockPerSequence},
       {"one-percent", AdmissionReserve::kOnePercent}},
      "Blocks to leave free when a request is admitted; look-ahead: what running ones need in the next "
      "steps; block-per-sequence: 1 % of the pool and one per running sequence; one-percent: 1 % of the "
      "pool");
  add_choice<MemoryManager>(
      command, "--memory-manager", options.memory_manager,
      {{"paged", MemoryManager::kPaged},
       {"orca-max", MemoryManager::kOrcaMax},
       {"orca-pow2", MemoryManager::kOrcaPow2},
       {"orca-oracle", MemoryManager::kOrcaOracle}},
      "For comparison: reserve one contiguous run of blocks per output instead of paging");
  add_choice<BatchingPolicy>(command, "--batching-policy", options.batching_policy,
                             {{"iteration", BatchingPolicy::kIteration},
                              {"static", BatchingPolicy::kStatic},
                              {"one-at-a-time", BatchingPolicy::kOneAtATime}},
                             "For comparison: when waiting requests may join the batch");
  add_choice<Speculation>(
      command, "--speculative", options.speculative,
      {{"off", Speculation::kOff}, {"ngram", Speculation::kNgram}, {"mtp", Speculation::kMtp}},
      "Speculative decoding: how tokens are drafted; mtp: by the model's own layer for it");
  command.add_option("--num-speculative-tokens", options.num_speculative_tokens,
                     "Tokens to draft at a time, at most (default: 3 with mtp, else as many as are cheap)");
  command.add_flag("--deterministic,!--no-deterministic", options.deterministic,
                   "Make results independent of the batch (always the case on the CPU)");
  add_choice<bool>(
      command, "--cuda-graphs", options.cuda_graphs, {{"on", true}, {"off", false}},
      "On a GPU: capture decode steps as CUDA graphs while the model loads; results are the same");
  command
      .add_option("--tensor-parallel-size", options.tensor_parallel_size,
                  "Number of GPUs that share the model")
      ->capture_default_str();
  command.add_option("--record", options.record, "Record block events to this file");
  command.add_flag("--verbose", flags.verbose,
                   "Print what is loaded and how memory is laid out to standard error");
}

void add_template_flag(CLI::App& command, std::optional<std::string>& values) {
  command.add_option("--chat-template-kwargs", values,
                     "What the model's chat template is told, as JSON: {\"enable_thinking\": false}");
}

namespace {

void choose_structure(SamplingParams& sampling, const std::string& option, StructuredOutput wanted) {
  if (sampling.structured_output) {
    throw CLI::ValidationError(option,
                               "give one of --json-object, --json-schema, --regex, --grammar and --choice");
  }
  sampling.structured_output = std::move(wanted);
}

std::string text_of_file(const std::string& option, const std::string& path) {
  auto text = read_input(path);
  if (!text) throw CLI::ValidationError(option, text.error().message);
  return *std::move(text);
}

// What the outputs have to be, whatever the model would say.
void add_structure_flags(CLI::App& command, SamplingParams& sampling) {
  command.add_flag_function(
      "--json-object",
      [&sampling](std::int64_t) { choose_structure(sampling, "--json-object", AnyJsonObject{}); },
      "Generate any JSON object");
  command
      .add_option_function<std::string>(
          "--json-schema",
          [&sampling](const std::string& given) {
            const bool is_text = given.find('{') != std::string::npos;
            choose_structure(sampling, "--json-schema",
                             JsonSchema{is_text ? given : text_of_file("--json-schema", given)});
          },
          "Generate JSON that is valid by this schema")
      ->type_name("FILE|JSON")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>(
          "--regex",
          [&sampling](const std::string& pattern) {
            choose_structure(sampling, "--regex", RegularExpression{pattern});
          },
          "Generate text that matches this regular expression as a whole")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>(
          "--grammar",
          [&sampling](const std::string& path) {
            choose_structure(sampling, "--grammar", GrammarText{text_of_file("--grammar", path)});
          },
          "Generate text within the grammar in this file (EBNF or GBNF, from the rule root)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      .add_option_function<std::vector<std::string>>(
          "--choice",
          [&sampling](const std::vector<std::string>& texts) {
            choose_structure(sampling, "--choice", ChoiceOfTexts{texts});
          },
          "Generate one of these texts (repeatable)")
      ->allow_extra_args(false);
}

}  // namespace

void add_sampling_flags(CLI::App& command, SamplingParams& sampling) {
  command.add_option("--n", sampling.n, "Outputs per prompt")->capture_default_str();
  command.add_option("--best-of", sampling.best_of, "Generate this many outputs and return the n likeliest");
  command
      .add_option("--temperature", sampling.temperature,
                  "Randomness of sampling; 0: always the likeliest token")
      ->capture_default_str();
  command
      .add_option("--top-p", sampling.top_p,
                  "Sample from the likeliest tokens whose probabilities add up to this")
      ->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "Sample from this many of the likeliest tokens; 0: all")
      ->capture_default_str();
  command
      .add_option("--min-p", sampling.min_p,
                  "Ignore tokens less likely than this fraction of the likeliest token")
      ->capture_default_str();
  command
      .add_option("--presence-penalty", sampling.presence_penalty,
                  "Subtracted from the logit of every token already generated")
      ->capture_default_str();
  command
      .add_option("--frequency-penalty", sampling.frequency_penalty,
                  "Subtracted once for each time the token was generated")
      ->capture_default_str();
  command
      .add_option("--repetition-penalty", sampling.repetition_penalty,
                  "Penalty for tokens already in the prompt or output; 1: off")
      ->capture_default_str();
  command.add_option("--seed", sampling.seed, "Random seed (default: one is chosen and reported)");
  command.add_option("--max-tokens", sampling.max_tokens, "Maximum tokens to generate")
      ->capture_default_str();
  command
      .add_option("--min-tokens", sampling.min_tokens, "Minimum tokens to generate before an output may end")
      ->capture_default_str();
  command.add_option("--stop", sampling.stop, "End the output before this text (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--stop-token-ids", sampling.stop_token_ids, "End the output after one of these tokens")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--include-stop-str-in-output", sampling.include_stop_str_in_output,
                   "Keep the stop text or token that ended the output");
  command.add_flag("--ignore-eos", sampling.ignore_eos, "Continue past the end-of-sequence token");
  command.add_option("--logprobs", sampling.logprobs, "Report this many alternatives for each token");
  command
      .add_option("--logprob-token-ids", sampling.logprob_token_ids,
                  "Report these tokens' log-probabilities for each token instead")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option_function<std::int32_t>(
          "--prompt-logprobs", [&sampling](std::int32_t count) { sampling.prompt_logprobs = count; },
          "Report the log-probability of each prompt token, and this many alternatives (without a number: "
          "none)")
      ->expected(0, 1)
      ->default_str("0");
  command
      .add_option_function<std::vector<TokenId>>(
          "--allowed-token-ids",
          [&sampling](const std::vector<TokenId>& token_ids) { sampling.allowed_token_ids = token_ids; },
          "Generate no other tokens")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--bad-words", sampling.bad_words, "Never generate this text (repeatable)")
      ->allow_extra_args(false);
  add_structure_flags(command, sampling);
  command
      .add_option_function<std::vector<std::string>>(
          "--logit-bias",
          [&sampling](const std::vector<std::string>& entries) {
            for (const std::string& entry : entries) {
              const auto [token_id, bias] = parse_logit_bias(entry);
              sampling.logit_bias[token_id] = bias;
            }
          },
          "Added to a token's logit (repeatable)")
      ->type_name("TOKEN_ID=BIAS")
      ->allow_extra_args(false);
  command.add_option("--beam-width", sampling.beam_width, "Beam search with this many beams");
  command.add_option("--length-penalty", sampling.length_penalty, "Exponent of the length in a beam's score")
      ->capture_default_str();
  command.add_flag("--early-stopping", sampling.early_stopping,
                   "Stop the beam search as soon as enough beams have finished");
}

SamplingAdvice advice_where_not_given(SamplingAdvice advice, const CLI::App& command) {
  for_each_advised([&](const char* name, auto advised, auto) {
    std::string flag = std::string("--") + name;
    std::ranges::replace(flag, '_', '-');
    if (command.count(flag) > 0) (advice.*advised).reset();
  });
  return advice;
}

void refuse_options(CLI::App& command, std::span<const RefusedOption> refused) {
  for (const RefusedOption& one : refused) {
    const std::string name(one.name), why(one.why);
    if (CLI::Option* const offered = command.get_option_no_throw(name)) command.remove_option(offered);
    const auto refuse = [name, why](const CLI::results_t&) -> bool { throw CLI::ValidationError(name, why); };
    command.add_option(name, refuse)->expected(0, 1)->group("");  // with and without a value; not in the help
  }
}

Result<EngineOptions> resolve(const EngineFlags& flags) {
  EngineOptions options = flags.options;
  OCTAVO_TRY_VOID(validate(options));
  OCTAVO_TRY(const std::filesystem::path path,
             find_wanted_model(options.model, flags.downloads ? MissingModel::kDownload : MissingModel::kAsk,
                               flags.sha256));
  options.model = path.string();
  return options;
}

}  // namespace octavo::app
