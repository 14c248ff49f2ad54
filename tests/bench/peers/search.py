"""The best flags of a peer: one choice after the other, each alternative measured once, the better one kept."""
import dataclasses


def better(workload, a, b):
    return a < b if workload.figure == "turn" else a > b


def best_variant(engine, workload, first, measure):
    """(variant, value). `measure` maps a variant to a figure, or to None where the program refuses it."""
    best, best_value = first, measure(first)
    for alternatives in engine.choices(workload, first):
        for changes in alternatives:
            candidate = dataclasses.replace(best, **changes)
            found = measure(candidate)
            if found is not None and (best_value is None or better(workload, found, best_value)):
                best, best_value = candidate, found
    return best, best_value


def best_of(candidates, workload, measure):
    """(candidate, value) of a list of anything."""
    best, best_value = None, None
    for candidate in candidates:
        found = measure(candidate)
        if found is not None and (best_value is None or better(workload, found, best_value)):
            best, best_value = candidate, found
    return best, best_value
