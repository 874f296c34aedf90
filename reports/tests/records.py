"""Records for the tests of the report: real ones of small goldens, a history of nights, and hostile ones."""

import contextlib
import gzip
import io
import json
import random
from pathlib import Path

import nights

HERE = Path(__file__).parent / "records"
NIGHTS = 90


def unpacked(folder):
    """{name: path} of the committed records as plain files."""
    found = {}
    for path in sorted(HERE.glob("*.jsonl.gz")):
        name = path.name.removesuffix(".jsonl.gz")
        found[name] = Path(folder) / f"{name}.jsonl"
        found[name].write_bytes(gzip.decompress(path.read_bytes()))
    return found


def of(path, kind):
    return [record for line in path.read_text().splitlines() if (record := json.loads(line))["type"] == kind]


def report(main, words):
    """(exit status, stdout, stderr) of the report."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(word) for word in words])
    return status, out.getvalue(), err.getvalue()


def history(path, files, change, seed=3):
    """90 nights of one block, which takes longer from night `change` on, and the newest night's records."""
    made, generator = nights.History(path), random.Random(seed)
    for backend, ns, at in (("blas", 6e4, (change, "attention", 2.2)), ("reference", 6e5, None)):
        last = [record for record in map(json.loads, files[f"{backend}-bench"].read_text().splitlines())
                if record["type"] in ("model", "bench", "case")]
        nights.benches(made, backend, "tiny-f32.h5", NIGHTS, ns, generator, 1, at, last)
    made.close()


def line(kind, **members):
    return json.dumps({"schema": "dflash-record", "version": 1, "type": kind} | members) + "\n"


COMPARED = line("comparison", verdict="slower", backend="blas", backend_b="blas", golden="27b.h5, 7 bytes", case="main",
                message="slower: the block +9.4%", units="pairs", a_count=9, b_count=9,
                block={"a_ns": 237e6, "b_ns": 259e6, "change": 0.094, "low": 0.09, "high": 0.1, "verdict": "slower"},
                groups=[{"name": "head", "a_ns": 95e6, "b_ns": 119e6, "change": 0.25, "low": 0.24, "high": 0.27, "verdict": "slower"},
                        {"name": "qkv", "a_ns": 14e6, "b_ns": 14e6, "change": -0.01, "low": -0.03, "high": 0.01, "verdict": "same"}])
COMPARED += line("gate", exit=1, message="the gate fails", promise="at most 0.5% of nights",
                 findings=[{"kind": "time", "verdict": "failed", "name": "main", "message": "slower"}])
SCRIPT = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
BAD_NAMES = (SCRIPT, "\" onfocus=\"window.hacked=1\" autofocus x=\"", "a\u202ebc\x1b[31m\x00", "\ud800", "&lt;b&gt;", "x" * 5000)


def sample(value):
    return {"n": 32, "min": value, "median": value, "p95": value, "mad": 0, "low": "nan", "high": "inf",
            "half_width": "inf", "lag1": "nan"}


def hostile():
    """Lines of the right form whose values are not what anybody hopes for; the blocks of 123.5 ms failed parity."""
    lines = [line("run", command=SCRIPT, environment={"cpu": SCRIPT, "time": SCRIPT, "x": [[[[[[1]]]]]], "revision": 10**400})]
    for i, name in enumerate(BAD_NAMES):
        subject = {"file": name, "case": name, "backend": name, "device": name, "profile": name}
        lines.append(line("model", options={name: name}, device_name=name, path=name, **subject))
        for value in ("nan", "inf", 1e308, 10**400, -1, 5e-324, 0):
            lines.append(line("verdict", mode=name, stage=f"{name}{value}"[:300], layer=i, outcome="mismatch", score=value, got=value,
                              expected="-inf", elements=10**30, bad=value, place=name, pattern=name, **subject))
        lines.append(line("verdict", mode="chain", stage="s", outcome=name, **subject))
        lines.append(line("case", outcome="mismatch", message=name, reproduce=name, largest_score="nan", passed=10**400,
                          first={"stage": name, "layer": 1e300}, **subject))
        block = {"device": sample(123.5e6), "bytes": 10**400, "bandwidth": "nan", "share_read": 1e308}
        stages = [{"stage": name, "time": sample("inf")}, {"stage": name, "layer": 3, "time": sample(1e300), "share": 1e308}, {}]
        lines.append(line("bench", parity={"outcome": "mismatch" if i % 2 else "pass"}, block=block, stages=stages,
                          groups=[{"group": name, "ns": 5e-324, "share": "inf"}, {"group": name, "ns": 1e6, "share": 1e300}],
                          samples=["nan", -1, 0, 1e300, 5, 1e17], **subject))
        lines.append(line("case", outcome="mismatch" if i % 2 else "error", modes=SCRIPT, **subject))
    good = {"file": "g.h5", "case": "c", "backend": "b", "device": "d", "profile": "exact"}
    block = {"device": sample(5e6), "bytes": 10**400, "bandwidth": "nan", "share_read": 1e308}
    groups = [{"group": SCRIPT, "ns": 5e-324, "share": "inf"}, {"group": "qkv", "ns": 1e6, "share": 1e300}, {"group": "x", "ns": 2e6}]
    lines.append(line("bench", parity={"outcome": "pass"}, block=block, groups=groups, samples=["nan", -1, 0, 1e300, 5, 1e17],
                      stages=[{"stage": SCRIPT, "time": sample("inf")}, {"stage": "s", "time": sample(4)}, {}], **good))
    lines.append(line("case", outcome="pass", **good))
    lines.append(line("bad_input", file=SCRIPT, message=SCRIPT))
    lines.append(line("of a type that nobody knows", x=1))
    return "".join(lines)
