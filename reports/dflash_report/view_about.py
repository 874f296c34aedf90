"""Where the results come from: machines and builds, commands, what the words mean."""

from . import text
from .html import el, framed
from .view_parity import command

HIDDEN = ("time", "memory_available_bytes", "cpu_mhz", "load")
LINES = 30  # commands that are shown
WORDS = (
    ("score", "largest difference over what correct arithmetic of the profile would show there; up to 1 passes"),
    ("covered", "the backend has no such value; the next stage that it has covers it"),
    ("near tie", "another token, where the golden's own decision was closer than its error; passes"),
    ("not trusted", "agrees, but the golden proves little there, or the time is not believed"),
    ("roofline", "the best streaming read and matrix product that this backend reached on this device in the same run"),
    ("95% interval", "half width of the median's, within one process; the noise between processes is larger"),
    ("cache-hot", "the block's bytes fit a cache: its times say little about a block that does not"),
)


def value(name, found):
    if found is None or found == "" or found == {}:
        return text.DASH
    if isinstance(found, dict):
        return ", ".join(f"{key}={inner}" for key, inner in found.items())
    if isinstance(found, list):
        return ", ".join(value("", inner) for inner in found)
    if isinstance(found, float):
        whole = text.known(found) and found == int(found) and abs(found) < 1e9
        return text.data(found) if name.endswith("_bytes") else text.count(found) if whole else text.digits(found)
    return str(found)


def _distinct(results):
    """Environments that differ, with how many runs each has."""
    found = {}
    for run in results.runs:
        key = tuple((name, value(name, v)) for name, v in sorted(run.environment.items()) if name not in HIDDEN)
        found.setdefault(key, []).append(run)
    return list(found.values())


def _of_runs(name, runs):
    """The member's value; of what differs from run to run the first and the last."""
    values = list(dict.fromkeys(value(name, run.environment.get(name)) for run in runs))
    return values[0] if len(values) == 1 else f"{values[0]} … {values[-1]}"


def environment(results):
    kinds = _distinct(results)[:6]
    names = list(dict.fromkeys(name for runs in kinds for name in runs[0].environment))
    names = [name for name in names if any(runs[0].environment.get(name) not in (None, "", {}) for runs in kinds)]
    if not names:
        return None
    rows = []
    for name in names:
        values = [_of_runs(name, runs) for runs in kinds]
        differs = len(set(values)) > 1 and name not in HIDDEN
        rows.append(el("tr", el("th", name.replace("_", " "), scope="row"), (el("td", v) for v in values),
                       class_="differs" if differs else None))
    heads = [el("th", text.plural(len(runs), "run"), scope="col") for runs in kinds]
    return framed(el("table", el("thead", el("tr", el("th", "", scope="col"), heads)), el("tbody", rows),
                     class_="facts-table"), "What the runs say about builds and machines; what differs is marked")


def devices(results):
    seen = {}
    for case in results.cases:
        model = case.model
        if model:
            seen.setdefault((case.port, model.get("device_name"), model.get("driver"), model.get("path")), model)
    rows = [el("tr", el("th", port.label, scope="row"), el("td", name or text.DASH), el("td", driver or text.DASH),
               el("td", path or text.DASH), el("td", text.data(model.get("resident_bytes")), class_="n"))
            for (port, name, driver, path), model in list(seen.items())[:40]]
    if not rows:
        return None
    head = el("tr", [el("th", name, scope="col") for name in ("backend", "device", "driver", "path", "resident")])
    return framed(el("table", el("thead", head), el("tbody", rows), class_="facts-table"),
                  "Devices, and the path that each backend took")


def states(results):
    """Clocks, temperature and the like, before and after the samples."""
    rows = []
    for case in results.timed:
        before, after = case.bench.get("state_before") or {}, case.bench.get("state_after") or {}
        for name in list(dict.fromkeys([*before, *after]))[:20]:
            rows.append(el("tr", el("th", case.port.label, scope="row"), el("td", case.label), el("td", name),
                           el("td", value(name, before.get(name))), el("td", value(name, after.get(name)))))
    if not rows:
        return None
    head = el("tr", [el("th", name, scope="col") for name in ("backend", "golden", "what", "before", "after")])
    inside = el("table", el("thead", head), el("tbody", rows), class_="facts-table")
    return el("details", el("summary", "State of devices"),
              framed(inside, "State of the device before and after the samples"))


def section(results):
    parts = [part for part in (environment(results), devices(results), states(results)) if part]
    return el("section", el("h2", "Environment"), parts, id="environment") if parts else None


def reproduce(results):
    lines = list(dict.fromkeys(run.command for run in results.runs if run.command))
    failed = list(dict.fromkeys(case.record["reproduce"] for case in results.cases if case.record.get("reproduce")))
    if not lines and not failed:
        return None
    more = len(lines) - LINES
    return el("section", el("h2", "Reproduce"),
              el("h3", "What failed") if failed else None, [command(line) for line in failed[:LINES]],
              el("h3", "These runs") if lines else None, [command(line) for line in lines[:LINES]],
              el("p", f"and {more} more", class_="about") if more > 0 else None, id="reproduce")


def words():
    return el("section", el("h2", "Words"), el("dl", [(el("dt", word), el("dd", about)) for word, about in WORDS]), id="words")
