"""The page: sections in the order in which a maintainer asks, one style, one script, nothing from elsewhere."""

import base64
import hashlib
from pathlib import Path

from . import summary, view_about, view_compare, view_parity, view_samples, view_tables, view_time, view_top, view_trends
from .html import Html, el, join

ASSETS = Path(__file__).parent / "assets"
NAMES = {"overview": "Overview", "parity": "Parity", "time": "Time", "compared": "Compared", "samples": "Samples", "trends": "Trends",
         "tables": "Tables", "environment": "Environment", "reproduce": "Reproduce", "words": "Words"}


def asset(name):
    return Html((ASSETS / name).read_text(encoding="utf-8"))


def style():
    """Colours of light and dark, once each, where the system, the button or paper asks for them."""
    light, dark = asset("light.css"), asset("dark.css")
    return Html(f""":root {{{light}}}
:root[data-theme="dark"] {{{dark}}}
@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{{dark}}} }}
@media print {{ :root:root:root {{{light} --bg: #fff; --ink: #000; --soft: #444; }} }}
{asset("report.css")}""")


def _policy(script):
    """No request can leave the page, and no other script than its own runs in it."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _head(title, script):
    return el("head", el("meta", charset="utf-8"),
              el("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
              el("meta", name="viewport", content="width=device-width, initial-scale=1"),
              el("meta", name="color-scheme", content="light dark"), el("title", title),
              Html(f"<style>{style()}</style>"))


def _bar(title, sections):
    links = [el("a", NAMES[name], href=f"#{name}") for name, part in sections if part]
    toggle = el("button", "◐", type="button", id="theme", class_="js", aria_label="light or dark",
                title="light or dark")
    return el("header", el("span", title, class_="brand"), el("nav", links, aria_label="sections"), toggle)


def _footer(figures):
    names = ", ".join(f"figures/{name}" for name in figures)
    return el("footer", el("p", f"Figures beside this page, as SVG and PNG: {names}." if names else "",
                           " Made by dflash-harness report."))


def page(results, title, figures, trends_only=False):
    views = [("overview", view_top.section), ("parity", view_parity.section), ("time", view_time.section),
             ("compared", view_compare.section), ("samples", view_samples.section), ("trends", view_trends.section), ("tables", view_tables.section),
             ("environment", view_about.section), ("reproduce", view_about.reproduce)]
    if trends_only:
        views = [view for view in views if view[0] in ("overview", "trends")]
    sections = [(name, view(results)) for name, view in views] + [("words", view_about.words())]
    script = asset("report.js")
    tip = el("div", id="tip", role="status", aria_hidden="true", hidden=True)
    body = el("body", _bar(title, sections), el("main", [part for _, part in sections]), _footer(figures), tip,
              Html(f"<script>{script}</script>"))
    verdict = summary.verdict(results)
    name = f"{verdict.word}: {verdict.line} – {title}"
    return "<!doctype html>\n" + join(el("html", _head(name, script), body, lang="en")) + "\n"
