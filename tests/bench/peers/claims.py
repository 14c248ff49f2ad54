"""What must be shown, and whether it is.

A ratio is always "how many times better than the peer", for rates ours / theirs and for times theirs / ours.
"""
import dataclasses

LEAST_SHARE_OF_DEFAULT = 0.6  # where another activation type may meet a row, the default reaches this share of "at least"


@dataclasses.dataclass
class Line:
    """A line of the table. `ours` maps activation types to figures, the default first."""
    row: str
    figure: str
    unit: str
    ours: dict
    peer: str = ""
    peer_value: float | None = None
    at_least: float | None = None  # a ratio with a peer, else a bound of the figure itself
    aim: float | None = None
    lower_is_better: bool = False
    any_activation: bool = False  # may be met by another type than the default
    note: str = ""
    noise: dict = dataclasses.field(default_factory=dict)

    def score(self, value):
        """What is compared with `at_least` and `aim`."""
        if self.peer_value is None:
            return value
        return self.peer_value / value if self.lower_is_better else value / self.peer_value

    @property
    def scores(self):
        return {name: self.score(value) for name, value in self.ours.items()}

    @property
    def judged(self):
        """(activation type, score) that the verdict is about."""
        scores = list(self.scores.items())
        if self.any_activation and self.at_least is not None and scores[0][1] >= LEAST_SHARE_OF_DEFAULT * self.at_least:
            return max(scores, key=lambda entry: entry[1])
        return scores[0]

    @property
    def verdict(self):
        if self.at_least is None:
            return "for information"
        smaller_is_better = self.peer_value is None and self.lower_is_better
        reaches = lambda bound: self.judged[1] <= bound if smaller_is_better else self.judged[1] >= bound
        if self.aim is not None and reaches(self.aim):
            return "aim"
        return "met" if reaches(self.at_least) else "SHORT"

    def summary(self):
        return dataclasses.asdict(self) | {"scores": self.scores, "judged_by": self.judged[0], "verdict": self.verdict}
