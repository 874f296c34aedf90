"""The page in a real browser: what it shows is what the records say, and keys reach it. Screenshots stay in a folder.

Not found by test discovery: it wants Chromium, and ends with 3 where there is none."""

import json
import math
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

import browser  # noqa: E402
import nights  # noqa: E402
import records  # noqa: E402
from dflash_report.__main__ import main  # noqa: E402

SHOTS = Path(os.environ.get("DFLASH_SCREENSHOTS", tempfile.gettempdir() + "/dflash-report-screenshots"))
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
MOST = 5_000_000  # bytes of a page
CHANGE = 80  # the night on which the history's block changes
CELLS = """return [...document.querySelectorAll('.port')].map((port) => [port.querySelector('summary b').textContent,
  [...port.querySelectorAll('[data-k]')].map((cell) => [cell.dataset.k, cell.textContent, cell.className, cell.getAttribute('aria-label')])])"""
TABLE = """return [...document.querySelector('%s').tBodies[0].rows].filter((row) => !row.hidden)
  .map((row) => [...row.cells].map((cell) => cell.textContent))"""


def nanoseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)\s(ns|µs|ms|s)", text.strip()).groups()
    return float(number) * UNITS[unit]


def key_of(record):
    """A cell's place in a heat map."""
    return f"{record['stage']}|{record.get('layer', '')}|{record['mode']}"


def shown(score):
    """As a cell shows a passing score."""
    return f"{score:.2f}".removeprefix("0")


