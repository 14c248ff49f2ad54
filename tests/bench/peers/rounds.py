"""Measurements in turns, A B C A B C, so that a slow minute of the machine meets everybody."""
import dataclasses
import statistics


@dataclasses.dataclass
class Series:
    """What one contestant reached."""
    label: str
    command: tuple
    samples: list = dataclasses.field(default_factory=list)
    num_rejected: int = 0

    @property
    def values(self):
        return [sample.value for sample in self.samples]

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def num_disturbed(self):
        return sum(sample.disturbed is not None for sample in self.samples)

    def summary(self):
        return {"command": list(self.command), "median": self.median, "min": min(self.values), "max": max(self.values), "values": self.values,
                "rejected": self.num_rejected, "disturbed": self.num_disturbed}


def undisturbed(contestant, series, retries):
    """A sample taken while nobody else used the cores; after so many attempts one that somebody did, which is marked."""
    for _ in range(retries):
        sample = contestant.measure()
        if sample.disturbed is None:
            return sample
        series.num_rejected += 1
    return contestant.measure()


def interleave(contestants, rounds, retries, say):
    """label -> Series"""
    found = {contestant.label: Series(contestant.label, contestant.command) for contestant in contestants}
    for number in range(rounds):
        for contestant in contestants:
            series = found[contestant.label]
            sample = undisturbed(contestant, series, retries)
            series.samples.append(sample)
            say(f"    round {number + 1}: {contestant.label} {sample.value:.1f}" + (f" ({sample.disturbed})" if sample.disturbed else ""))
    return found
