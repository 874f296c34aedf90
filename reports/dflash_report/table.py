"""Tables that the page's script sorts and filters, and that read well without it."""

from dataclasses import dataclass

from .html import el, framed
from .text import DASH, count, known


ROWS = 2000  # that a table shows; a longer one helps nobody, and pages must be mailed


@dataclass(frozen=True)
class Column:
    head: str
    number: bool = False
    filter: bool = False  # a list of its values stands above the table
    about: str = ""


def cell(column, value):
    """A text, or (text, number to sort by), or (text, number, class)."""
    text, order, kind = value if isinstance(value, tuple) and len(value) == 3 else (
        *value, None) if isinstance(value, tuple) else (value, None, None)
    kinds = " ".join(part for part in ("n" if column.number else "", kind or "") if part)
    order = f"{order:.6g}" if known(order) else "" if column.number else None
    return el("td", DASH if text in ("", None) else text, class_=kinds or None, data_v=order)


def _head(column):
    return el("th", column.head, scope="col", class_="n" if column.number else None,
              data_kind="number" if column.number else "text", data_filter=column.filter or None,
              title=column.about or None)


def table(columns, rows, caption, name=None, tools=True, sortable=True):
    """A row's first cell heads it. With tools, a field and lists above narrow the rows."""
    if len(rows) > ROWS:
        caption += f"; the first {count(ROWS)} of {count(len(rows))}"
        rows = rows[:ROWS]
    head = el("thead", el("tr", map(_head, columns)))
    body = el("tbody", (el("tr", (cell(c, v) for c, v in zip(columns, row))) for row in rows))
    return framed(el("table", head, body, id=name, class_="data", aria_label=caption, data_sort=sortable or None,
                     data_tools=(tools and len(rows) > 8) or None), caption)
