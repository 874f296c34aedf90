"use strict";
(() => {
  const all = (what, inside = document) => [...inside.querySelectorAll(what)];
  const make = (name, values = {}, ...children) => {
    const made = Object.assign(document.createElement(name), values);
    made.append(...children);
    return made;
  };
  const root = document.documentElement;
  root.classList.add("has-script");

  /* Light and dark: what the system says, until the button was pressed. */
  const remember = (value) => { try { localStorage.setItem("dflash-theme", value); } catch { /* a file may not remember */ } };
  const remembered = () => { try { return localStorage.getItem("dflash-theme"); } catch { return null; } };
  if (remembered()) root.dataset.theme = remembered();
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    remember(root.dataset.theme);
  });

  /* One box tells what a mark stands for, to the pointer and to the keyboard. */
  const tip = document.getElementById("tip");
  const tell = (words, x, y) => {
    tip.textContent = words;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x - box.width / 2, innerWidth - box.width - 4))}px`;
    tip.style.top = `${y - box.height - 12 > 4 ? y - box.height - 12 : y + 16}px`;
  };
  const hush = () => { tip.hidden = true; };
  const tellOf = (mark) => {
    const box = mark.getBoundingClientRect();
    tell(mark.getAttribute("aria-label"), box.left + box.width / 2, box.top);
  };
  const markAt = (target) => target instanceof Element && target.closest("[data-grid] [data-k][aria-label], [data-marks] [aria-label]");
  document.addEventListener("mouseover", (event) => { const mark = markAt(event.target); if (mark) tellOf(mark); });
  document.addEventListener("mouseout", (event) => { if (markAt(event.target)) hush(); });
  document.addEventListener("focusin", (event) => { const mark = markAt(event.target); if (mark) tellOf(mark); });
  document.addEventListener("focusout", hush);
  addEventListener("scroll", () => {
    const mark = markAt(document.activeElement); /* going to a mark may scroll there */
    if (mark) tellOf(mark); else hush();
  }, { passive: true });
  addEventListener("keydown", (event) => { if (event.key === "Escape") hush(); });

  /* One mark of a figure is reached by Tab, the others by the arrows. */
  const walk = (figure, marks, step) => {
    const enter = (mark) => {
      for (const other of marks()) other.tabIndex = other === mark ? 0 : -1;
    };
    const first = marks()[0];
    if (first) enter(first);
    figure.addEventListener("keydown", (event) => {
      const next = step(event.target, event.key);
      if (!next) return;
      event.preventDefault();
      enter(next);
      next.focus();
    });
  };
  const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  for (const figure of all("[data-marks]")) {
    const marks = () => all("[aria-label]", figure);
    walk(figure, marks, (from, key) => {
      const list = marks(), at = list.indexOf(from), move = DIRECTIONS[key];
      if (at < 0) return null;
      if (key === "Home") return list[0];
      if (key === "End") return list[list.length - 1];
      return move ? list[at + move[0] + move[1]] : null;
    });
  }
  /* In a grid up and down keep to the column, found by where cells are. */
  const middle = (cell) => { const box = cell.getBoundingClientRect(); return box.left + box.width / 2; };
  const vertical = (from, by) => {
    for (let row = from.closest("tr"); (row = by > 0 ? row.nextElementSibling : row.previousElementSibling);) {
      const cells = all("[data-k][aria-label]", row);
      if (cells.length) return cells.reduce((best, cell) => Math.abs(middle(cell) - middle(from)) < Math.abs(middle(best) - middle(from)) ? cell : best);
    }
    return null;
  };
  for (const grid of all("[data-grid]")) {
    walk(grid, () => all("[data-k][aria-label]", grid), (from, key) => {
      const move = DIRECTIONS[key];
      if (!move || !from.dataset.k) return null;
      if (move[1]) return vertical(from, move[1]);
      const row = all("[data-k][aria-label]", from.closest("tr"));
      return row[row.indexOf(from) + move[0]];
    });
  }

  /* Heat maps: the worst of all cases, or one. */
  for (const choice of all("select[data-cases]")) {
    const packs = JSON.parse(document.getElementById(choice.dataset.cases).textContent);
    const cells = new Map(all("[data-k]", choice.closest("details")).map((cell) => [cell.dataset.k, cell]));
    const worst = [...cells.values()].map((cell) => [cell.dataset.k, cell.textContent, cell.className, cell.getAttribute("aria-label")]);
    choice.addEventListener("change", () => {
      for (const cell of cells.values()) { cell.textContent = ""; cell.className = "none"; cell.removeAttribute("aria-label"); }
      for (const [key, sign, kind, words] of choice.value === "" ? worst : packs[Number(choice.value)]) {
        const cell = cells.get(key);
        if (!cell) continue;
        cell.textContent = sign;
        cell.className = kind;
        if (words) { cell.setAttribute("aria-label", words); cell.tabIndex = -1; }
      }
      const first = [...cells.values()].find((cell) => cell.hasAttribute("aria-label"));
      if (first) first.tabIndex = 0;
    });
  }

  /* Charts by groups or by stages. */
  for (const button of all("button[data-show]")) {
    const article = button.closest(".golden");
    const show = (level) => {
      for (const chart of all("[data-level]", article)) chart.hidden = chart.dataset.level !== level;
      for (const other of all("button[data-show]", article)) other.setAttribute("aria-pressed", String(other.dataset.show === level));
    };
    button.addEventListener("click", () => show(button.dataset.show));
    if (button.getAttribute("aria-pressed") === "true") show(button.dataset.show);
  }

  /* Plots: the nearest point to the pointer, or the next one by the arrows. */
  const wordsOf = (area) => {
    if (area.dataset.words) return area.dataset.words.split(";");
    const at = Number(area.dataset.column);
    return [...document.getElementById(area.dataset.table).tBodies[0].rows].reverse()
      .map(({ cells }) => `${cells[0].textContent}: ${cells[at].textContent}, ${cells[1].textContent}`);
  };
  for (const area of all(".area[data-words], .area[data-table]")) {
    const words = wordsOf(area);
    const points = [...area.querySelector(".dots").getAttribute("d").matchAll(/M([\d.]+) ([\d.]+)h0/g)]
      .map(([, x, y], i) => ({ x: Number(x), y: 100 - Number(y), words: words[i] }));
    const cursor = area.querySelector(".cursor"), label = area.getAttribute("aria-label");
    let at = -1;
    const go = (to) => {
      if (points.length === 0) return;
      at = Math.max(0, Math.min(points.length - 1, to));
      const { x, y, words } = points[at], box = area.getBoundingClientRect();
      cursor.style.cssText = `display:block;left:${x}%;bottom:${y}%`;
      area.setAttribute("aria-label", `${words} – ${label}`);
      tell(words, box.left + (box.width * x) / 100, box.bottom - (box.height * y) / 100);
    };
    const leave = () => { cursor.style.display = "none"; area.setAttribute("aria-label", label); hush(); };
    area.addEventListener("mousemove", (event) => {
      const box = area.getBoundingClientRect(), x = (100 * (event.clientX - box.left)) / box.width;
      let best = 0;
      points.forEach((point, i) => { if (Math.abs(point.x - x) < Math.abs(points[best].x - x)) best = i; });
      go(best);
    });
    area.addEventListener("mouseleave", leave);
    area.addEventListener("blur", leave);
    area.addEventListener("keydown", (event) => {
      const far = Math.max(1, Math.round(points.length / 20));
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, PageDown: at + far, PageUp: at - far, Home: 0, End: points.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      go(to);
    });
  }

  /* Tables: sorted by a column, narrowed by words and by lists of values. */
  const bodyOf = (table) => table.tBodies[0];
  const column = (head) => [...head.parentNode.children].indexOf(head);
  const sortBy = (table, head) => {
    const up = head.getAttribute("aria-sort") !== "ascending", at = column(head), number = head.dataset.kind === "number";
    for (const other of all("th[aria-sort]", table.tHead)) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => number ? Number.parseFloat(row.cells[at].dataset.v || "NaN") : row.cells[at].textContent;
    const compare = (a, b) => {
      if (!number) return a.localeCompare(b, undefined, { numeric: true });
      return Number.isNaN(a) ? (Number.isNaN(b) ? 0 : up ? 1 : -1) : Number.isNaN(b) ? (up ? -1 : 1) : a - b;
    };
    const rows = [...bodyOf(table).rows].map((row) => [key(row), row]);
    rows.sort((a, b) => (up ? 1 : -1) * compare(a[0], b[0]));
    bodyOf(table).append(...rows.map(([, row]) => row));
  };
  for (const table of all("table[data-sort]")) {
    for (const head of all("th", table.tHead)) {
      const button = make("button", { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sortBy(table, head));
    }
  }
  const filters = (table) => {
    const lists = [], field = make("input", { type: "search", placeholder: "words in a row" });
    field.setAttribute("aria-label", `filter: ${table.getAttribute("aria-label")}`);
    const count = make("span");
    const rows = [...bodyOf(table).rows];
    const apply = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !(words.every((word) => text.includes(word)) &&
          lists.every(([at, list]) => list.value === "" || row.cells[at].textContent === list.value));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = `${shown} of ${rows.length} rows`;
    };
    for (const head of all("th[data-filter]", table.tHead)) {
      const at = column(head), values = [...new Set(rows.map((row) => row.cells[at].textContent))];
      if (values.length < 2 || values.length > 60) continue;
      const list = make("select", {}, make("option", { value: "", textContent: `any ${head.textContent}` }),
        ...values.map((value) => make("option", { value, textContent: value })));
      list.setAttribute("aria-label", head.textContent);
      lists.push([at, list]);
    }
    const tools = make("div", { className: "tools" }, field, ...lists.map(([, list]) => list), count);
    tools.addEventListener("input", apply);
    apply();
    table.closest("figure").prepend(tools);
  };
  for (const table of all("table[data-tools]")) filters(table);

  /* Commands. */
  for (const button of all("button.copy")) {
    button.addEventListener("click", async () => {
      const code = button.previousElementSibling;
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "selected";
      }
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
  }

  /* Everything is on paper. */
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])").filter((part) => !part.querySelector("table.data"));
    for (const part of closed) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of closed) part.open = false; });
})();
