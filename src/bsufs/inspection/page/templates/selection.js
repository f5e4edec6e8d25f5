"use strict";
(async () => {
  // In an inline frame an address within the page would lead out of it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (!link) return;
    event.preventDefault();
    byId(link.hash.slice(1))?.scrollIntoView();
  });

  const compare = new Intl.Collator(undefined, { numeric: true }).compare;
  const ordered = (a, b, up) => {
    // What is missing comes last, whichever way.
    if (a === "" || b === "" || a === null || b === null) return (a === "" || a === null) - (b === "" || b === null);
    const difference = Number(a) - Number(b);
    const order = Number.isNaN(difference) ? compare(a, b) : difference;
    return up ? order : -order;
  };
  const turned = (head) => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    return up;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const button of table.tHead.querySelectorAll("button")) {
      button.addEventListener("click", () => {
        const head = button.parentElement;
        const up = turned(head);
        const value = (row) => row.cells[head.cellIndex].dataset.v ?? row.cells[head.cellIndex].textContent.trim();
        const rows = Array.from(table.tBodies[0].rows, (row) => [value(row), row]);
        rows.sort(([a], [b]) => ordered(a, b, up));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    }
  }

  const tip = byId("tip");
  const words = (event) => {
    const cells = event.target.closest("g.cells");
    if (cells) {
      const names = (cells.names ??= JSON.parse(cells.dataset.names));
      const values = (cells.values ??= JSON.parse(cells.dataset.values));
      const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(cells.getScreenCTM().inverse());
      const [column, row] = [place.x, place.y].map((at) => Math.min(names.length - 1, Math.max(0, Math.floor(at))));
      return `${names[row]} and ${names[column]}: ${(values[row * names.length + column] / 100).toFixed(2)}`;
    }
    return event.target.closest("svg *:has(> title)")?.querySelector("title").textContent ?? "";
  };
  const point = (event) => {
    const text = event.target instanceof Element ? words(event) : "";
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - width - 8))}px`;
    tip.style.top = `${event.clientY > height + 24 ? event.clientY - height - 12 : event.clientY + 16}px`;
  };
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  document.addEventListener("scroll", () => { tip.hidden = true; }, true);

  const packed = Uint8Array.from(atob(byId("columns").content.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const all = await new Response(stream).json();
  const d = all.names.length;
  for (const controls of document.querySelectorAll(".controls")) controls.hidden = false;

  // How many: everything follows the slider.
  const number = byId("number");
  const agreementAt = (k) => all.agreement.findLast(([known]) => known <= k)?.[1];
  const cut = document.querySelector("#numbers .cut");
  const chips = all.names.slice(0, all.explained.length).map(chip);
  byId("first").append(...chips.slice(0, 400));
  const follow = () => {
    const k = Number(number.value);
    byId("at").textContent = `${grouped(k)} of ${grouped(d)} columns`;
    chips.forEach((item, place) => item.classList.toggle("off", place >= k));
    const { start, end, last } = cut.dataset;
    const x = Number(start) + ((k - 1) / (Number(last) - 1 || 1)) * (end - start);
    cut.setAttribute("transform", `translate(${x - cut.getBBox().x - cut.getBBox().width / 2} 0)`);
    const tiles = [
      [all.explained[k - 1]?.toFixed(1), "%", "of the variance explained"],
      [agreementAt(k)?.toFixed(2), "", "agreement with the clusters"],
      [k > 1 ? all.redundancy[k - 1].toFixed(2) : undefined, "", "mean absolute correlation"],
    ].filter(([value]) => value !== undefined);
    byId("follow").replaceChildren(...tiles.map(([value, unit, text]) => {
      const tile = made("li");
      tile.append(made("b", value + unit), text);
      return tile;
    }));
  };
  number.addEventListener("input", follow);
  follow();

  const chosen = (button) => all.names.slice(0, button.dataset.copy || button.dataset.save ? Number(number.value) : all.kept);
  const quoted = (name) => (/[",\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const names = chosen(button);
      await copied(names.join("\n"));
      button.parentElement.querySelector("output").textContent = `${names.length} names copied`;
    });
  }
  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", () => {
      const lines = chosen(button).map((name, place) => `${place + 1},${quoted(name)}`);
      const link = made("a");
      link.href = URL.createObjectURL(new Blob([["rank,name", ...lines, ""].join("\r\n")], { type: "text/csv" }));
      link.download = "selected.csv";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }

  const features = byId("features");
  const inFour = (value) => (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e4 ? value.toPrecision(4) : String(value));
  const minus = (text) => text.replace("-", "\u2212");
  const role = (at) => (all.stands[at] ? `stands for ${grouped(all.stands[at])}` : "on its own");
  const why = (at) => all.reasons[all.reason[at]] || (at < all.kept ? role(at) : "ranks lower");
  const near = (at) => (all.closest[at] ? all.names[all.closest[at] - 1] : "");
  const percent = (values) => (at) => (values[at] === null ? "" : `${values[at]}%`);
  const fields = [
    { title: "rank", value: (at) => at + 1, kind: "n rank" },
    { title: "column", value: (at) => all.names[at], tag: "th" },
    { title: "kept", value: (at) => (at < all.kept ? 0 : 1), text: (at) => (at < all.kept ? "●" : "○"), kind: "dot" },
    { title: "closest kept column", value: near, kind: "extra", tag: "td" },
    { title: "correlation", value: (at) => all.correlation[at], text: (at) => (all.correlation[at] === null ? "" : minus((all.correlation[at] / 100).toFixed(2))), kind: "n correlation extra" },
    { title: "why", value: why, kind: "why" },
    all.again && { title: "chosen again", value: (at) => all.again[at], text: percent(all.again), kind: "n extra" },
    all.clusters && { title: "between clusters", value: (at) => all.clusters[at], text: percent(all.clusters), kind: "n extra" },
    all.score && { title: "score", value: (at) => all.score[at], text: (at) => minus(inFour(all.score[at])), kind: "n extra" },
    all.step && { title: "eliminated at step", value: (at) => all.step[at] || "", kind: "n extra" },
    all.variance && { title: "share of variance", value: (at) => all.variance[at], text: (at) => `${all.variance[at].toFixed(all.decimals)}%`, kind: "n extra" },
    all.others && { title: "chosen by others", value: (at) => all.others[at], text: (at) => `${all.others[at]} of ${all.methods.length}`, kind: "n extra" },
  ].filter(Boolean);
  const searched = all.names.map((name, at) => `${name} ${why(at)}`.toLowerCase());
  const order = all.names.map((_, at) => at);
  const heads = fields.map((field) => {
    const head = made("th", "", field.kind ?? "");
    const button = made("button", field.title);
    button.type = "button";
    head.scope = "col";
    head.append(button);
    button.addEventListener("click", () => {
      const up = turned(head), keys = all.names.map((_, at) => field.value(at));
      order.sort((a, b) => ordered(keys[a], keys[b], up));
      filter();
    });
    return head;
  });
  heads[0].setAttribute("aria-sort", "ascending");
  const headRow = made("tr");
  headRow.append(...heads);
  features.tHead.append(headRow);
  const table = longTable(byId("rows"), 33, (at) => {
    const row = made("tr", "", at < all.kept ? "kept" : "out");
    for (const field of fields) {
      const value = String((field.text ?? field.value)(at) ?? "");
      const cell = field.tag ? nameCell(field.tag, value) : made("td", value);
      cell.className = field.kind ?? "";
      if (field.tag === "th") cell.scope = "row";
      if (field.kind === "dot") cell.append(made("span", at < all.kept ? " kept" : "", "word"));
      row.append(cell);
    }
    return row;
  });
  const search = byId("search"), show = byId("show");
  function filter() {
    const wanted = search.value.trim().toLowerCase();
    const fits = (at) => (!wanted || searched[at].includes(wanted)) && (!show.value || (at < all.kept) === (show.value === "kept"));
    const shown = order.filter(fits);
    byId("shown").textContent = `${grouped(shown.length)} of ${grouped(d)} columns`;
    table.fill(shown);
  }
  search.addEventListener("input", filter);
  show.addEventListener("change", filter);
  // On paper there is no scrolling: a table of thousands shows its first rows.
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
    const most = Math.max(all.kept, 200);
    byId("on-paper").textContent = d > most ? `The first ${grouped(most)}; the page itself has all.` : "";
    byId("rows").scrollTop = 0;
    table.draw(true, most);
  });
  addEventListener("afterprint", () => table.draw());
  byId("wide").addEventListener("click", () => {
    const brief = features.classList.toggle("brief");
    byId("wide").textContent = brief ? "More details" : "Fewer details";
    byId("wide").setAttribute("aria-expanded", String(!brief));
  });
  filter();
  document.documentElement.dataset.ready = "";
})();
