/* Draws the pictures of a Wherry report when they come into view, and the rest when the browser has time; toggles,
   quantities, light and dark, tips, tables, print. Text of the run file only ever becomes text. */
"use strict";
(() => {
  const embed = window.wherryDrawing;
  const page = JSON.parse(document.getElementById("figures").textContent);
  const root = document.documentElement;
  const tip = document.getElementById("tip");
  const PRINT_WIDTH = 680;
  const ROWS_AT_ONCE = 300;
  let printing = false;

  // ---- data -------------------------------------------------------------------------------------------------------
  const spread = (packed) => {
    if (Array.isArray(packed)) return packed;
    const values = [];
    for (const [value, count] of packed.runs) for (let i = 0; i < count; i++) values.push(value);
    return values;
  };

  const rowsOf = (picture) => {
    const columns = {};
    for (const [key, packed] of Object.entries(picture.columns)) {
      if (packed.words) columns[key] = spread(packed.at).map((i) => packed.words[i]);
      else if (!packed.near) columns[key] = spread(packed);
    }
    for (const [key, packed] of Object.entries(picture.columns)) {
      if (!packed.near) continue;
      const of = columns[packed.near];
      columns[key] = spread(packed.at).map((t, i) => (t === null ? null : of[i] * (1 + t / 1000)));
    }
    const keys = Object.keys(columns);
    const length = keys.length ? columns[keys[0]].length : 0;
    return Array.from({ length }, (_, i) => Object.fromEntries(keys.map((key) => [key, columns[key][i]])));
  };

  // ---- figures in words -------------------------------------------------------------------------------------------
  const figure = (value) => {
    if (!Number.isFinite(value)) return "";
    if (Math.abs(value) >= 1e15) return value.toExponential(2);
    const digits = Math.abs(value) >= 1000 ? 0 : 4 - Math.ceil(Math.log10(Math.max(Math.abs(value), 1e-9)) + 1e-9);
    return value.toLocaleString("en", { maximumFractionDigits: Math.min(Math.max(digits, 0), 12) });
  };
  const size = (value) => {
    for (const [unit, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [1024, "KiB"]])
      if (value >= unit && value % unit === 0) return `${figure(value / unit)} ${name}`;
    return `${value.toLocaleString("en")} B`;
  };
  const units = { time: " ns", ticks: " ticks", rate: " GB/s", tickrate: " bytes/tick", bitrate: " × 10^6 bit/s",
    packetrate: " million packets/s", ratio: "", count: "", text: "" };
  const written = (row, [keys, , kind]) => {
    const [form, range] = kind.split(" ");
    const values = keys.split(" ").map((key) => (key === "over" && row.best ? row.ns / row.best : row[key]));
    if (values.some((value) => value === null || value === undefined || value === "")) return "";
    if (form === "text") return String(values[0]);
    if (form === "size") return size(values[0]);
    const shown = values.map((value) => (form === "ratio" ? value.toFixed(3) : figure(value)));
    return shown.join(range ? " to " : "") + units[form];
  };

  const element = (tag, text, attributes = {}) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  const tellOf = (picture) => (_, event, item, value) => {
    if (!value || typeof value !== "object") {
      tip.hidden = true;
      return;
    }
    tip.replaceChildren();
    for (const line of picture.tips) {
      const text = written(value, line);
      if (!text) continue;
      if (!line[1]) tip.append(element("b", text));
      else {
        const pair = element("span");
        pair.append(element("i", line[1]), element("span", text));
        tip.append(pair);
      }
    }
    tip.hidden = !tip.childNodes.length;
    const { width, height } = tip.getBoundingClientRect();
    const x = event.clientX + 14 + width > innerWidth ? event.clientX - width - 10 : event.clientX + 14;
    const y = event.clientY + 14 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 14;
    tip.style.left = `${Math.max(4, x)}px`;
    tip.style.top = `${Math.max(4, y)}px`;
  };
  addEventListener("scroll", () => (tip.hidden = true), { passive: true });
  addEventListener("keydown", (event) => event.key === "Escape" && (tip.hidden = true));

  // ---- drawing ----------------------------------------------------------------------------------------------------
  const dark = () =>
    !printing && (root.dataset.shade ? root.dataset.shade === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);

  /* As in picture.py. */
  const grained = (width, layout) => Math.max(width - (width % layout.grain), 80);
  const BROKEN =
    "lastindexof(datum.label, ', ') < 0 ? datum.label : [slice(datum.label, 0, lastindexof(datum.label, ', ') + 1), " +
    "slice(datum.label, lastindexof(datum.label, ', ') + 2)]";
  const labelled = (spec, left, broken) => {
    for (const layer of spec.layer ?? [spec]) {
      const y = layer.encoding?.y;
      if (!y?.axis || y.type !== "nominal") continue;
      y.axis.labelLimit = left - 20;
      if (broken) y.axis.labelExpr = BROKEN;
    }
  };

  const sized = (spec, layout, width) => {
    if (layout.panels <= 1) {
      const inner = spec.facet ? spec.spec : spec;
      const left = Math.min(layout.left, Math.max(Math.floor(width / 2), 130));
      inner.width = grained(Math.min(width - left, layout.most), layout);
      labelled(inner, left, layout.left > left);
      if (layout.square) inner.height = inner.width;
      return spec;
    }
    const room = width - layout.left;
    const across = Math.max(1, Math.min(layout.panels, layout.across, Math.floor(room / (layout.least + 16))));
    const inner = grained(Math.min(Math.floor(room / across) - 16, layout.most), layout);
    spec.columns = across;
    if (layout.panels > across && layout.panels % across) spec.resolve = { ...spec.resolve, axis: { x: "independent" } };
    spec.spec.width = inner;
    if (layout.square) spec.spec.height = inner;
    return spec;
  };

  const ERRORS = 1;
  const refuse = () => Promise.reject(new Error("the page asks no network"));
  const plots = [];

  class Plot {
    constructor(figure) {
      this.figure = figure;
      this.picture = page.pictures[figure.id];
      this.box = figure.querySelector(".drawing");
      this.group = figure.closest(".group");
      this.view = null; // when it is drawn
      this.drawing = null; // from when on it is being drawn
      this.turn = 0;
      this.width = 0;
      for (const choice of figure.querySelectorAll(".views input")) choice.addEventListener("change", () => this.draw());
      const details = figure.querySelector("details.figures");
      details.addEventListener("toggle", () => details.open && this.tabulate(details.querySelector(".rows")));
    }

    shown() {
      const on = new Set([...this.group.querySelectorAll(".toggles input:checked")].map((box) => box.value));
      return this.picture.series.filter((name) => on.has(name));
    }

    draw() {
      const picture = this.picture;
      const width = printing ? PRINT_WIDTH : this.box.clientWidth;
      if (!width) return;
      const chosen = Number(this.figure.querySelector(".views input:checked")?.value ?? 0);
      const shade = dark() ? "dark" : "light";
      const spec = sized(structuredClone(picture.views[chosen].spec), picture.layout, width);
      spec.$schema = "https://vega.github.io/schema/vega-lite/v6.json";
      spec.params = [{ name: "shown", value: this.shown() }];
      spec.data = { values: rowsOf(picture) };
      spec.config = { ...page.look[shade], range: { category: picture[shade] } };
      const turn = ++this.turn;
      this.width = width;
      this.drawing = embed(this.box, spec, {
        mode: "vega-lite",
        renderer: picture.heavy ? "canvas" : "svg",
        actions: false,
        ast: true /* expressions are walked through, not compiled: the page's policy forbids to make code */,
        defaultStyle: false,
        logLevel: ERRORS,
        loader: { load: refuse, sanitize: refuse },
        tooltip: tellOf(picture),
      }).then((drawn) => {
        if (turn !== this.turn) {
          drawn.finalize();
          return;
        }
        this.result?.finalize();
        this.result = drawn;
        this.view = drawn.view;
        this.figure.dataset.drawn = shade;
        this.toggled();
        tell();
      });
    }

    toggled() {
      const shown = this.shown();
      if (this.picture.one) this.figure.hidden = !shown.length;
      else if (this.view) this.view.signal("shown", shown).run();
    }

    /* All figures of the picture, some hundred rows at a time. */
    tabulate(into) {
      if (into.childNodes.length) return;
      const picture = this.picture;
      const rows = rowsOf(picture);
      const tips = picture.tips.filter((line) => rows.some((row) => written(row, line)));
      const names = { routine: "routine", panel: "where", row: "case", region: "region", about: "what it is" };
      const table = element("table");
      const head = element("tr");
      for (const line of tips) head.append(element("th", line[1] || names[line[0]] || line[0], { scope: "col" }));
      table.append(element("thead"), element("tbody"));
      table.tHead.append(head);
      const more = element("button", "", { type: "button" });
      let next = 0;
      const add = () => {
        for (const row of rows.slice(next, next + ROWS_AT_ONCE)) {
          const line = element("tr");
          for (const tip of tips) line.append(element("td", written(row, tip), tip[2] === "text" ? { class: "left" } : {}));
          table.tBodies[0].append(line);
        }
        next += ROWS_AT_ONCE;
        more.hidden = next >= rows.length;
        more.textContent = `${Math.min(ROWS_AT_ONCE, rows.length - next)} more of ${rows.length} rows`;
      };
      more.addEventListener("click", add);
      const save = element("button", "Save as CSV", { type: "button" });
      save.addEventListener("click", () => saveCsv(picture, rows));
      add();
      into.setAttribute("tabindex", "0");
      into.append(save, table, more);
    }
  }

  const saveCsv = (picture, rows) => {
    const keys = Object.keys(picture.columns);
    /* A spreadsheet would take a text that begins so for a formula. */
    const cell = (value) => {
      if (typeof value !== "string") return value === null || value === undefined ? "" : String(Number(value.toPrecision(6)));
      return `"${(/^[=+\-@\t]/.test(value) ? "'" : "") + value.replaceAll('"', '""')}"`;
    };
    const text = [keys.join(","), ...rows.map((row) => keys.map((key) => cell(row[key])).join(","))].join("\r\n") + "\r\n";
    const link = element("a", "", {
      href: URL.createObjectURL(new Blob([text], { type: "text/csv" })),
      download: `${picture.title.replace(/[^\w.-]+/g, "-").slice(0, 60)}.csv`,
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  // ---- when -------------------------------------------------------------------------------------------------------
  const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 30));
  const tell = () => (root.dataset.drawn = plots.every((plot) => plot.view) ? "all" : "some");
  const drawOnce = (plot) => plot.drawing || plot.draw();
  const drawRest = () => {
    const plot = plots.find((candidate) => !candidate.drawing && candidate.box.clientWidth);
    if (!plot) return;
    plot.draw();
    plot.drawing.then(() => later(drawRest));
  };
  const redraw = () => plots.forEach((plot) => plot.drawing && plot.draw());

  for (const figure of document.querySelectorAll("figure")) plots.push(new Plot(figure));
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) if (entry.isIntersecting) drawOnce(plots.find((plot) => plot.figure === entry.target));
    },
    { rootMargin: "200px" },
  );
  plots.forEach((plot) => watcher.observe(plot.figure));
  tell();
  /* Whoever takes a picture of the page as soon as it is loaded finds what is in view; the observer tells too late. */
  const inView = (plot) => plot.box.clientWidth && plot.figure.getBoundingClientRect().top < innerHeight;
  plots.filter(inView).forEach(drawOnce);
  later(drawRest);

  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (!printing) plots.forEach((plot) => plot.drawing && plot.box.clientWidth !== plot.width && plot.draw());
    }, 150);
  });

  // ---- what a person can change -----------------------------------------------------------------------------------
  for (const group of document.querySelectorAll(".group")) {
    const own = () => plots.filter((plot) => plot.group === group);
    const boxes = [...group.querySelectorAll(".toggles input")];
    boxes.forEach((box) => box.addEventListener("change", () => own().forEach((plot) => plot.toggled())));
    for (const [kind, on] of [[".all", true], [".none", false]])
      group.querySelector(kind).addEventListener("click", () => {
        boxes.forEach((box) => (box.checked = on));
        own().forEach((plot) => plot.toggled());
      });
  }

  const button = document.getElementById("shade");
  const name = () => (button.textContent = dark() ? "Light" : "Dark");
  button.addEventListener("click", () => {
    root.dataset.shade = dark() ? "light" : "dark";
    name();
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    name();
    redraw();
  });
  name();

  /* Paper is white and shows everything. */
  let before = null;
  addEventListener("beforeprint", () => {
    before = { shade: root.dataset.shade, open: [...document.querySelectorAll("details.tables[open]")] };
    printing = true;
    root.dataset.shade = "light";
    document.querySelectorAll("details.tables").forEach((details) => (details.open = true));
    plots.forEach((plot) => plot.draw());
  });
  addEventListener("afterprint", () => {
    printing = false;
    if (before.shade) root.dataset.shade = before.shade;
    else delete root.dataset.shade;
    document.querySelectorAll("details.tables").forEach((details) => (details.open = before.open.includes(details)));
    redraw();
  });
})();
