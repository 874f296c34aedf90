"""Numbers as people read them: four digits, a unit, and a dash where there is none."""

import math

DASH = "–"
TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))


def short(words, longest=80):
    return words if len(words) <= longest else words[: longest - 1] + "…"


def known(value):
    return value is not None and math.isfinite(value)


def is_time(ns):
    """A time that a run can have taken: above 0, below 30 years."""
    return known(ns) and 1e-3 <= ns < 1e18


def digits(value, count=4):
    """A plain number with so many digits; powers of ten only where the plain form would be long."""
    if value is None:
        return DASH
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.3g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e−").replace("-", "−")
    rounded = float(f"{value:.{count - 1}e}")
    places = max(0, count - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:.{places}f}".replace("-", "−")


def scaled(value, units):
    if not known(value):
        return digits(value)
    size, unit = next(((size, unit) for size, unit in units if abs(value) >= size * 0.99995), units[-1])
    return f"{digits(value / size)} {unit}"


def time(ns):
    return scaled(ns, TIMES)


def tick(ns):
    """A round time at an axis: 50 µs, 2.5 ms."""
    size, unit = next(((size, unit) for size, unit in TIMES if ns >= size * 0.9999), TIMES[-1])
    return f"{ns / size:.6g} {unit}"


def data(count):
    return scaled(count, ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")))


def bandwidth(rate):
    return f"{digits(rate / 1e9)} GB/s" if known(rate) else digits(rate)


def operations(rate):
    return f"{digits(rate / 1e9)} GFLOP/s" if known(rate) else digits(rate)


def share(value, places=1):
    if not known(value):
        return digits(value)
    if abs(value) >= 1000:
        return f"{digits(value)}×"
    places = max(places, 1) if abs(value) < 0.01 else places
    return f"{100 * value:.{places}f}%".replace("-", "−")


def plus_minus(half_width):
    return f"±{share(half_width)}" if known(half_width) else ""


def score(value):
    """0.28, 12, 8.4e6"""
    if not known(value):
        return digits(value)
    return f"{value:.2f}" if value < 10 else digits(value, 2) if value < 1000 else f"{value:.1e}".replace("e+0", "e").replace(
        "e+", "e")


def count(value):
    return f"{value:,.0f}".replace(",", "\u202f") if known(value) else digits(value)


def plural(number, noun):
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count(number)} {noun if number == 1 else many}"
