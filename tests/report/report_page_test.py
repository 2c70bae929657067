#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `report` and the live page of `serve`, used as a reader would.

tests/report/report_page_test.py file|live SATURATE SCRATCH [SCREENSHOTS]

Writes run records into SCRATCH, opens the page in a headless Chromium and looks at it: errors,
requests, charts and their points, keyboard, 400 and 1200 pixels, dark and light, contrast, labels.
Says what does not hold and ends with 1; with a folder, leaves screenshots there.
"""

import json
import os
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from browser import Browser  # noqa: E402

wrong = []


def expect(holds, what, *values):
    if not holds:
        wrong.append(f"{what} {values if values else ''}")


class Record:
    """A run of two GPUs that can grow; half of a step waits for data where `waits`."""

    def __init__(self, folder, waits, seconds, started):
        self.folder, self.waits, self.seconds = folder, waits, 0
        self.random = random.Random(7)
        folder.mkdir(parents=True)
        settings = f"batch_size: {32 if waits else 64}\nnum_workers: {0 if waits else 4}\n"
        head = {
            "schema": 1,
            "kind": "train",
            "device": "cuda:0",
            "started_ns": 5000,
            "started_wall_ns": started,
            "settings_text": settings,
            "settings_source": "job.yaml",
            "machine": {"gpus": [{"gpu": gpu, "name": "NVIDIA H100"} for gpu in (0, 1)]},
        }
        (folder / "run.json").write_text(json.dumps(head))
        event = {"event": "evaluation", "t_ns": int(seconds * 4e8), "text": "accuracy <0.5> & more"}
        (folder / "events.jsonl").write_text(json.dumps(event) + "\n")
        self.grow(seconds)

    def grow(self, seconds):
        steps, samples = [], []
        for second in range(self.seconds, self.seconds + seconds):
            for part in range(10):
                length = int(1e8 * self.random.uniform(0.8, 0.99))
                wait = length // 2 if self.waits else length // 50
                step = {
                    "step": second * 10 + part,
                    "t_ns": int(second * 1e9 + part * 1e8),
                    "duration_ns": length,
                    "samples": 32 if self.waits else 64,
                    "input_wait_ns": wait,
                    "forward_ns": (length - wait) // 3,
                    "backward_ns": (length - wait) // 2,
                    "device_busy_ns": length - wait,
                    "loss": 2 / (1 + second / 20) + self.random.uniform(0, 0.1),
                }
                steps.append(json.dumps(step))
            for gpu in (0, 1):
                busy = (48 if self.waits else 95) + self.random.uniform(-4, 4)
                samples.append(
                    json.dumps(
                        {
                            "type": "gpu",
                            "gpu": gpu,
                            "t_ns": int(second * 1e9),
                            "took_ns": 30000,
                            "utilization_percent": busy,
                            "power_watts": 100 + 5 * busy,
                            "memory_total_bytes": 85899345920,
                            "memory_used_bytes": 40000000000,
                            "temperature_celsius": 50 + busy / 8,
                        }
                    )
                )
        self.seconds += seconds
        for name, lines in (("samples.jsonl", samples), ("steps.jsonl", steps)):
            with open(self.folder / name, "a") as file:
                file.write("".join(line + "\n" for line in lines))


def expected_points(data):
    """Points of each chart, in the order of the page."""
    runs = data["runs"]
    gpu = [
        sum(len(g[key]) for run in runs for g in run["gpus"])
        for key in ("utilisation", "power", "memory", "temperature")
    ]
    run = [sum(len(run[key]) for run in runs) for key in ("rate", "loss_by_time", "loss_by_samples")]
    return [gpu[0], run[0], gpu[1], gpu[2], gpu[3], run[1], run[2]]


def charts(browser):
    """Of every chart: points it says it has, points that are drawn."""
    return json.loads(
        browser.run("""JSON.stringify([...document.querySelectorAll("svg")].map((svg) => [
        +svg.dataset.points,
        [...svg.querySelectorAll("polyline")].reduce((n, line) => n + line.getAttribute("points").split(" ").length, 0)]))""")
    )


# Every text against what is behind it (WCAG: 4.5), every line and bar against its background (3).
CONTRAST = """(() => {
  const channel = (v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = (c) => .2126 * channel(c[0]) + .7152 * channel(c[1]) + .0722 * channel(c[2]);
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const behind = (node) => {
    for (; node && node.nodeType === 1; node = node.parentNode) {
      const c = parse(getComputedStyle(node).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
  const bad = [];
  const check = (node, colour, least, what) => {
    const c = parse(colour);
    if (c.length < 3) return;
    const r = ratio(c, behind(node));
    if (r < least) bad.push(`${what}: ${r.toFixed(2)} of ${least}`);
  };
  for (const node of document.querySelectorAll("main *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (["SCRIPT", "STYLE", "title"].includes(node.tagName)) continue;
    const style = getComputedStyle(node);
    if (own && node.closest("svg")) check(node.closest("svg"), style.fill, 4.5, "chart text " + node.textContent);
    else if (own) check(node, style.color, 4.5, node.tagName + " " + node.textContent.slice(0, 30));
    if (node.tagName === "polyline") check(node.closest("svg"), style.stroke, 3, "a line");
    if (node.classList.contains("event")) check(node.closest("svg"), style.stroke, 3, "an event");
  }
  return JSON.stringify(bad.slice(0, 8));
})()"""

# What a screen reader needs, in one list of complaints.
BASICS = """(() => {
  const bad = [];
  if (!document.documentElement.lang) bad.push("no language");
  if (!document.title) bad.push("no title");
  if (document.querySelectorAll("main").length !== 1) bad.push("not one main");
  if (document.querySelectorAll("h1").length !== 1) bad.push("not one h1");
  let level = 1;
  for (const h of document.querySelectorAll("h1, h2, h3, h4")) {
    if (+h.tagName[1] > level + 1) bad.push(`${h.tagName} after H${level}`);
    level = +h.tagName[1];
  }
  for (const node of document.querySelectorAll("svg, [role=img]")) if (!node.getAttribute("aria-label")) bad.push("a picture without words");
  for (const node of document.querySelectorAll("input:not([type=hidden])")) if (!node.labels.length) bad.push("an input without a label");
  for (const node of document.querySelectorAll("a, button")) if (!node.textContent.trim()) bad.push("a link without words");
  for (const node of document.querySelectorAll("th")) if (!node.scope) bad.push("a heading of a table without a scope");
  for (const node of document.querySelectorAll("[id]")) if (document.querySelectorAll("#" + CSS.escape(node.id)).length > 1) bad.push("twice " + node.id);
  return JSON.stringify(bad);
})()"""

# Texts of a chart that lie on each other, or stick out of it.
OVERLAPS = """(() => {
  const bad = [];
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()]);
    boxes.forEach(([text, a], i) => {
      if (a.left < frame.left - 1 || a.right > frame.right + 1) bad.push(`${text} sticks out`);
      for (const [other, b] of boxes.slice(i + 1))
        if (a.left < b.right && b.left < a.right && a.top < b.bottom - 3 && b.top < a.bottom - 3) bad.push(`${text} on ${other}`);
    });
  }
  return JSON.stringify(bad.slice(0, 8));
})()"""


def look(browser, name, shots):
    """What holds for every page, at both widths and in both colours."""
    for width in (1200, 400):
        browser.resize(width, 900)
        browser.drawn()
        wide = browser.run("document.documentElement.scrollWidth")
        expect(wide <= width, f"{name} is {wide} wide in a window of {width}")
        overlaps = json.loads(browser.run(OVERLAPS))
        expect(not overlaps, f"{name}: at {width} texts are apart", overlaps)
        backgrounds = set()
        for dark in (False, True):
            browser.dark(dark)
            browser.drawn()
            backgrounds.add(browser.run("getComputedStyle(document.body).backgroundColor"))
            faint = json.loads(browser.run(CONTRAST))
            expect(not faint, f"{name}: contrast, {'dark' if dark else 'light'}", faint)
            if shots:
                browser.screenshot(shots / f"{name}-{width}-{'dark' if dark else 'light'}.png")
        expect(len(backgrounds) == 2, f"{name}: dark mode has another background", backgrounds)
        browser.dark(False)
    browser.resize(1200, 900)
    browser.drawn()
    basics = json.loads(browser.run(BASICS))
    expect(not basics, f"{name}: basics", basics)


def use_keys(browser):
    """Tab comes to every chart; arrows, Home and End read it."""
    browser.run("document.activeElement.blur(); getSelection().removeAllRanges()")
    count = browser.run("document.querySelectorAll('svg').length")
    reached = []
    for _ in range(count + 20):
        browser.key("Tab")
        at = browser.run("[...document.querySelectorAll('svg')].indexOf(document.activeElement)")
        if at >= 0:
            reached.append(at)
        if at == count - 1:
            break
    expect(reached == list(range(count)), "Tab comes to each chart in turn", reached)
    browser.run("document.querySelector('svg').focus()")
    read = "document.activeElement.parentNode.querySelector('.read').textContent"
    browser.key("Home")
    first = browser.run(read)
    expect("0" in first and ".." in first, "Home reads the first point", first)
    browser.key("ArrowRight")
    second = browser.run(read)
    expect(second not in ("", first), "the arrow reads the next", second)
    browser.key("End")
    expect(browser.run(read) not in ("", first, second), "End reads the last", browser.run(read))
    browser.key("ArrowRight")
    expect(
        browser.run("document.activeElement.querySelector('.cursor').style.visibility") == "visible",
        "the cursor is shown",
    )


def check_charts(browser, name):
    data = json.loads(browser.run("document.getElementById('data').textContent"))
    want, got = expected_points(data), charts(browser)
    expect([said for said, _ in got] == want, f"{name}: charts have the points of the data", got, want)
    expect(all(said == drawn for said, drawn in got), f"{name}: every point is drawn", got)
    return data


def elsewhere(browser, own):
    return [url for url in browser.requests if not url.startswith(own) and not url.startswith("data:")]


def test_file(binary, scratch, shots):
    Record(scratch / "before", True, 90, 10**18)
    Record(scratch / "after", False, 60, 2 * 10**18)
    for language in ("en", "zh"):
        page = scratch / f"report-{language}.html"
        subprocess.run(
            [binary, "report", scratch / "before", scratch / "after", "-o", page, "--lang", language],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with Browser() as browser:
            browser.open(page)
            expect(browser.run("document.documentElement.lang").startswith(language), "the page says its language")
            data = check_charts(browser, language)
            points = [len(run["rate"]) for run in data["runs"]]
            # A point is a window of the account: a second, or as long as it takes to hold whole rounds of batches.
            expect(45 <= points[0] <= 90 and 30 <= points[1] <= 60, "a point is a second or a little more", points)
            look(browser, f"report-{language}", shots)
            check_charts(browser, f"{language} after resizing")
            use_keys(browser)
            expect(
                not elsewhere(browser, "file://" + str(page)),
                "asks for nothing else",
                elsewhere(browser, "file://" + str(page)),
            )
            expect(not browser.errors, f"{language}: no errors", browser.errors)


def wait_for(browser, what, condition):
    """Frames pass until it holds; a page that never gets there fails."""
    for _ in range(1200):
        if browser.run(condition):
            return
        browser.drawn()
    expect(False, what)


def test_live(binary, scratch, shots):
    record = Record(scratch / "runs/now", True, 30, 2 * 10**18)
    Record(scratch / "runs/earlier <b>", False, 20, 10**18)
    server = subprocess.Popen(
        [binary, "serve", "--listen=127.0.0.1:0", scratch / "runs", "--lang", "en"], stdout=subprocess.PIPE, text=True
    )
    try:
        url = server.stdout.readline().strip()
        with Browser() as browser:
            browser.open(url)
            wait_for(browser, "the list is connected", "document.getElementById('live').className === 'on'")
            expect(browser.run("document.querySelectorAll('tbody tr').length") == 2, "two runs are listed")
            look(browser, "list", shots)
            browser.run("document.querySelectorAll('input[type=checkbox]').forEach((box) => box.click())")
            browser.follow("document.querySelector('table + p button').click()")
            expect(
                browser.run("document.querySelector('thead').textContent") == "earlier <b>nowchange",
                "compared in the order of time",
                browser.run("document.querySelector('thead').textContent"),
            )
            check_charts(browser, "compared")

            browser.open(url + "run?id=now")
            wait_for(browser, "the run is connected", "document.getElementById('live').className === 'on'")
            data = check_charts(browser, "live")
            shown = len(data["runs"][0]["rate"])
            expect(15 <= shown <= 30, "30 seconds are shown", shown)
            look(browser, "live", shots)
            browser.run("document.querySelectorAll('svg')[1].focus(); scrollTo(0, 500)")
            browser.key("Home")
            browser.key("ArrowRight")
            top = browser.run("scrollY")
            record.grow(30)
            wait_for(
                browser,
                "the page follows the record",
                "JSON.parse(document.getElementById('data').textContent).runs[0].rate.length > %d" % shown,
            )
            check_charts(browser, "followed")
            expect(
                browser.run("[...document.querySelectorAll('svg')].indexOf(document.activeElement)") == 1,
                "the focus stays on its chart",
            )
            expect(browser.run("document.activeElement.dataset.at") == "1", "and the cursor at its point")
            expect(browser.run("scrollY") == top, "and the page where it was", top)
            (record.folder / "summary.json").write_text('{"schema": 1, "ended": "done", "duration_ns": 60000000000}')
            wait_for(browser, "the end is told", "document.querySelector('.state').textContent === 'done'")
            expect(not elsewhere(browser, url), "asks nobody else", elsewhere(browser, url))
            expect(not browser.errors, "live: no errors", browser.errors)
            server.terminate()
            wait_for(browser, "a server that is gone is told", "document.getElementById('live').className === 'off'")
            expect(browser.run("document.querySelectorAll('svg').length") > 0, "and the last state stays")
    finally:
        server.terminate()
        server.wait()


def main():
    kind, binary, scratch = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    shots = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None
    os.environ["LC_ALL"] = "C.UTF-8"
    (test_file if kind == "file" else test_live)(binary, scratch, shots)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
