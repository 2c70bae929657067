"use strict";
// Draws the charts of a report from the JSON in the page: SVG, no library, no request.
window.drawReport = () => {
  const holder = document.getElementById("data");
  if (!holder) return;  // a page without a run yet
  const data = JSON.parse(holder.textContent);
  const zh = data.language === "zh";
  const say = (en, cn) => (zh ? cn : en);
  const names = {
    input_wait: ["waiting for data", "等待数据"], copy: ["copy", "拷贝"], forward: ["forward", "前向"],
    backward: ["backward", "反向"], optimizer: ["optimizer", "优化器"], communication: ["communication", "通信"],
    synchronisation: ["synchronisation", "同步"], log: ["log", "日志"], other: ["other", "其他"],
  };
  const phases = Object.keys(names);
  const SVG = "http://www.w3.org/2000/svg";
  const make = (tag, attributes = {}, text = "") => {
    const node = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    return node;
  };
  const html = (tag, attributes = {}, text = "") => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    return node;
  };
  const dashes = ["", "6 3", "2 2", "8 3 2 3"];
  const colour = (i) => `var(--r${i % 4})`;

  function drawSplit(place) {
    const used = phases.filter((p) => data.runs.some((r) => (r.split_percent[p] || 0) >= 0.05));
    for (const run of data.runs) {
      const row = html("div", { class: "barrow" });
      const parts = used.map((p) => [p, run.split_percent[p] || 0]).filter(([, v]) => v > 0);
      const bar = html("div", { class: "bar", role: "img",
        "aria-label": `${run.name}: ` + parts.map(([p, v]) => `${names[p][zh ? 1 : 0]} ${v.toFixed(1)} %`).join(", ") });
      for (const [p, v] of parts) {
        const piece = html("span", { title: `${names[p][zh ? 1 : 0]} ${v.toFixed(1)} %` });
        piece.style.width = `${v}%`;
        piece.style.background = `var(--p${phases.indexOf(p)})`;
        bar.append(piece);
      }
      const figures = parts.filter(([, v]) => v >= 1).map(([p, v]) => `${names[p][zh ? 1 : 0]} ${v.toFixed(0)} %`).join(zh ? "，" : ", ");
      const side = html("div");
      side.append(bar, html("div", { class: "quiet", "aria-hidden": "true" }, figures));
      row.append(html("div", {}, run.name), side);
      place.append(row);
    }
    const legend = html("ul", { class: "legend" });
    for (const p of used) {
      const item = html("li");
      const box = html("i");
      box.style.background = `var(--p${phases.indexOf(p)})`;
      item.append(box, names[p][zh ? 1 : 0]);
      legend.append(item);
    }
    place.append(legend);
  }

  const step = (span) => {
    const raw = span / 5, power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw);
  };
  const short = (v) => {
    const a = Math.abs(v);
    if (a >= 1e9) return (v / 1e9).toPrecision(3) + "G";
    if (a >= 1e6) return (v / 1e6).toPrecision(3) + "M";
    if (a >= 1e4) return (v / 1e3).toPrecision(3) + "k";
    return String(+v.toPrecision(4));
  };
  const xMost = Math.max(...data.runs.map((r) => r.seconds));
  const [unit, per] = xMost >= 7200 ? ["h", 3600] : xMost >= 120 ? ["min", 60] : ["s", 1];
  const clock = (s) => `${+(s / per).toPrecision(3)} ${unit}`;

  // series: [{name, points: [[x, mean, least, most]]}]
  function chart(place, title, series, { xText, xName, top, fromZero = false, leastSpan = 0, events = [], xMost }) {
    series = series.filter((s) => s.points.length);
    if (!series.length) return;
    const W = Math.max(340, Math.min(1000, place.clientWidth || 1000)), H = 200, L = 56, R = 10, T = 10, B = 24;
    const xEnd = xMost || Math.max(...series.map((s) => s.points[s.points.length - 1][0]));
    const all = series.flatMap((s) => s.points);
    let low = Math.min(...all.map((p) => p[2])), high = Math.max(...all.map((p) => p[3]));
    if (top !== undefined) { low = 0; high = Math.max(top, high); }
    // A degree more or less is not to look like a fever.
    const missing = leastSpan - (high - low);
    if (missing > 0) { low -= missing / 2; high += missing / 2; }
    if (low > 0 && (fromZero || low < 0.6 * high || low === high)) low = 0;
    if (high === low) high = low + (Math.abs(low) || 1);
    const x = (v) => L + ((W - L - R) * v) / (xEnd || 1);
    const y = (v) => H - B - ((H - T - B) * (v - low)) / (high - low);
    const figure = html("figure");
    figure.append(html("figcaption", {}, title));
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", tabindex: "0", "data-points": all.length,
      "aria-label": `${title}: ` + series.map((s) => {
        const mean = s.points.reduce((t, p) => t + p[1], 0) / s.points.length;
        return `${s.name} ${say("mean", "平均")} ${short(mean)}`;
      }).join(", ") });
    for (let v = Math.ceil(low / step(high - low)) * step(high - low); v <= high; v += step(high - low)) {
      svg.append(make("line", { class: "grid", x1: L, x2: W - R, y1: y(v), y2: y(v) }));
      svg.append(make("text", { x: L - 6, y: y(v) + 4, "text-anchor": "end" }, short(v)));
    }
    const xStep = xText === clock ? per * step((xEnd || 1) / per) : step(xEnd || 1);
    for (let v = 0; v <= xEnd * 1.0001; v += xStep) {
      svg.append(make("text", { x: Math.min(x(v), W - R - 14), y: H - 8, "text-anchor": v === 0 ? "start" : "middle" }, xText(v)));
    }
    for (const event of events) {
      const line = make("line", { class: "event", x1: x(event.t), x2: x(event.t), y1: T, y2: H - B });
      line.append(make("title", {}, `${event.event}: ${event.text}`));
      svg.append(line);
    }
    series.forEach((s) => {
      const band = s.points.map((p) => `${x(p[0]).toFixed(1)},${y(p[3]).toFixed(1)}`).concat(
        s.points.slice().reverse().map((p) => `${x(p[0]).toFixed(1)},${y(p[2]).toFixed(1)}`));
      svg.append(make("polygon", { points: band.join(" "), fill: colour(s.index), opacity: 0.18 }));
      svg.append(make("polyline", { points: s.points.map((p) => `${x(p[0]).toFixed(1)},${y(p[1]).toFixed(1)}`).join(" "),
        fill: "none", stroke: colour(s.index), "stroke-width": 1.6, "stroke-dasharray": dashes[s.index % 4] }));
    });
    const cursor = make("line", { class: "cursor", y1: T, y2: H - B });
    svg.append(cursor);
    const read = html("div", { class: "read", "aria-live": "polite" });
    const longest = series.reduce((a, b) => (a.points.length >= b.points.length ? a : b));
    let at = -1;
    const show = (index) => {
      at = Math.max(0, Math.min(longest.points.length - 1, index));
      svg.dataset.at = at;
      const where = longest.points[at][0];
      cursor.setAttribute("x1", x(where));
      cursor.setAttribute("x2", x(where));
      cursor.style.visibility = "visible";
      read.textContent = `${xName} ${xText(where)}: ` + series.map((s) => {
        const near = s.points.reduce((a, b) => (Math.abs(b[0] - where) < Math.abs(a[0] - where) ? b : a));
        return `${s.name} ${short(near[1])} (${short(near[2])}..${short(near[3])})`;
      }).join("; ");
    };
    const hide = () => { cursor.style.visibility = "hidden"; read.textContent = ""; delete svg.dataset.at; };
    svg.addEventListener("pointermove", (e) => {
      const box = svg.getBoundingClientRect();
      const v = (((e.clientX - box.left) / box.width) * W - L) / (W - L - R) * xEnd;
      let best = 0;
      longest.points.forEach((p, i) => { if (Math.abs(p[0] - v) < Math.abs(longest.points[best][0] - v)) best = i; });
      show(best);
    });
    svg.addEventListener("place", (e) => show(e.detail));  // a live page puts its cursor back
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (e) => {
      const far = Math.max(1, Math.round(longest.points.length / 20));
      const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, PageDown: at + far, PageUp: at - far, Home: 0, End: longest.points.length - 1 };
      if (!(e.key in moves)) return;
      e.preventDefault();
      show(moves[e.key]);
    });
    figure.append(svg);
    // Lines that look alike are one entry: the GPUs of one of several runs.
    const looks = [...new Set(series.map((s) => s.index))];
    if (looks.length > 1) {
      const legend = html("ul", { class: "legend" });
      for (const index of looks) {
        const alike = series.filter((s) => s.index === index);
        const item = html("li");
        const line = html("i", { class: `line d${index % 4}` });
        line.style.borderColor = colour(index);
        item.append(line, alike.length > 1 ? `${alike[0].run} (${alike.length} GPU)` : alike[0].name);
        legend.append(item);
      }
      figure.append(legend);
    }
    figure.append(read);
    place.append(figure);
  }

  // Several runs are told apart by colour and dash; of one alone, its GPUs are.
  const several = data.runs.length > 1;
  const of = (pick) => data.runs.flatMap((run, index) => pick(run).map(([name, points], part) =>
    ({ name: [several ? run.name : "", name].filter(Boolean).join(" ") || run.name, run: run.name, points, index: several ? index : part })));
  const gpus = (key, per = 1) => of((run) => run.gpus.map((g) =>
    [`GPU ${g.gpu}`, per === 1 ? g[key] : g[key].map(([t, ...values]) => [t, ...values.map((v) => v / per)])]));
  const events = data.runs.flatMap((r) => r.events).filter((e) => e.event !== "epoch" && e.event !== "note");
  const time = { xText: clock, xName: say("at", "时间"), xMost, events };
  const charts = document.getElementById("charts"), loss = document.getElementById("loss"), split = document.getElementById("split");
  const busy = gpus("utilisation").filter((s) => s.points.length);
  // Where nothing was recorded, the page has no such part.
  if (charts) {
    chart(charts, say("Utilisation, %", "利用率，%"), busy.length ? busy : of((r) => [["", r.step_busy]]), { ...time, top: 100 });
    chart(charts, say("Samples per second", "样本/秒"), of((r) => [["", r.rate]]), { ...time, fromZero: true });
    chart(charts, say("Power, W", "功耗，W"), gpus("power"), { ...time, fromZero: true });
    chart(charts, say("Memory, GiB", "显存，GiB"), gpus("memory", 2 ** 30), { ...time, fromZero: true });
    chart(charts, say("Temperature, C", "温度，C"), gpus("temperature"), { ...time, leastSpan: 10 });
  }
  if (loss) {
    chart(loss, say("Loss against time", "损失与时间"), of((r) => [["", r.loss_by_time]]), { ...time, events: [] });
    chart(loss, say("Loss against samples seen", "损失与样本数"), of((r) => [["", r.loss_by_samples]]), { xText: short, xName: say("after samples", "样本数") });
  }
  if (split) drawSplit(split);
};
window.drawReport();
// Charts are drawn for the width they have; another width draws them anew.
let drawnWidth = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === drawnWidth) return;
  drawnWidth = innerWidth;
  for (const id of ["split", "charts", "loss"]) document.getElementById(id)?.replaceChildren();
  window.drawReport();
});
