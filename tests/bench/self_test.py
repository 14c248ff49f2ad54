#!/usr/bin/env python3
"""What compare_peers computes, checked without measuring anything: parsing, medians, verdicts, search, windows of text, and
the size of what make_random_model writes.

usage: self_test.py [--gtest_output=xml:FILE] [unittest's arguments]
"""
import json
import math
import runpy
import struct
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

import unittest_report  # noqa: E402
from gpu import report as gpu_report  # noqa: E402
from peers import claims, machine, perplexity, report, rounds, search  # noqa: E402
from peers.engines import Contestant, IkLlamaCpp, LlamaCpp, Octavo, OpenVino, Sample, Variant, Workload  # noqa: E402

DECODE = Workload("decode", "decode", 64, 129)
TURN = Workload("turn", "turn", 50, cached_tokens=2048)
SHARED = Workload("shared", "decode", 512, 65, 16, shared=True)


def word_after(command, flag):
    return command[command.index(flag) + 1]


class MachineTest(unittest.TestCase):
    STAT = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 1 5 100 2 0 1 3 0 0\ncpu1 20 2 6 200 4 1 0 5 0 0\nintr 1 2\n"

    def test_times_are_of_the_chosen_cores_only(self):
        self.assertEqual(machine.CoreTimes.parse(self.STAT, [1]), machine.CoreTimes(busy=29, steal=5, total=238))
        self.assertEqual(machine.CoreTimes.parse(self.STAT, [0, 1]), machine.CoreTimes(busy=46, steal=8, total=360))

    def test_what_the_program_used_itself_is_no_disturbance(self):
        before, after = machine.CoreTimes(0, 0, 0), machine.CoreTimes(busy=150, steal=0, total=200)
        self.assertIsNone(machine.disturbance(before, after, own_cpu_seconds=150 / machine.TICKS_PER_SECOND))
        self.assertIn("other processes used 25 %", machine.disturbance(before, after, own_cpu_seconds=100 / machine.TICKS_PER_SECOND))

    def test_stolen_time_is_a_disturbance(self):
        before = machine.CoreTimes(0, 0, 0)
        self.assertIn("virtual machines", machine.disturbance(before, machine.CoreTimes(busy=0, steal=10, total=200), 0))
        self.assertIsNone(machine.disturbance(before, machine.CoreTimes(busy=0, steal=1, total=200), 0))

    def test_a_program_that_fails_is_a_sentence_with_what_it_said(self):
        core = machine.default_cores(1)
        with self.assertRaisesRegex(machine.Failure, "status 3: no such thing"):
            machine.execute(["sh", "-c", "echo no such thing >&2; exit 3"], core)
        done = machine.execute(["sh", "-c", "echo yes"], core)
        self.assertEqual(done.out, "yes\n")
        self.assertGreater(done.max_rss_bytes, 100_000)


class RoundsTest(unittest.TestCase):
    class Scripted:
        """Gives the samples of a list; notes who was asked."""

        def __init__(self, label, samples, order):
            self.label, self.command, self.samples, self.order = label, (label,), list(samples), order

        def measure(self):
            self.order.append(self.label)
            return self.samples.pop(0)

    def test_contestants_take_turns(self):
        order = []
        contestants = [self.Scripted(name, [Sample(value, {}, None) for value in (1.0, 9.0, 2.0)], order) for name in "AB"]
        found = rounds.interleave(contestants, 3, 2, lambda text: None)
        self.assertEqual("".join(order), "ABABAB")
        self.assertEqual((found["A"].median, min(found["A"].values), found["A"].num_disturbed), (2.0, 1.0, 0))

    def test_a_disturbed_run_is_rejected_and_repeated_but_not_for_ever(self):
        order, noisy = [], "others"
        a = self.Scripted("A", [Sample(1.0, {}, noisy), Sample(5.0, {}, None)], order)
        b = self.Scripted("B", [Sample(1.0, {}, noisy)] * 2 + [Sample(2.0, {}, noisy)], order)
        found = rounds.interleave([a, b], 1, 2, lambda text: None)
        self.assertEqual(found["A"].values, [5.0])
        self.assertEqual((found["A"].num_rejected, found["A"].num_disturbed), (1, 0))
        self.assertEqual(found["B"].values, [2.0])
        self.assertEqual((found["B"].num_rejected, found["B"].num_disturbed), (2, 1))


