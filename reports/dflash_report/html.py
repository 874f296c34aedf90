"""HTML by calls. Every text is escaped where it enters; only what these functions made goes in as it is."""

import json
from html import escape


class Html(str):
    """Text that is HTML already. Joined by + with other Html it stays so."""

    def __add__(self, other):
        return Html(str.__add__(self, other)) if isinstance(other, Html) else NotImplemented


VOID = {"input", "meta", "br", "hr", "path", "line", "rect", "circle"}


def _attribute(name, value):
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def join(parts):
    """Parts, lists of parts, None for nothing."""
    if parts is None:
        return ""
    if isinstance(parts, Html):
        return parts
    if isinstance(parts, (list, tuple)) or hasattr(parts, "__next__"):
        return Html("".join(map(join, parts)))
    return Html(escape(str(parts), quote=False))


def el(name, /, *children, **attributes):
    """An element: el("td", "a < b", class_="left"). Attributes that are None or False are left out."""
    inside = "".join(_attribute(key, value) for key, value in attributes.items() if value not in (None, False))
    if name in VOID:
        return Html(f"<{name}{inside}>" if name in ("input", "meta", "br", "hr") else f"<{name}{inside}/>")
    return Html(f"<{name}{inside}>{join(children)}</{name}>")


def framed(inside, caption):
    """What may be wider than the page scrolls by itself; its caption does not."""
    return el("figure", el("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption),
              el("figcaption", caption))


def data(name, value):
    """JSON for the page's script; no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Html(f'<script type="application/json" id="{escape(name)}">{text.replace("<", chr(92) + "u003c")}</script>')


def percent(value):
    return f"{value:.3f}".rstrip("0").rstrip(".") + "%"
