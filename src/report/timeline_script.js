// Draws one step of a trace on a canvas: streams on top with the gaps between their work, host
// threads below. Data comes from the script element "data" (see timeline_data.cpp). Only what is in
// view is drawn; events narrower than a pixel share one.
"use strict";
(() => {
  const kinds = ["compute", "communication", "copy", "set", "op", "call", "range", "python"];
  const rowHeight = 18, titleHeight = 20, axisHeight = 24, gapHeight = 22;

  const canvas = document.getElementById("canvas");
  const tip = document.getElementById("tip");
  const source = document.getElementById("data");
  if (!canvas || !source) return;
  const data = JSON.parse(source.textContent);
  const context = canvas.getContext("2d");
  // In the page's language; English has no words of its own in the data.
  const say = (english) => (data.words && data.words[english]) || english;
  const kindTexts = ["kernel", "communication", "memory copy", "memory set", "operator", "runtime call", "marked range", "python"].map(say);

  // Rows of events that do not overlap: one per lane and depth.
  const rows = [];
  const titles = [];
  let height = axisHeight;
  let total = 0;

  function addGaps() {
    const { start, length, cause, parts } = data.gaps;
    if (start.length === 0) return;
    titles.push({ text: say("GPU idle, by cause"), top: height });
    height += titleHeight;
    rows.push({
      top: height, height: gapHeight, isGap: true, start: Float64Array.from(start),
      end: Float64Array.from(start, (from, i) => from + length[i]), name: cause, kind: cause, parts,
    });
    height += gapHeight + 6;
  }

  function addLane(lane) {
    titles.push({ text: lane.label, top: height });
    height += titleHeight;
    const byDepth = [];
    let at = 0;
    for (let i = 0; i < lane.start.length; ++i) {
      at += lane.start[i];
      const depth = lane.depth.charCodeAt(i) - 48;
      while (byDepth.length <= depth) byDepth.push({ start: [], end: [], name: [], kind: [] });
      const row = byDepth[depth];
      row.start.push(at);
      row.end.push(at + lane.length[i]);
      row.name.push(lane.name[i]);
      row.kind.push(lane.kind.charCodeAt(i) - 48);
    }
    for (const row of byDepth) {
      total += row.start.length;
      rows.push({
        top: height, height: rowHeight, isGap: false, start: Float64Array.from(row.start),
        end: Float64Array.from(row.end), name: Uint32Array.from(row.name), kind: Uint8Array.from(row.kind),
      });
      height += rowHeight;
    }
    height += 6;
  }

  // Gaps belong to the GPU: they stand above its streams.
  addGaps();
  data.lanes.forEach(addLane);

  let from = 0, to = data.length;  // in view, nanoseconds from the start of the step
  let width = 1;
  let colours = {}, patterns = [];
  let chosen = null;               // {row, index} under the pointer or chosen by keys

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue("--" + name).trim();
    colours = { page: get("page"), text: get("text"), quiet: get("quiet"), line: get("line"), panel: get("panel") };
    colours.kinds = kinds.map(get);
    colours.causes = data.gaps.causes.map((_, i) => get("c" + i));
    patterns = colours.causes.map((colour, i) => (i % 2 === 0 ? colour : striped(colour, colours.page)));
  }

  function striped(colour, background) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 8, 8);
    pen.strokeStyle = background;
    pen.lineWidth = 1.5;
    for (const shift of [-8, 0, 8]) {
      pen.beginPath();
      pen.moveTo(shift, 8);
      pen.lineTo(shift + 8, 0);
      pen.stroke();
    }
    return context.createPattern(tile, "repeat");
  }

  function time(ns) {
    const size = Math.abs(ns);
    if (size >= 1e9) return (ns / 1e9).toFixed(3) + " s";
    if (size >= 1e6) return (ns / 1e6).toFixed(3) + " ms";
    if (size >= 1e3) return (ns / 1e3).toFixed(2) + " µs";
    return Math.round(ns) + " ns";
  }

  // Index of the first event of a row that ends after `at`.
  function firstAfter(row, at) {
    let low = 0, high = row.end.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.end[middle] > at) high = middle; else low = middle + 1;
    }
    return low;
  }

  function fill(row, index) {
    return row.isGap ? patterns[row.kind[index]] : colours.kinds[row.kind[index]];
  }

  function nameOf(row, index) {
    return row.isGap ? data.gaps.causes[row.name[index]] : data.names[row.name[index]];
  }

  // Draws what of a row is in view; answers how many events that was and how many rectangles.
  function drawRow(row, count) {
    const scale = width / (to - from);
    let taken = -1;  // the last pixel that is taken
    for (let i = firstAfter(row, from); i < row.start.length && row.start[i] < to; ++i) {
      if (!row.isGap) ++count.visible;
      const left = Math.max((row.start[i] - from) * scale, 0);
      const right = Math.min((row.end[i] - from) * scale, width);
      if (right - left < 1 && Math.floor(left) <= taken) continue;
      const size = Math.max(right - left, 1);
      context.fillStyle = fill(row, i);
      // A gap of a tenth of a pixel must not look like a whole one.
      if (row.isGap) context.globalAlpha = Math.min(Math.max(right - left, .15), 1);
      context.fillRect(left, row.top, size > 3 ? size - .5 : size, row.height - 2);
      context.globalAlpha = 1;
      taken = Math.floor(left + size - 1);
      if (!row.isGap) ++count.drawn;
      if (size > 34) drawLabel(nameOf(row, i), left, row, size);
    }
  }

  function drawLabel(text, left, row, size) {
    const most = Math.floor((size - 6) / 6.3);
    const shown = text.length > most ? text.slice(0, Math.max(most - 1, 1)) + "…" : text;
    context.lineWidth = 3;
    context.strokeStyle = colours.page;
    context.strokeText(shown, left + 4, row.top + row.height / 2);
    context.fillStyle = colours.text;
    context.fillText(shown, left + 4, row.top + row.height / 2);
  }

  function drawAxis() {
    const rough = (to - from) / Math.max(width / 110, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) || power * 10;
    context.strokeStyle = colours.line;
    context.fillStyle = colours.quiet;
    context.lineWidth = 1;
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = Math.round((at - from) / (to - from) * width) + .5;
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, height);
      context.stroke();
      context.fillText(time(at).replace(/\.(\d*?)0+ /, (_, kept) => (kept ? "." + kept : "") + " "), x + 4, axisHeight / 2);
    }
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    width = Math.max(canvas.clientWidth, 50);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + "px";
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = colours.page;
    context.fillRect(0, 0, width, height);
    drawAxis();
    const count = { visible: 0, drawn: 0 };
    for (const row of rows) drawRow(row, count);
    for (const title of titles) {
      context.fillStyle = colours.text;
      context.fillText(title.text, 6, title.top + titleHeight / 2);
    }
    if (chosen) outline(chosen);
    canvas.dataset.events = total;
    canvas.dataset.visible = count.visible;
    canvas.dataset.drawn = count.drawn;
    canvas.dataset.from = Math.round(from);
    canvas.dataset.to = Math.round(to);
  }

  function outline({ row, index }) {
    const scale = width / (to - from);
    const left = (row.start[index] - from) * scale;
    context.strokeStyle = colours.text;
    context.lineWidth = 2;
    context.strokeRect(left, row.top, Math.max((row.end[index] - row.start[index]) * scale, 2), row.height - 2);
  }

  let asked = false;
  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  }

  function show(start, end) {
    const length = Math.min(Math.max(end - start, 100), data.length);
    from = Math.min(Math.max(start, 0), data.length - length);
    to = from + length;
    redraw();
  }
  function zoom(factor, around) {
    show(around - (around - from) * factor, around + (to - around) * factor);
  }
  function move(share) { show(from + (to - from) * share, to + (to - from) * share); }

  function describe({ row, index }) {
    const length = row.end[index] - row.start[index];
    const lines = [nameOf(row, index), time(length) + ", " + say("starts at") + " " + time(row.start[index])];
    if (row.isGap) {
      lines[0] = say("GPU idle") + ": " + lines[0];
      const parts = row.parts[index];
      for (let i = 0; parts.length > 2 && i < parts.length; i += 2)
        lines.push(time(parts[i + 1]) + "  " + data.gaps.causes[parts[i]]);
    } else {
      lines[1] = kindTexts[row.kind[index]] + ", " + lines[1];
    }
    return lines.join("\n");
  }

  function choose(next, x, y) {
    chosen = next;
    tip.hidden = !next;
    if (next) {
      tip.textContent = describe(next);
      const box = tip.getBoundingClientRect();
      tip.style.left = Math.max(Math.min(x + 14, width - box.width - 4), 4) + "px";
      tip.style.top = y + 18 + "px";
    }
    redraw();
  }

  function find(x, y) {
    const row = rows.find((each) => y >= each.top && y < each.top + each.height);
    if (!row) return null;
    const pixel = (to - from) / width;
    const index = firstAfter(row, from + (x - 1) * pixel);
    const isNear = index < row.start.length && row.start[index] <= from + (x + 1) * pixel;
    return isNear ? { row, index } : null;
  }

  // The next gap to the right or left, the keyboard's way to a tooltip.
  function nextGap(direction) {
    const row = rows.find((each) => each.isGap);
    if (!row) return;
    const least = (to - from) / width * 3;  // narrower ones cannot be seen
    let index = chosen && chosen.row === row ? chosen.index + direction
      : direction > 0 ? firstAfter(row, from) : firstAfter(row, to) - 1;
    while (index >= 0 && index < row.start.length && row.end[index] - row.start[index] < least) index += direction;
    if (index < 0 || index >= row.start.length) return;
    const middle = (row.start[index] + row.end[index]) / 2;
    if (middle < from || middle > to) show(middle - (to - from) / 2, middle + (to - from) / 2);
    choose({ row, index }, (middle - from) / (to - from) * width, row.top);
  }

  const actions = {
    "+": () => zoom(.5, (from + to) / 2), "=": () => zoom(.5, (from + to) / 2),
    "-": () => zoom(2, (from + to) / 2), "0": () => show(0, data.length), Home: () => show(0, data.length),
    ArrowLeft: () => move(-.2), ArrowRight: () => move(.2), w: () => zoom(.5, (from + to) / 2),
    s: () => zoom(2, (from + to) / 2), a: () => move(-.2), d: () => move(.2),
    g: () => nextGap(1), G: () => nextGap(-1), Escape: () => choose(null),
  };
  canvas.addEventListener("keydown", (event) => {
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
  for (const button of document.querySelectorAll("button[data-key]"))
    button.addEventListener("click", () => actions[button.dataset.key]());

  // Over the canvas the wheel zooms with Ctrl or once it has the focus, so that the page still scrolls.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const around = from + event.offsetX / width * (to - from);
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(event.deltaX / 800);
    else zoom(Math.exp(event.deltaY / 400), around);
  }, { passive: false });

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.offsetX, from, to };
    canvas.setPointerCapture(event.pointerId);
    canvas.focus();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const shift = (drag.x - event.offsetX) / width * (drag.to - drag.from);
      show(drag.from + shift, drag.to + shift);
    } else {
      choose(find(event.offsetX, event.offsetY), event.offsetX, event.offsetY);
    }
  });
  canvas.addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => { if (!drag) choose(null); });
  canvas.addEventListener("dblclick", (event) => {
    const hit = find(event.offsetX, event.offsetY);
    if (!hit) return;
    const margin = (hit.row.end[hit.index] - hit.row.start[hit.index]) * .1;
    show(hit.row.start[hit.index] - margin, hit.row.end[hit.index] + margin);
  });

  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });
  readColours();
  draw();
})();