class ClaimsTest(unittest.TestCase):
    def verdict(self, default, int8=None, peer=100.0, **more):
        ours = {"default": default} | ({"int8": int8} if int8 is not None else {})
        return claims.Line("row", "figure", "tokens/s", ours, "peer", peer, at_least=2.0, aim=3.0, **more).verdict

    def test_rates_are_ours_over_theirs(self):
        self.assertEqual([self.verdict(value) for value in (199, 200, 299, 300)], ["SHORT", "met", "met", "aim"])

    def test_times_are_theirs_over_ours(self):
        self.assertEqual([self.verdict(value, lower_is_better=True) for value in (51, 50, 33)], ["SHORT", "met", "aim"])

    def test_another_activation_type_counts_only_where_the_row_allows_it_and_the_default_is_not_far_behind(self):
        self.assertEqual(self.verdict(150, 300), "SHORT")
        self.assertEqual(self.verdict(150, 300, any_activation=True), "aim")
        self.assertEqual(self.verdict(119, 300, any_activation=True), "SHORT")
        self.assertEqual(self.verdict(120, 200, any_activation=True), "met")

    def test_figures_without_a_peer_are_held_to_their_own_bounds(self):
        line = lambda value, smaller: claims.Line("row", "figure", "", {"default": value}, at_least=0.8 if not smaller else 500, aim=0.9 if not smaller else 200, lower_is_better=smaller)
        self.assertEqual([line(value, False).verdict for value in (0.79, 0.8, 0.9)], ["SHORT", "met", "aim"])
        self.assertEqual([line(value, True).verdict for value in (501, 500, 200)], ["SHORT", "met", "aim"])

    def test_the_table_has_a_cell_for_every_head(self):
        line = claims.Line("row", "decode", "tokens/s", {"default": 1234.5, "int8": 1500.0}, "peer", 500.0, at_least=2.0, aim=3.5, any_activation=True)
        rows = report.markdown([line]).splitlines()
        self.assertEqual({row.count("|") for row in rows}, {len(report.HEADS) + 1})
        self.assertIn("| 1,234 | int8 1,500 | peer | 500 | 2.47x (int8 3.00x) | 2x | 3.5x | met (by int8) |", rows[2])
        json.dumps(line.summary())


class SearchTest(unittest.TestCase):
    class Engine:
        name = "engine"

        def choices(self, workload, first):
            return [[{"flash": False}], [{"ubatch": 256}, {"ubatch": 1024}], [{"folder": "other", "poll": 0}, {"folder": "other", "poll": 100}]]

    def test_each_choice_keeps_its_best_value(self):
        tried = []

        def measure(variant):
            tried.append(variant)
            return 10 * variant.flash + {256: 1, 512: 2, 1024: 3}[variant.ubatch] + {50: 0, 0: -5, 100: 5}[variant.poll]

        best, value = search.best_variant(self.Engine(), DECODE, Variant(), measure)
        self.assertEqual((best.flash, best.ubatch, best.folder, best.poll, value), (True, 1024, "other", 100, 18))
        self.assertEqual(len(tried), len(set(tried)))

    def test_of_times_the_shortest_is_best_and_refusals_are_passed_over(self):
        figures = {"a": 5.0, "b": None, "c": 3.0}
        self.assertEqual(search.best_of("abc", TURN, figures.get), ("c", 3.0))
        self.assertEqual(search.best_of("abc", DECODE, figures.get), ("a", 5.0))


