#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uses the page of `diagnose --html` as a reader would: tests/report/page_test.py PAGE [SCREENSHOTS]

Drag, wheel, keys, buttons and tooltip, and that nothing is wider than a window of 400 pixels. Says
what does not hold and ends with 1; with a folder, leaves screenshots there.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from browser import Browser  # noqa: E402

wrong = []


def expect(holds, what, *values):
    if not holds:
        wrong.append(f"{what} {values if values else ''}")


def view(browser):
    """What is in view: from, to, in nanoseconds."""
    return json.loads(browser.run("JSON.stringify([+canvas.dataset.from, +canvas.dataset.to])"))


def box(browser):
    return json.loads(
        browser.run("JSON.stringify((b => [b.x, b.y, b.width, b.height])(canvas.getBoundingClientRect()))")
    )


def tip(browser):
    return browser.run("tip.hidden ? '' : tip.textContent")


def use(browser):
    """At any width. The canvas is scrolled into view first."""
    browser.run("canvas.scrollIntoView(); document.activeElement.blur()")
    browser.drawn()
    x, y, width, height = box(browser)
    whole = view(browser)
    expect(whole[0] == 0 and whole[1] > 0, "all is in view at first", whole)
    middle, row = x + width / 2, y + min(height, 300) / 2

    browser.wheel(middle, row, -400)
    expect(view(browser) == whole, "without focus the wheel is the page's", view(browser))

    browser.run("canvas.scrollIntoView()")
    browser.drag((middle, row), (middle, row))
    browser.wheel(middle, row, -400)
    zoomed = view(browser)
    length = zoomed[1] - zoomed[0]
    expect(abs(length / (whole[1] / 2.718) - 1) < 0.02, "a wheel of 400 shows an e-th", zoomed, whole)
    expect(abs(sum(zoomed) / 2 / (whole[1] / 2) - 1) < 0.02, "around the pointer", zoomed)

    browser.drag((middle, row), (middle + width / 4, row))
    moved = view(browser)
    expect(
        abs((zoomed[0] - moved[0]) / (length / 4) - 1) < 0.03, "a drag to the right goes back in time", zoomed, moved
    )
    expect(abs(moved[1] - moved[0] - length) < 2, "and keeps the scale", moved)

    browser.key("0")
    expect(view(browser) == whole, "0 shows all", view(browser))
    browser.key("+")
    half = view(browser)
    expect(abs(half[1] - half[0] - whole[1] / 2) < 2, "+ shows half", half)
    browser.key("ArrowRight")
    right = view(browser)
    expect(abs(right[0] - half[0] - whole[1] / 10) < 2, "the arrow moves by a fifth", right)
    browser.key("-")
    browser.key("-")
    expect(view(browser) == whole, "- twice shows all again", view(browser))
    browser.key("g")
    expect(tip(browser).startswith("GPU idle: "), "g describes a gap", tip(browser))
    first = tip(browser)
    browser.key("g")
    expect(tip(browser) != first, "g again the next", first)
    browser.key("G")
    expect(tip(browser) == first, "G the one before", tip(browser))
    inside = browser.run("(t => (c => c.left >= -1 && c.right <= innerWidth + 1)(t.getBoundingClientRect()))(tip)")
    expect(inside, "the tooltip is inside the window")
    browser.key("Escape")
    expect(tip(browser) == "", "Escape hides it")
    browser.run("document.querySelector('button[data-key=\"+\"]').click()")
    browser.drawn()
    expect(abs(view(browser)[1] - view(browser)[0] - whole[1] / 2) < 2, "the button zooms too", view(browser))
    browser.run("document.querySelector('button[data-key=\"0\"]').click()")
    browser.drawn()
    expect(view(browser) == whole, "and back", view(browser))


def main():
    shots = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    with Browser() as browser:
        browser.open(sys.argv[1])
        for width in (1200, 400):
            browser.resize(width, 900)
            browser.drawn()
            wide = browser.run("document.documentElement.scrollWidth")
            expect(wide <= width, f"the page is {wide} wide in a window of {width}")
            if shots:
                browser.screenshot(shots / f"page-{width}.png")
            use(browser)
        if shots:
            browser.key("g")
            browser.screenshot(shots / "page-400-gap.png")
            browser.dark(True)
            browser.drawn()
            browser.screenshot(shots / "page-400-dark.png")
        expect(not browser.errors, "no errors", browser.errors)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