class Page(unittest.TestCase):
    """One browser and one folder of pages for all."""

    @classmethod
    def start(cls):
        cls.folder = tempfile.TemporaryDirectory()
        place = Path(cls.folder.name)
        cls.pages = {name: place / name / "index.html" for name in ("right", "wrong", "history", "hostile")}
        files = records.unpacked(place)
        history = place / "history.db"
        records.history(history, files, CHANGE)
        hostile = place / "hostile.jsonl"
        hostile.write_text(records.hostile(), encoding="utf-8")
        right = [path for path in files.values() if "faulty" not in path.name]
        compared = place / "compared.jsonl"
        compared.write_text(records.COMPARED)
        wrong = [files["faulty"], files["reference"], files["reference-bench"], compared]
        for name, inputs in (("right", right), ("wrong", wrong), ("history", [history]), ("hostile", [hostile])):
            status, _, err = records.report(main, [*inputs, "-o", place / name])
            assert status == 0, err
        cls.files = files
        cls.browser = browser.Browser()

    @classmethod
    def stop(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def open(self, name, **options):
        self.browser.open(self.pages[name], **options)
        return self.browser

    def quiet(self, name):
        """Nothing was asked of the network, and nothing complained."""
        self.assertEqual([url for url in self.browser.requests() if not url.startswith("file:")], [])
        self.assertEqual(len(self.browser.requests()), 1, self.browser.requests())
        self.assertEqual(self.browser.complaints(), [], name)


def setUpModule():
    Page.start()


def tearDownModule():
    Page.stop()


class Load(Page):
    def test_every_page_is_quiet_small_and_has_a_verdict(self):
        for name, word in (("right", "Right"), ("wrong", "Wrong"), ("history", "Slower"), ("hostile", "Wrong")):
            page = self.open(name)
            self.quiet(name)
            self.assertLess(self.pages[name].stat().st_size, MOST)
            self.assertEqual(page.run("document.querySelector('h1 b').textContent"), word)
            self.assertTrue(page.run("document.title").startswith(word + ": "))

    def test_nothing_is_wider_than_the_window(self):
        for name in self.pages:
            for width in (360, 800, 1280):
                page = self.open(name, width=width)
                self.assertLessEqual(page.run("document.documentElement.scrollWidth"), width, (name, width))

    def test_hostile_names_are_text(self):
        page = self.open("hostile")
        self.assertIsNone(page.run("window.hacked ?? null"))
        self.assertEqual(page.run("document.querySelectorAll('script:not([type])').length"), 1)
        self.assertEqual(page.run("document.querySelectorAll('img, iframe, object, link').length"), 0)
        self.assertIn("<script>window.hacked=1</script>", page.run("document.body.textContent"))

    def test_screenshots(self):
        kinds = {"desktop": {"width": 1280}, "phone": {"width": 390}, "dark": {"width": 1280, "dark": True}}
        for name, kind in (("right", "desktop"), ("right", "phone"), ("right", "dark"), ("wrong", "desktop"),
                           ("history", "phone"), ("history", "desktop")):
            self.open(name, **kinds[kind]).shot(SHOTS / f"{name}-{kind}.png", whole=True)
        page = self.open("right", width=794)
        page.look(794, 1123, media="print")
        page.run("dispatchEvent(new Event('beforeprint'))")
        page.shot(SHOTS / "right-print.png", whole=True)
        self.assertLessEqual(page.run("document.documentElement.scrollWidth"), 794)
        self.assertGreater((SHOTS / "right-print.png").stat().st_size, 20_000)


class Numbers(Page):
    """What the figures show, read back from the page, against the records."""

    def test_heat_maps(self):
        maps = dict(self.open("right").run(CELLS))
        self.assertEqual(sorted(maps), ["blas", "reference"])
        worst = {}
        for name in ("blas", "blas-odd-groups"):
            for record in records.of(self.files[name], "verdict"):
                worst.setdefault(key_of(record), []).append(record.get("score"))
        cells = {key: (text, kind) for key, text, kind, told in maps["blas"] if told}
        self.assertEqual(cells.keys(), worst.keys())
        for key, scores in worst.items():
            text, kind = cells[key]
            if None in scores:
                self.assertEqual((text, kind), ("✓", "s0"), key)
                continue
            score = max(scores)
            self.assertEqual(text, shown(score), key)
            self.assertEqual(kind, "high" if score >= 0.7 else f"s{int(score / 0.7 * 10)}", key)

    def test_a_case_is_chosen(self):
        page = self.open("right")
        page.run("const list = document.querySelector('select[data-cases]'); list.value = [...list.options].find((one) => one.text.startsWith('odd-groups')).value; list.dispatchEvent(new Event('change'))")
        cells = {key: text for key, text, _, told in dict(page.run(CELLS))["blas"] if told}
        scores = {key_of(record): record.get("score") for record in records.of(self.files["blas-odd-groups"], "verdict")}
        self.assertEqual(cells.keys(), scores.keys())
        self.assertEqual(cells["head.logits||chain"], shown(scores["head.logits||chain"]))

    def test_failures_are_named(self):
        page = self.open("wrong")
        cells = {key: (text, kind) for key, text, kind, told in
                 dict(page.run(CELLS))["faulty (defect=conv-taps-reversed)"] if told}
        for record in records.of(self.files["faulty"], "verdict"):
            text, kind = cells[key_of(record)]
            self.assertEqual(kind == "fail", record["outcome"] == "mismatch", record)
            self.assertEqual(text.startswith("✕"), record["outcome"] == "mismatch", record)
        case = records.of(self.files["faulty"], "case")[0]
        self.assertIn(case["message"], page.run("document.querySelector('.failure').textContent"))
        self.assertEqual(page.run("document.querySelector('.failure code').textContent"), case["reproduce"])

    def test_groups_stand_where_their_times_are(self):
        page = self.open("right")
        lines = page.run("""const chart = [...document.querySelectorAll('.chart[data-level=groups]')]
            .find((one) => one.getAttribute('aria-label').startsWith('27b'));
          const left = (mark) => Number.parseFloat(mark.style.left);
          const ticks = [...chart.querySelectorAll('.axis i')].map((tick) => [left(tick), tick.textContent]);
          return [ticks, [...chart.querySelectorAll('.line:not(.head)')].map((line) => [line.querySelector('.name').textContent,
            left(line.querySelector('.mark.p0')), left(line.querySelector('.hollow')), line.querySelector('.v').textContent])]""")
        (x0, first), (x1, last) = lines[0][0], lines[0][-1]
        low, high = math.log(nanoseconds(first)), math.log(nanoseconds(last))
        found = {name: [math.exp(low + (x - x0) / (x1 - x0) * (high - low)) for x in xs[:2]] + [nanoseconds(xs[2])]
                 for name, *xs in lines[1]}
        groups = {g["group"]: g for g in records.of(self.files["27b-bench"], "bench")[0]["groups"]}
        self.assertEqual(found.keys(), groups.keys())
        for name, (median, floor, told) in found.items():
            self.assertAlmostEqual(median / groups[name]["ns"], 1, delta=2e-3)
            self.assertAlmostEqual(floor / (groups[name]["ns"] * groups[name]["share"]), 1, delta=2e-3)
            self.assertAlmostEqual(told / groups[name]["ns"], 1, delta=1e-3)

    def test_parts_of_the_block_are_as_long_as_their_shares(self):
        parts = self.open("right").run("""const row = document.querySelector('.stack-row .stack');
          return [...row.children].map((part) => [part.getAttribute('aria-label').split(',')[0], part.getBoundingClientRect().width])""")
        bench = records.of(self.files["27b-bench"], "bench")[0]
        groups = {g["group"]: g["ns"] for g in bench["groups"]}
        wide = {name: width for name, width in parts if name in groups}
        for name in groups:
            self.assertAlmostEqual(wide[name] / sum(wide.values()), groups[name] / sum(groups.values()), delta=4e-3, msg=name)

    def test_changes_stand_where_they_are(self):
        ticks, lines = self.open("wrong").run("""const chart = document.querySelector('#compared .chart');
          const left = (mark) => Number.parseFloat(mark.style.left);
          return [[...chart.querySelectorAll('.axis i')].map((tick) => [left(tick), tick.textContent]),
            [...chart.querySelectorAll('.line:not(.head)')].map((line) => [line.querySelector('.name').textContent,
              left(line.querySelector('.mark')), left(line.querySelector('.gap')), Number.parseFloat(line.querySelector('.gap').style.width)])]""")
        (x0, first), (x1, last) = ticks[0], ticks[-1]
        low, high = (float(tick.replace("−", "-").strip("%")) / 100 for tick in (first, last))
        at = {name: [low + (x - x0) / (x1 - x0) * (high - low) for x in (mark, gap, gap + wide)] for name, mark, gap, wide in lines}
        for name, wanted in (("block", (0.094, 0.09, 0.1)), ("head", (0.25, 0.24, 0.27)), ("qkv", (-0.01, -0.03, 0.01))):
            for found, value in zip(at[name], wanted):
                self.assertAlmostEqual(found, value, delta=1e-3)

    def test_samples_are_all_there(self):
        plots = self.open("right").run("""return [...document.querySelectorAll('.samples')].map((plot) => {
          const [low, high] = [...plot.querySelectorAll('.yaxis span')].filter((s, i, all) => i === 0 || i === all.length - 1)
            .map((s) => [Number.parseFloat(s.style.bottom), s.textContent]);
          return [plot.querySelector('.area').getAttribute('aria-label'), low, high, plot.textContent.includes('log scale'),
            plot.querySelector('.dots').getAttribute('d'), [...plot.querySelectorAll('.histogram i')].map((bar) => Number.parseFloat(bar.style.width))]})""")
        plot = next(p for p in plots if p[0].startswith("reference"))
        samples = records.of(self.files["reference-bench"], "bench")[0]["samples"]
        ys = [100 - float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)h0", plot[4])]
        self.assertEqual(len(ys), len(samples))
        (y0, t0), (y1, t1) = plot[1], plot[2]
        bend = math.log if plot[3] else float
        back = math.exp if plot[3] else float
        for y, sample in zip(ys, samples):
            value = back(bend(nanoseconds(t0)) + (y - y0) / (y1 - y0) * (bend(nanoseconds(t1)) - bend(nanoseconds(t0))))
            self.assertAlmostEqual(value / sample, 1, delta=2e-3)
        self.assertEqual(max(plot[5]), 100)
        self.assertAlmostEqual(sum(plot[5]) / 100 * max(map(ys.count, ys)), len(ys), delta=len(ys))

    def test_blocks_and_what_failed_has_no_time(self):
        rows = self.open("right").run(TABLE % "#blocks")
        for row in rows:
            name = {"27b / main": "27b-bench"}.get(row[1], f"{row[0]}-bench")
            block = records.of(self.files[name], "bench")[0]["block"]
            for at, value in ((4, block["device"]["min"]), (5, block["device"]["median"]), (8, block["wall"]["median"])):
                self.assertAlmostEqual(nanoseconds(row[at]) / value, 1, delta=1e-3)
        self.assertEqual(len(rows), 3)
        hostile = self.open("hostile").run("document.body.textContent")
        self.assertIn("no time, parity: mismatch", hostile)
        self.assertNotIn("123.5 ms", hostile)


class Trends(Page):
    def test_nights_and_their_change(self):
        page = self.open("history")
        dots, table = page.run("""const area = document.querySelector('.trend .area');
          return [area.querySelector('.dots').getAttribute('d').match(/M/g).length,
            [...document.getElementById(area.dataset.table).tBodies[0].rows].map((row) => [...row.cells].map((c) => c.textContent))]""")
        self.assertEqual(dots, records.NIGHTS)
        self.assertEqual(len(table), records.NIGHTS)
        changes = page.run(TABLE % "#changes")
        block = next(row for row in changes if row[1] == "block")
        self.assertGreater(float(block[3].strip("+%")), 5)
        self.assertEqual(block[2], table[-1 - CHANGE][0])
        self.assertIn(block[2], page.run("document.querySelector('h1').textContent"))

    def test_the_cursor_walks(self):
        page = self.open("history")
        page.run("document.querySelector('.trend .area').focus()")
        page.press("End")
        newest = page.run("document.querySelector('.numbers').tBodies[0].rows[0].cells[0].textContent")
        self.assertTrue(page.run("document.getElementById('tip').textContent").startswith(newest))
        page.press("ArrowLeft")
        before = page.run("document.querySelector('.numbers').tBodies[0].rows[1].cells[0].textContent")
        self.assertTrue(page.run("document.querySelector('.trend .area').getAttribute('aria-label')").startswith(before))


class Use(Page):
    def test_sorting(self):
        page = self.open("right")
        page.run("for (const part of document.querySelectorAll('#tables details')) part.open = true")
        at = page.run("return [...document.querySelectorAll('#stages thead th')].findIndex((head) => head.textContent === 'median')")
        click = f"document.querySelectorAll('#stages thead th')[{at}].querySelector('button').click()"
        medians = sorted(stage["time"]["median"] for name in ("27b-bench", "blas-bench", "reference-bench")
                         for stage in records.of(self.files[name], "bench")[0]["stages"])
        for expected, way in ((medians, "ascending"), (medians[::-1], "descending")):
            page.run(click)
            found = [nanoseconds(row[at]) for row in page.run(TABLE % "#stages")]
            self.assertEqual(len(found), len(expected))
            for value, wanted in zip(found, expected):
                self.assertAlmostEqual(value / wanted, 1, delta=1e-3)
            self.assertEqual(page.run(f"document.querySelectorAll('#stages thead th')[{at}].getAttribute('aria-sort')"), way)

    def test_filtering(self):
        page = self.open("right")
        tools = "document.querySelector('#stages').closest('figure').querySelector('.tools')"
        page.run(f"const field = {tools}.querySelector('input'); field.value = 'mlp.gate BLAS'; "
                 "field.dispatchEvent(new Event('input', {bubbles: true}))")
        rows = page.run(TABLE % "#stages")
        self.assertEqual({(row[0].split("/")[0], row[1]) for row in rows}, {("mlp.gate", "blas")})
        page.run(f"const list = [...{tools}.querySelectorAll('select')].find((one) => one.getAttribute('aria-label') === 'golden'); "
                 "list.value = '27b / main'; list.dispatchEvent(new Event('input', {bubbles: true}))")
        self.assertEqual(len(page.run(TABLE % "#stages")), 5)
        self.assertIn("5 of ", page.run(f"{tools}.textContent"))

    def test_every_kind_of_figure_is_reached_by_keys(self):
        page = self.open("right")
        page.run("document.querySelector('#stages').closest('details').open = true")
        reached = set()
        for _ in range(120):
            page.press("Tab")
            reached.add(page.run("""return [['heat', '[data-grid] [data-k]'], ['chart', '.chart .track'], ['stack', '.stack .part'],
              ['plot', '.area'], ['sort', 'th button'], ['theme', '#theme'], ['copy', 'button.copy'], ['filter', 'input']]
              .filter(([, what]) => document.activeElement.matches(what)).map(([name]) => name)[0] ?? 'other'"""))
        self.assertEqual(reached - {"other"}, {"heat", "chart", "stack", "plot", "sort", "theme", "copy", "filter"})

    def test_arrows_walk_a_heat_map(self):
        page = self.open("right")
        page.run("document.querySelector('[data-grid] [data-k][tabindex=\"0\"]').focus()")
        label = "return [document.activeElement.dataset.k, document.getElementById('tip').textContent]"
        key, told = page.run(label)
        self.assertEqual(key, "context.fc||alone")
        self.assertTrue(told.startswith("context.fc, alone: pass; score "))
        for press, expected in (("ArrowRight", "context.fc||chain"), ("ArrowDown", "context.norm||chain"),
                                ("ArrowDown", "context.k_proj|1|chain"), ("ArrowLeft", "context.k_proj|0|chain")):
            page.press(press)
            self.assertEqual(page.run(label)[0], expected)
        self.assertEqual(page.run("document.querySelectorAll('[data-grid]')[0].querySelectorAll('[tabindex=\"0\"]').length"), 1)
        page.press("Escape")
        self.assertTrue(page.run("document.getElementById('tip').hidden"))

    def test_the_pointer_is_told_the_same(self):
        page = self.open("right")
        x, y, label = page.run("""const mark = document.querySelector('[data-grid] [data-k][aria-label]');
          mark.scrollIntoView({block: 'center'}); const box = mark.getBoundingClientRect();
          return [box.left + 5, box.top + 5, mark.getAttribute('aria-label')]""")
        page.point(x, y)
        self.assertEqual(page.run("document.getElementById('tip').textContent"), label)

    def test_light_and_dark(self):
        back = "getComputedStyle(document.body).backgroundColor"
        light = self.open("right").run(back)
        page = self.open("right", dark=True)
        dark = page.run(back)
        self.assertNotEqual(light, dark)
        page.run("document.getElementById('theme').click()")
        self.assertEqual(page.run(back), light)
        page.look(800, media="print", dark=True)
        self.assertEqual(page.run(back), "rgb(255, 255, 255)")
        page.run("localStorage.clear()")

    def test_text_stands_out_from_its_ground(self):
        """At least 4.5 to 1 for text, in both schemes (WCAG 2, AA)."""
        script = """const scale = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
          const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
          const rgb = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
            return [...canvas.getImageData(0, 0, 1, 1).data]; };
          const bright = ([r, g, b]) => 0.2126 * scale(r) + 0.7152 * scale(g) + 0.0722 * scale(b);
          const ground = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255]; };
          const bad = new Set();
          for (const e of document.querySelectorAll('main *')) {
            if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
            if (getComputedStyle(e).backgroundImage !== 'none' || e.closest('[hidden]')) continue;
            const [a, b] = [bright(rgb(getComputedStyle(e).color)), bright(ground(e))].sort((x, y) => y - x);
            const contrast = (a + 0.05) / (b + 0.05);
            if (contrast < 4.5) bad.add(`${e.tagName}.${e.className}: ${contrast.toFixed(2)}`);
          }
          return [...bad]"""
        for name in ("right", "wrong", "history"):
            for dark in (False, True):
                self.assertEqual(self.open(name, dark=dark).run(script), [], (name, dark))


if __name__ == "__main__":
    reason = browser.missing()
    if reason:
        print(f"report_browser: {reason}", file=sys.stderr)
        sys.exit(3)
    unittest.main()
