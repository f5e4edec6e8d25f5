"use strict";
// What the report and the app have in common.
const byId = (id) => document.getElementById(id);
const made = (tag, text = "", kind = "") => {
  const element = document.createElement(tag);
  element.textContent = text;
  if (kind) element.className = kind;
  return element;
};
const grouped = (count) => count.toLocaleString("en-US");
// Characters that steer the display are shown, not obeyed; those that join letters are letters.
const escapes = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const hex = (code) => (code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`);
const visible = (name) => name.replace(/(?![\u200c\u200d])[\p{C}\p{Zl}\p{Zp}]/gu, (c) => escapes[c] ?? hex(c.codePointAt(0)));
const chip = (name) => {
  const letters = [...visible(name)];
  const item = made("li", letters.length > 48 ? `${letters.slice(0, 29).join("")}…${letters.slice(-18).join("")}` : letters.join(""));
  item.dir = "auto";
  item.title = letters.length > 48 ? letters.slice(0, 300).join("") : "";
  return item;
};
// A cell with a name; of a long one the end stays in sight, which often tells it from others.
const nameCell = (tag, name) => {
  const text = visible(name), cell = made(tag), box = made("span", "", "named");
  // Letters of other scripts take their shape from those beside them.
  const end = text.length > 12 && /^[\u0020-\u058f\u3000-\u9fff]*$/.test(text) ? text.length - 6 : text.length;
  box.append(...[text.slice(0, end), text.slice(end)].filter(Boolean).map((part) => made("span", part)));
  cell.append(box);
  cell.dir = "auto";
  cell.title = text;
  return cell;
};
const copied = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A frame may not write to the clipboard, but copying what is selected is allowed.
    const area = made("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
};
// A table in a box that scrolls: of any number of rows only those in sight are made.
const longTable = (box, height, rowOf) => {
  const table = box.querySelector("table");
  let items = [], first = -1;
  const gap = (size) => {
    const row = made("tr", "", "gap"), cell = made("td");
    cell.style.height = `${size}px`;
    row.append(cell);
    row.setAttribute("aria-hidden", "true");
    return row;
  };
  // Some more than the box can show when it is full.
  const draw = (force = true, most = Math.ceil(Math.max(box.clientHeight, 720) / height) + 20) => {
    const from = Math.max(0, Math.min(Math.floor(box.scrollTop / height) - 10, items.length - most));
    if (!force && Math.abs(from - first) < 5) return;
    first = from;
    const rows = items.slice(from, from + most).map((item, place) => {
      const row = rowOf(item);
      row.setAttribute("aria-rowindex", String(from + place + 2));
      return row;
    });
    table.tBodies[0].replaceChildren(gap(from * height), ...rows, gap((items.length - from - rows.length) * height));
  };
  const fill = (all) => {
    items = all;
    table.setAttribute("aria-rowcount", String(items.length + 1));
    box.scrollTop = 0;
    draw();
  };
  box.addEventListener("scroll", () => draw(false), { passive: true });
  addEventListener("resize", () => draw());
  return { draw, fill };
};
