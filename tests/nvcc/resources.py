"""Registers and spills of the CUDA kernels: read from what ptxas says, written as the table of kernels/cuda/RESOURCES.md,
and compared with the table that is there. A line of the table is a kernel over some types; a kernel that no line is for
gets one with its name.
"""
import dataclasses
import re
import subprocess

BEGIN = "<!-- made by tests/long/run cuda -->"
END = "<!-- up to here -->"

_KV_TYPES = ["f32", "f16", "bf16", "int8", "e4m3", "e5m2"]                # KvType
_WEIGHT_TYPES = {0: "f32", 1: "f16", 30: "bf16"}                         # TensorType; the others are quantised
_OF_KV = [("f16, fp8", "f16|e4m3|e5m2"), ("bf16, int8", "bf16|int8"), ("f32", "f32")]

# What a line is called, and the kernels that it is for, as `_short_name` writes them.
_LINES = [
    *((f"vector, quantised, {rows} rows".replace("1 rows", "1 row"), rf"vector_quantised<quantised, {rows}, \(RowsAre\)[01]>") for rows in (1, 2, 4)),
    *((f"vector, unquantised, {rows} rows".replace("1 rows", "1 row"), rf"vector_numbers<\w+, {rows}, \(RowsAre\)[01]>") for rows in (1, 4, 8)),
    *((f"tiles of {8 * eights} rows, {what}", rf"{kernel}<{types}, {eights}>")
      for what, kernel, types in (("quantised", "multiply_integer_tiles", "quantised"), ("f16 and bf16", "multiply_tiles", "b?f16"))
      for eights in (1, 2, 4, 8)),
    ("repack, quantised", r"repack_groups<\w+>"),
    ("repack, unquantised", r"place_numbers<[\w ]+>"),
    ("expand", r"expand_rows<\w+>"),
    ("finish", r"finish_products"),
    ("prepare rows", r"prepare_rows_kernel"),
    ("embedding", r"gather_kernel"),
    ("add normalised", r"add_normalised_kernel"),
    *((f"attention, {what}, {parts}, head <= {head}: {types}",
       rf"attention_kernel<Shape<({pattern}), {head}, \(AttentionKind\){kind}, \(HalfParts\){number}> ?>")
      for head in (64, 128, 256)
      for kind, what in enumerate(("split", "prefill", "prefill that may cap scores"))
      for number, parts in ((1, "one part"), (2, "two parts"))
      for types, pattern in _OF_KV),
    ("merge of partitions", r"merge_partitions"),
    ("write keys and values", r"write_kv_(rows|chunks)<\w+>"),
    ("copy of blocks", r"copy_kernel<[\w ]+>"),
    ("summary of logits", r"(piece|row)_kernel"),
    ("sampling: adjusted logits", r"(adjust|correct|maxima|validity)_kernel"),
    ("sampling: floor", r"floor_kernel"),
    ("sampling: bins", r"bin_kernel"),
    ("sampling: cut", r"cut_kernel"),
    ("sampling: sums of what is kept, the draw, the best", r"(kept|draw|best)_kernel"),
]


@dataclasses.dataclass
class Kernel:
    name: str          # "attention_kernel<f16, 64, true, false>"
    architecture: str  # "80"
    registers: int     # of a thread
    spilled: int       # bytes of a thread's stack that registers are stored to


@dataclasses.dataclass
class Cell:
    least: int
    most: int
    spilled: int

    def __str__(self):
        registers = str(self.most) if self.least == self.most else f"{self.least} to {self.most}"
        return registers if self.spilled == 0 else f"{registers} / {self.spilled}"

    @staticmethod
    def parse(text):
        found = re.fullmatch(r"(\d+)(?: to (\d+))?(?: / (\d+))?", text)
        return Cell(int(found[1]), int(found[2] or found[1]), int(found[3] or 0)) if found else None


def parse_kernels(said):
    """Of the output of nvcc -Xptxas -v, for any number of files and architectures."""
    entry = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\w+)'(.*?)(\d+) bytes spill stores.*?Used (\d+) registers", re.S)
    found = entry.findall(said)
    if len(found) != said.count("Compiling entry function"):
        raise ValueError("ptxas says something else than this reads: a kernel without its registers or spills")
    names = _demangled([name for name, *_ in found])
    return [Kernel(_short_name(name), architecture, int(registers), int(spilled))
            for name, (_, architecture, _, spilled, registers) in zip(names, found)]