class EnginesTest(unittest.TestCase):
    def setUp(self):
        self.llama = LlamaCpp(lambda folder: Path("/bins") / folder, lambda name: f"{name}.gguf", 2, [0, 1], Path("/"))

    def test_octavo_shares_as_many_tokens_as_the_peers_prompt_has(self):
        octavo = Octavo("octavo", "model.gguf", 2, [0, 1])
        command = octavo.contestant("us", SHARED, "int8").command
        self.assertEqual((word_after(command, "--prompt-tokens"), word_after(command, "--shared-prefix-tokens")), ("513", "512"))
        self.assertEqual(word_after(command, "--activation-dtype"), "int8")
        self.assertEqual(octavo.with_instruction_set("avx2").contestant("us", DECODE).environment, {"OCTAVO_CPU_ISA": "avx2"})

    def test_both_decode_from_the_same_context_as_many_tokens(self):
        ours = Octavo("octavo", "model.gguf", 2, [0, 1]).contestant("us", DECODE).command
        theirs = self.llama.contestant("them", DECODE, Variant()).command
        self.assertEqual(word_after(ours, "--prompt-tokens"), word_after(theirs, "-d"))
        self.assertEqual(int(word_after(ours, "--output-tokens")) - 1, int(word_after(theirs, "-n")))

    def test_a_split_store_has_room_for_the_shared_prompt_in_every_part(self):
        split = self.llama.contestant("them", SHARED, Variant()).command
        self.assertGreaterEqual(int(word_after(split, "-c")), 16 * (512 + 64))
        unified = self.llama.contestant("them", SHARED, Variant(unified=True)).command
        self.assertGreaterEqual(int(word_after(unified, "-c")), 512 + 16 * 64)
        self.assertLess(int(word_after(unified, "-c")), 4096)

    def test_answers_of_the_programs_are_read(self):
        bench = 'warning: x\n[\n {"build_commit": "abc", "samples_ns": [ 2000000000 ]}\n]\n'
        self.assertEqual(LlamaCpp.read_single(DECODE, bench)[0], 64.0)
        self.assertEqual(LlamaCpp.read_single(TURN, bench)[0], 2000.0)
        table = ("main: n_kv_max = 8192\n\n|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |\n"
                 "|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|\n"
                 "|   512 |     64 |   16 |   1536 |    1.000 |   512.00 |    4.000 |   256.00 |    5.000 |   307.20 |\n\nllama_perf: 1\n")
        self.assertEqual(LlamaCpp.read_batched(SHARED, table)[0], 256.0)
        report_text = json.dumps({"machine": {"threads": 2}, "results": [{"decode_tokens_per_s": 5.0, "prefill_tokens_per_s": 6.0, "ttft_ms": 7.0}]})
        self.assertEqual([Octavo.read(workload, report_text)[0] for workload in (DECODE, TURN)], [5.0, 7.0])
        self.assertEqual(OpenVino.read(DECODE, 'warning\n{"decode_tokens_per_s": 8.0}\n')[0], 8.0)

    def test_an_answer_of_another_form_is_a_failure_that_shows_it(self):
        with self.assertRaisesRegex(machine.Failure, "them printed something unexpected.*nonsense"):
            Contestant("them", ("echo", "nonsense"), lambda done: LlamaCpp.read_single(DECODE, done.out), tuple(machine.default_cores(1))).measure()

    def test_each_family_gets_its_own_flags(self):
        ik = IkLlamaCpp(lambda folder: Path("/ik"), lambda name: f"{name}.gguf", 2, [0, 1], Path("/"))
        self.assertEqual(word_after(ik.contestant("them", DECODE, Variant()).command, "-gp"), "64,128")
        self.assertIn("-rtr", ik.contestant("them", SHARED, Variant()).command)
        self.assertNotIn("-kvu", ik.contestant("them", SHARED, Variant(unified=True)).command)
        self.assertIn("-kvu", self.llama.contestant("them", SHARED, Variant(unified=True)).command)
        self.assertNotIn([{"repack": False}], self.llama.choices(DECODE, Variant()))
        self.assertIn([{"repack": False}], self.llama.choices(DECODE, Variant(model_format="Q4_0")))
        self.assertIn([{"repack": False}], ik.choices(DECODE, Variant()))


class PerplexityTest(unittest.TestCase):
    def test_windows_do_not_overlap_and_the_rest_is_dropped(self):
        self.assertEqual(perplexity.windows(list(range(10)), 4, None), [[0, 1, 2, 3], [4, 5, 6, 7]])
        self.assertEqual(perplexity.windows(list(range(10)), 4, 99), [[99, 1, 2, 3], [99, 5, 6, 7]])

    def test_tokens_after_the_middle_one_count(self):
        window = [None, -100.0, -100.0, -100.0, -100.0, -1.0, -2.0, -3.0]  # of 8: positions 5, 6, 7
        self.assertAlmostEqual(perplexity.perplexity([window, window], 8), math.exp(2.0))

    def test_the_estimate_and_the_number_of_windows_are_read(self):
        out = "perplexity: calculating\n[1]5.1234,[2]6.2345,\nFinal estimate: PPL = 6.2345 +/- 0.12345\n"
        self.assertEqual(perplexity.read_llama(out), (6.2345, 2))
        with self.assertRaises(machine.Failure):
            perplexity.read_llama("you need at least 1024 tokens")


