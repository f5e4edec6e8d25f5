"use strict";
(() => {
  const show = (id, shown = true) => { byId(id).hidden = !shown; };
  const write = (id, text) => { if (byId(id).textContent !== text) byId(id).textContent = text; };
  const complain = (id, text) => { write(id, text); show(id, Boolean(text)); };
  const counted = (count, one, many = `${one}s`) => `${grouped(count)} ${count === 1 ? one : many}`;
  const inWords = (bytes) => {
    const units = ["bytes", "KB", "MB", "GB", "TB"];
    let place = 0;
    for (; bytes >= 1000 && place < 4; place += 1) bytes /= 1000;
    return `${bytes.toFixed(place ? 1 : 0)} ${units[place]}`;
  };
  const inTime = (seconds) => (seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`);

  // The token has become a cookie: it need not stay in sight.
  history.replaceState(null, "", "/");

  const roles = { "": "as read", number: "number", category: "category", date: "date", ignore: "leave out", "never-keep": "never keep", "must-keep": "always keep", label: "label", "adjust-for": "adjust for", "batch-key": "batch" };
  const carried = new Set(["ignore", "label", "adjust-for", "batch-key"]);
  const options = () => Object.entries(roles).map(([value, text]) => new Option(text, value));
  let state = null, columns = null, given = new Map(), shownReading = 0, shownRun = 0, shownResult = 0, upload = null, timer = 0, missed = 0, isOurs = false, asked = null;

  const ask = async (path, method = "GET", body = undefined) => {
    const answer = await fetch(path, { method, body });
    const document = await answer.json().catch(() => ({ error: `The app answered ${answer.status}.` }));
    if (!answer.ok) throw new Error(document.error ?? `The app answered ${answer.status}.`);
    return document;
  };
  const change = async (path, body, where, method = "POST") => {
    complain(where, "");
    try {
      await render(await ask(path, method, body));
    } catch (error) {
      complain(where, error.message);
    }
    look(0);
  };
  const look = (wait) => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      try {
        await render(await ask("/state"));
        missed = 0;
      } catch {
        missed += 1;
      }
      show("lost", missed > 1);
      const busy = state && (state.uploading || [state.reading, state.run].some((job) => job?.status === "running"));
      look(busy || missed === 1 ? 300 : document.hidden ? 5000 : 1500);
    }, wait);
  };

  // 1 Table
  const send = (file) => {
    if (!file || upload) return;
    complain("table-error", "");
    if (file.size > state.limit) {
      complain("table-error", `${visible(file.name)} has ${inWords(file.size)}, and the limit is ${inWords(state.limit)}. Start the app with a larger --limit-size, or name the file: bsufs app FILE.`);
      return;
    }
    const request = new XMLHttpRequest();
    upload = { request, sent: 0, size: file.size, name: file.name };
    request.upload.addEventListener("progress", (event) => { upload.sent = event.loaded; draw(); });
    request.addEventListener("loadend", () => {
      upload = null;
      let answer = {};
      try { answer = JSON.parse(request.responseText); } catch { /* It ended without an answer. */ }
      if (request.status !== 200) complain("table-error", answer.error ?? "The upload was canceled.");
      look(0);
    });
    request.open("PUT", `/table?${new URLSearchParams({ name: file.name })}`);
    request.send(file);
    draw();
  };
  const drop = byId("drop"), choose = byId("choose");
  choose.addEventListener("change", () => { send(choose.files[0]); choose.value = ""; });
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
    // A file that is dropped beside it must not replace the page.
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", (kind === "dragenter" || kind === "dragover") && drop.contains(event.target));
      if (kind === "drop" && event.dataTransfer) send(event.dataTransfer.files[0]);
    });
  }
  byId("stop-reading").addEventListener("click", () => (upload ? upload.request.abort() : change("/cancel", undefined, "table-error")));
  byId("read-again").addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target.elements;
    const reading = { transpose: form.transpose.checked, header: !form["no-header"].checked, delimiter: form.delimiter.value, array: form.array.value };
    change("/read", JSON.stringify(reading), "table-error");
  });

  // 2 Columns
  const body = byId("list").tBodies[0];
  let fitting = [];
  byId("all-as").append(...options());
  const list = longTable(byId("rows"), 38, (at) => {
    const name = columns.names[at], role = given.get(name) ?? "", row = made("tr");
    row.classList.toggle("changed", Boolean(role));
    row.classList.toggle("unused", role ? carried.has(role) || role === "never-keep" : columns.kinds[at] === "left out");
    const head = nameCell("th", name), kind = made("td", columns.kinds[at], "kind"), select = made("select");
    head.scope = "row";
    const why = columns.values[at] ? `${grouped(columns.values[at])} values` : columns.why[at];
    if (why) kind.append(made("span", ` · ${visible(why)}`));
    kind.title = kind.textContent;
    select.append(...options());
    select.value = role;
    select.dataset.at = String(at);
    select.setAttribute("aria-label", `Use ${visible(name)}`);
    const cell = made("td", "", "role");
    cell.append(select);
    row.append(head, kind, made("td", columns.gaps[at] ? grouped(columns.gaps[at]) : "", "n gaps"), cell);
    return row;
  });
  const filter = () => {
    const wanted = byId("search").value.trim().toLowerCase(), kind = byId("show").value;
    fitting = columns.names.map((_, at) => at).filter((at) => (!wanted || columns.names[at].toLowerCase().includes(wanted))
      && (!kind || (kind === "gaps" ? columns.gaps[at] > 0 : kind === "changed" ? given.has(columns.names[at]) : columns.kinds[at] === kind)));
    write("shown", fitting.length === columns.names.length ? "" : `${grouped(fitting.length)} of ${counted(columns.names.length, "column")}`);
    byId("all-as").value = "";
    byId("all-as").disabled = fitting.length === 0;
    list.fill(fitting);
  };
  const count = () => {
    const usable = columns.names.filter((name, at) => (given.has(name) ? !carried.has(given.get(name)) : columns.kinds[at] !== "left out")).length;
    const out = columns.names.length - usable;
    write("columns-facts", `${counted(usable, "column")} to select from${out ? `, ${grouped(out)} left out` : ""}`);
    byId("k").max = String(usable);
    write("k-of", `of ${grouped(usable)}`);
    compare();
  };
  const give = (at, role) => {
    const name = columns.names[at];
    if (role) given.set(name, role); else given.delete(name);
    // There is one label at most.
    if (role === "label") for (const [other, has] of given) if (has === "label" && other !== name) given.delete(other);
  };
  body.addEventListener("change", (event) => {
    const at = Number(event.target.dataset.at);
    give(at, event.target.value);
    list.draw();
    body.querySelector(`select[data-at="${at}"]`)?.focus({ preventScroll: true });
    count();
  });
  byId("all-as").addEventListener("change", (event) => {
    for (const at of fitting) give(at, event.target.value);
    list.draw();
    count();
  });
  byId("search").addEventListener("input", filter);
  byId("show").addEventListener("change", filter);
  const takeColumns = () => {
    show("columns");
    show("select");
    const n = columns.names.length;
    const told = columns.notices.map(visible);
    if (columns.carried.length) told.push(`Row names are carried along.`);
    if (columns.scale[1]) told.push(`${columns.scale[0] === "standard" ? "Columns are brought to variance 1 while selecting" : "Columns keep their scale"}: ${visible(columns.scale[1])}.`);
    byId("notices").replaceChildren(...told.map((text) => made("li", text)));
    const kinds = { "": ["all columns", n] };
    for (const [kind, words] of [["number", "numbers"], ["category", "categories"], ["date", "dates"], ["left out", "left out"]]) kinds[kind] = [words, columns.kinds.filter((one) => one === kind).length];
    kinds.gaps = ["with gaps", columns.gaps.filter(Boolean).length];
    byId("show").replaceChildren(...Object.entries(kinds).filter(([, [, count]]) => count).map(([value, [words, count]]) => new Option(`${words} (${grouped(count)})`, value)), new Option("changed by you", "changed"));
    byId("search").value = "";
    filter();
    count();
  };

  // 3 Selection
  const form = byId("settings"), fields = form.elements;
  const settings = () => ({
    k: fields.many.value === "auto" ? "auto" : String(Number(fields.k.value)),
    purpose: fields.purpose.value,
    roles: Object.fromEntries(given),
    group_by: fields.groups.value === "mark" ? fields.group_by.value : "",
    group_file: fields.groups.value === "file",
    scale: fields.scale.value,
    missing: fields.missing.value,
    center_rows: fields.center_rows.checked,
    seed: Number(fields.seed.value),
    report: fields.report.checked,
  });
  const fill = (old) => {
    fields.many.value = old.k === "auto" ? "auto" : "k";
    fields.k.value = old.k === "auto" ? "" : old.k;
    for (const name of ["purpose", "scale", "missing", "seed"]) fields[name].value = old[name];
    for (const name of ["center_rows", "report"]) fields[name].checked = old[name];
    fields.groups.value = old.group_file ? "file" : old.group_by ? "mark" : "";
    if (old.group_by) fields.group_by.value = old.group_by;
    given = new Map(Object.entries(old.roles));
    adapt();
  };
  const ordered = (all) => JSON.stringify({ ...all, roles: Object.entries(all.roles).sort() });
  function compare() {
    const isOld = state?.run?.status === "done" && ordered(settings()) !== ordered(asked);
    const canceled = state?.run?.status === "canceled" ? `Canceled after ${inTime(state.run.seconds)}.` : "";
    complain("changed", isOld ? "The settings have changed since the result below." : canceled);
  }
  const adapt = () => {
    show("mark-field", fields.groups.value === "mark");
    show("groups-field", fields.groups.value === "file");
    fields.k.required = fields.many.value === "k";
    compare();
  };
  form.addEventListener("input", adapt);
  byId("k").addEventListener("input", () => { fields.many.value = "k"; adapt(); });
  byId("many-k").addEventListener("change", () => byId("k").focus());
  byId("groups-file").addEventListener("change", (event) => change("/groups", event.target.files[0], "run-error", "PUT"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    isOurs = true;
    change("/run", JSON.stringify(settings()), "run-error");
  });
  byId("stop-run").addEventListener("click", () => change("/cancel", undefined, "run-error"));

  // 4 Result
  const titles = { output: "Reduced table", names: "Names, best first", ranking: "All columns, ranked", report: "Report", json: "All results" };
  const takeResult = async () => {
    const run = state.run;
    shownResult = run.number;
    byId("downloads").replaceChildren(...Object.entries(run.files).map(([key, name]) => {
      const item = made("li"), link = made("a");
      link.href = `/files/${encodeURIComponent(key)}`;
      link.download = "";
      link.append(made("b", titles[key] ?? "Names for the command"), made("span", name));
      item.append(link);
      return item;
    }));
    write("command", run.command);
    write("lines", run.lines.join("\n"));
    write("result-facts", "");
    byId("frame").replaceChildren();
    show("names", !("report" in run.files));
    show("alone", "report" in run.files);
    if ("report" in run.files) {
      const frame = made("iframe");
      frame.title = "Report";
      frame.allow = "clipboard-write";
      frame.sandbox = "allow-scripts allow-downloads allow-modals";
      frame.src = `/report?${run.number}`;
      byId("frame").append(frame);
    }
    const result = await ask("/files/json");
    write("python", result.python);
    write("result-facts", `${grouped(result.selected.length)} of ${counted(result.n_features, "column")} kept`);
    byId("names").replaceChildren(...result.selected.slice(0, 400).map(({ name }) => chip(name)));
  };
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      await copied(byId(button.dataset.copy).textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  const bar = (id, share) => {
    if (share === null) byId(id).removeAttribute("value"); else byId(id).value = share;
  };
  function draw() {
    const { table, reading, run } = state, isReading = reading?.status === "running", isRunning = run?.status === "running";
    write("limit", inWords(state.limit));
    show("file", Boolean(table));
    drop.classList.toggle("again", Boolean(table));
    write("drop-text", table ? "Drop another table here" : "Drop a table here");
    drop.classList.toggle("off", Boolean(upload) || state.uploading || isReading || isRunning);
    choose.disabled = drop.classList.contains("off");
    document.title = `${isRunning ? "… " : ""}${table ? `${visible(table.name)} · ` : ""}bsufs`;
    if (table) {
      write("file-name", visible(table.name));
      write("file-facts", `${table.size}${columns ? `, ${counted(columns.n_rows, "row")}, ${counted(columns.names.length, "column")}` : ""}`);
    }
    show("reading", Boolean(upload) || state.uploading || isReading);
    show("stop-reading", Boolean(upload) || !state.uploading);
    if (upload) {
      write("reading-text", `Uploading ${visible(upload.name)}: ${inWords(upload.sent)} of ${inWords(upload.size)}`);
      bar("reading-bar", upload.size ? upload.sent / upload.size : null);
    } else if (state.uploading) {
      write("reading-text", "A table is being uploaded in another tab");
      bar("reading-bar", null);
    } else if (isReading) {
      write("reading-text", `Reading the table${reading.detail ? `: ${reading.detail}` : ""}`);
      bar("reading-bar", reading.share);
    }
    show("as-read", Boolean(table) && !isReading && !upload);
    show("run", isRunning);
    byId("go").disabled = isRunning;
    if (isRunning) {
      const last = run.steps.at(-1)?.name ?? "starting";
      write("run-text", `${visible(last[0].toUpperCase() + last.slice(1))}${run.detail ? `: ${visible(run.detail)}` : ""} · ${inTime(run.seconds)}`);
      bar("run-bar", run.share);
      byId("steps").replaceChildren(...run.steps.slice(0, -1).map(({ name, seconds }) => {
        const step = made("li", visible(name));
        step.append(made("span", inTime(seconds)));
        return step;
      }));
    }
    show("result", run?.status === "done");
    compare();
  }
  const render = async (fresh) => {
    state = fresh;
    const { reading, run } = state;
    if (reading && reading.number !== shownReading) {
      if (reading.status === "running") {
        complain("table-error", "");
        columns = null;
        for (const part of ["columns", "select"]) show(part, false);
      } else {
        shownReading = reading.number;
        const old = state.options, again = byId("read-again").elements;
        again.transpose.checked = old.transpose;
        again["no-header"].checked = !old.header;
        again.delimiter.value = old.delimiter;
        again.array.value = old.array;
        byId("as-read").open = reading.status === "failed";
        byId("groups-file").value = "";
        given = new Map();
        columns = reading.status === "done" ? await ask("/columns") : null;
        if (columns) takeColumns();
        else complain("table-error", reading.error || "Reading was canceled.");
      }
    }
    if (columns && run && run.number !== shownRun) {
      shownRun = run.number;
      asked = await ask("/settings");
      fill(asked);
      complain("run-error", "");
      list.draw();
      count();
    }
    if (columns && run?.status === "failed") complain("run-error", visible(run.error));
    if (columns && run?.status === "done" && run.number !== shownResult) await takeResult();
    draw();
    // Whoever has started it is led to the result; who reads elsewhere in another tab is not.
    if (isOurs && run && run.status !== "running") {
      isOurs = false;
      if (run.status === "done") byId("result").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    }
  };
  look(0);
})();