def _demangled(names):
    done = subprocess.run(["c++filt", "-p"], input="\n".join(names), stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def _short_name(name):
    """"octavo::kernels::cuda::(anonymous namespace)::f<(octavo::kernels::KvType)1, 64>" is "f<f16, 64>"."""
    name = name.replace("(anonymous namespace)::", "")
    name = re.sub(r"\b(?:\w+::)+", "", name)
    name = re.sub(r"\(KvType\)(\d+)", lambda found: _KV_TYPES[int(found[1])], name)
    return re.sub(r"\(TensorType\)(\d+)", lambda found: _WEIGHT_TYPES.get(int(found[1]), "quantised"), name)


def line_of(name):
    for label, pattern in _LINES:
        if re.fullmatch(pattern, name):
            return label
    return f"`{name}`"


def table_of(kernels):
    """{line: {architecture: Cell}}, in the order of the lines."""
    table = {label: {} for label, _ in _LINES}
    for kernel in sorted(kernels, key=lambda kernel: kernel.name):
        cells = table.setdefault(line_of(kernel.name), {})
        cell = cells.setdefault(kernel.architecture, Cell(kernel.registers, kernel.registers, 0))
        cell.least, cell.most = min(cell.least, kernel.registers), max(cell.most, kernel.registers)
        cell.spilled = max(cell.spilled, kernel.spilled)
    return {label: cells for label, cells in table.items() if cells}


@dataclasses.dataclass
class Record:
    """What stands between the marks of RESOURCES.md."""
    version: str        # of nvcc; "" where nothing is recorded
    architectures: list
    table: dict


def read_record(text):
    part = _between_marks(text)[1]
    version = re.search(r"nvcc ([\d.]+)", part)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    if not version or len(rows) < 2:
        return Record("", [], {})
    architectures = [heading.removeprefix("sm_") for heading in rows[0][1:]]
    table = {}
    for label, *texts in rows[2:]:
        cells = {architecture: Cell.parse(cell) for architecture, cell in zip(architectures, texts)}
        table[label] = {architecture: cell for architecture, cell in cells.items() if cell}
    return Record(version[1], architectures, table)


def written(text, record):
    """The text with this record between its marks."""
    before, _, after = _between_marks(text)
    heading = [f"Of a thread, from `nvcc -Xptxas -v` (nvcc {record.version}); behind the stroke the most bytes that a kernel of the",
               "line spills.", "",
               "| kernel | " + " | ".join(f"sm_{architecture}" for architecture in record.architectures) + " |",
               "|---" * (len(record.architectures) + 1) + "|"]
    rows = [f"| {label} | " + " | ".join(str(cells.get(architecture, "")) for architecture in record.architectures) + " |"
            for label, cells in record.table.items()]
    return before + "\n".join(["", *heading, *rows, ""]) + after


def merged(record, version, table):
    """The record with the columns that `table` has. Columns of another nvcc are dropped: they would not compare."""
    kept = record.table if record.version == version else {}
    architectures = {architecture for cells in table.values() for architecture in cells}
    architectures |= {architecture for cells in kept.values() for architecture in cells}
    return Record(version, sorted(architectures, key=lambda name: (len(name), name)),
                  {label: {**kept.get(label, {}), **cells} for label, cells in table.items()})


def spills_beyond(record, table):
    """A sentence for each line that spills more than recorded. A line that is not recorded may not spill; an architecture
    that is not recorded may."""
    sentences = []
    for label, cells in table.items():
        for architecture, cell in cells.items():
            if architecture not in record.architectures:
                continue
            recorded = record.table.get(label, {}).get(architecture)
            allowed = recorded.spilled if recorded else 0
            if cell.spilled > allowed:
                sentences.append(f"{label}: sm_{architecture} spills {cell.spilled} bytes, and {allowed} are recorded")
    return sentences


def _between_marks(text):
    """(up to the first mark, between them, from the second on)"""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"kernels/cuda/RESOURCES.md must have one line {BEGIN} and one line {END}")
    first, last = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:first], text[first:last], text[last:]
