"use strict";
// Keeps a page of `serve` up to date: listens for the version of what it shows, and when that is
// another one takes the new page's content over in place.
(() => {
  const zh = document.documentElement.lang.startsWith("zh");
  const say = (en, cn) => (zh ? cn : en);
  let main = document.querySelector("main");
  let busy = false, again = false, told = ["on", ""];

  const status = (kind, text) => {
    const place = document.getElementById("live");
    place.className = kind;
    // The same words are not said twice, so that a screen reader is not kept talking.
    if (place.textContent !== text) place.textContent = text;
    told = [kind, text];
  };
  const online = () => status("on", say("live", "实时"));

  // What a reader has chosen outlives the exchange: ticks, words that are being typed, and the place
  // of the cursor in a chart.
  const remembered = () => {
    const charts = [...main.querySelectorAll("svg")];
    const focus = charts.indexOf(document.activeElement);
    const find = main.querySelector("input[name=find]");
    return { ticks: [...main.querySelectorAll("input:checked")].map((box) => box.value),
      words: find?.value, isTyping: find && find === document.activeElement, focus, at: focus >= 0 ? charts[focus].dataset.at : undefined };
  };
  const restore = ({ ticks, words, isTyping, focus, at }) => {
    const find = main.querySelector("input[name=find]");
    if (find && words !== undefined) find.value = words;
    if (find && isTyping) find.focus({ preventScroll: true });
    for (const box of main.querySelectorAll("input[type=checkbox]")) box.checked = ticks.includes(box.value);
    const chart = main.querySelectorAll("svg")[focus];
    if (!chart) return;
    chart.focus({ preventScroll: true });
    if (at !== undefined) chart.dispatchEvent(new CustomEvent("place", { detail: +at }));
  };

  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = document.adoptNode(page.querySelector("main"));
      const kept = remembered(), top = scrollY;
      main.replaceWith(fresh);
      main = fresh;
      window.drawReport();
      restore(kept);
      scrollTo(scrollX, top);
      status(...told);
      document.body.dataset.refreshed = +(document.body.dataset.refreshed || 0) + 1;
    } catch (error) {
      status("off", say("the run cannot be read just now", "暂时无法读取运行记录"));
    }
    busy = false;
    if (again) { again = false; refresh(); }
  }

  const source = new EventSource(main.dataset.events);
  source.onopen = online;
  source.onmessage = (event) => {
    online();
    if (event.data !== main.dataset.version) refresh();
  };
  source.onerror = () => status("off", say("not connected: this is the last state", "未连接：这是最后的状态"));
})();
