
"use strict";
(() => {
  const value = (row, place) => {
    const cell = row.cells[place];
    return cell.dataset.v ?? cell.textContent.trim();
  };
  const byNumberThenText = (a, b) => {
    const difference = Number(a) - Number(b);
    return Number.isNaN(difference) ? a.localeCompare(b, undefined, { numeric: true }) : difference;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    for (const button of table.tHead.querySelectorAll("button")) {
      button.addEventListener("click", () => {
        const head = button.parentElement;
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const keyed = Array.from(body.rows, (row) => [value(row, head.cellIndex), row]);
        keyed.sort(([a], [b]) => {
          // What is missing comes last, whichever way.
          if (a === "" || b === "") return (a === "") - (b === "");
          return up ? byNumberThenText(a, b) : byNumberThenText(b, a);
        });
        body.append(...keyed.map(([, row]) => row));
      });
    }
  }

  const search = document.getElementById("search");
  const which = document.getElementById("which");
  const shown = document.getElementById("shown");
  const features = document.getElementById("features");
  const texts = new Map(
    Array.from(features.tBodies[0].rows, (row) => [
      row,
      (row.textContent + " " + row.cells[1].title).toLowerCase(),
    ])
  );
  const many = features.classList.contains("many");
  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    // Of a long table the kept are printed, unless a reader looks for others.
    features.classList.toggle("many", many && !wanted && which.value !== "out");
    let count = 0;
    for (const [row, text] of texts) {
      const fits = text.includes(wanted) && (!which.value || row.className === which.value);
      row.hidden = !fits;
      count += fits;
    }
    shown.textContent = `${count} of ${texts.size} rows`;
  };
  search.addEventListener("input", filter);
  which.addEventListener("change", filter);
  filter();
  const more = document.getElementById("more");
  features.classList.add("brief");
  more.addEventListener("click", () => {
    const brief = features.classList.toggle("brief");
    more.textContent = brief ? "More columns" : "Fewer columns";
    more.setAttribute("aria-expanded", String(!brief));
  });
  for (const controls of document.querySelectorAll(".controls")) controls.hidden = false;

  const tip = document.getElementById("tip");
  const words = (event) => {
    const cells = event.target.closest("g.cells");
    if (cells) {
      const names = (cells.names ??= JSON.parse(cells.dataset.names));
      const values = (cells.values ??= JSON.parse(cells.dataset.values));
      const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(
        cells.getScreenCTM().inverse()
      );
      const [column, row] = [place.x, place.y].map((at) =>
        Math.min(names.length - 1, Math.max(0, Math.floor(at)))
      );
      return `${names[row]} and ${names[column]}: ${(values[row * names.length + column] / 100).toFixed(2)}`;
    }
    const titled = event.target.closest("svg *:has(> title)");
    return titled ? titled.querySelector("title").textContent : "";
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
})();