class RandomModelTest(unittest.TestCase):
    SCRIPT = runpy.run_path(str(HERE / "make_random_model"))

    def test_blocks_have_the_formats_sizes(self):
        import random
        sizes = {name: len(draw(random.Random(1))) for name, (_, _, _, draw) in self.SCRIPT["TYPES"].items()}
        self.assertEqual(sizes, {"F16": 2, "Q4_0": 18, "Q4_1": 20, "Q8_0": 34, "Q4_K": 144, "Q5_K": 176, "Q6_K": 210,
                                 "IQ4_XS": 136, "MXFP4": 17, "F32": 4})

    def test_the_pattern_goes_on_where_it_is_told(self):
        with tempfile.TemporaryFile() as file:
            self.SCRIPT["write_pattern"](file, b"abcde", 13, 9)
            file.seek(0)
            self.assertEqual(file.read(), b"deabcdeab")

    def test_only_pairs_of_the_tokenizer_are_taken_whole(self):
        key = lambda text: struct.pack("<Q", len(text)) + text
        name = key(b"general.name") + struct.pack("<I", 8) + key(b"x")
        tokens = key(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + key(b"a") + key(b"bc")
        with tempfile.NamedTemporaryFile() as file:
            file.write(struct.pack("<4sIQQ", b"GGUF", 3, 0, 2) + name + tokens)
            file.flush()
            pairs = self.SCRIPT["MetadataReader"](Path(file.name)).pairs_with_prefix(b"tokenizer.")
        self.assertEqual(pairs, [(b"tokenizer.ggml.tokens", tokens)])
        self.assertEqual(self.SCRIPT["vocabulary_size"](pairs), 2)


class GpuReportTest(unittest.TestCase):
    @staticmethod
    def step(name, **figures):
        return {"section": "steps", "name": name, "seconds": 0.004, "rounds_seconds": [0.004], **figures}

    def judged(self, record, emulated=False):
        gpu_report.judge([record], emulated)
        return record.get("bar", {}).get("verdict")

    def test_a_bar_is_held_against_its_own_figure(self):
        name = "Llama-8B bf16, decode 1 x 512"
        self.assertEqual(self.judged(self.step(name, of_bandwidth=0.93, of_roofline=0.1)), "aim")
        self.assertEqual(self.judged(self.step(name, of_bandwidth=0.85)), "met")
        self.assertEqual(self.judged(self.step(name, of_bandwidth=0.84, of_roofline=1.0)), "NOT MET")
        self.assertEqual(self.judged(self.step("Llama-8B Q4_0, decode 64 x 512", of_roofline=0.79)), "NOT MET")
        self.assertEqual(self.judged(self.step(name)), "not measured")

    def test_variants_and_emulated_devices_meet_no_bar(self):
        self.assertIsNone(self.judged(self.step("Llama-8B bf16, decode 1 x 512, deterministic", of_bandwidth=0.1)))
        self.assertIsNone(self.judged(self.step("Llama-8B bf16, decode 1 x 512, without output head", of_bandwidth=1.0)))
        self.assertEqual(self.judged(self.step("Llama-8B bf16, decode 1 x 512", of_bandwidth=1.0), emulated=True), "-")

    def test_the_table_shows_what_was_left_out_and_which_bars_are_open(self):
        device = {"name": "device", "compute_capability": "9.0", "emulated": True}
        left_out = {"section": "attention", "name": "KV f16, decode 64 x 8192", "left_out": "needs 9 GB, 8 are free"}
        records = [left_out, self.step("Llama-1B bf16, decode 1 x 512", tokens_per_s=250.0)]
        gpu_report.judge(records)
        text = gpu_report.markdown({"device": device, "records": records, "error": "device lost"})
        self.assertIn("left out: needs 9 GB", text)
        self.assertIn("| 4 ms | 0 % | 250 tokens/s |", text)
        self.assertIn("device lost", text)
        self.assertIn("Bars without a measurement", text)
        self.assertEqual({line.count("|") for line in text.splitlines() if line.startswith("|")}, {16})
        self.assertEqual(records[0]["bar"]["verdict"], "not measured")

    def test_the_names_of_peers_meet_their_bars(self):
        script = runpy.run_path(str(HERE / "gpu_report"))
        steps = [self.step(f"Llama-8B bf16, decode {n} x 512", tokens_per_s=24.0 * n) for n in (1, 32, 256)]
        script["beside_transformers"].__globals__["run_json"] = lambda command: {"decode_tokens_per_s": {"1": 12, "32": 32, "256": 256}}
        records = script["beside_transformers"]("folder", steps)
        self.assertEqual([record["ratio"] for record in records], [2, 24, 24])
        self.assertEqual(self.judged(records[2]), "aim")
        with self.assertRaises(RuntimeError):
            script["beside_transformers"]("folder", steps[:1])


if __name__ == "__main__":
    sys.exit(unittest_report.main("bench"))
