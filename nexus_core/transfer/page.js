"use strict";
(() => {
  const form = document.getElementById("search");
  const [field, output, button] = ["input", "output", "button"].map((name) => form.querySelector(name));
  const turns = Array.from(document.querySelectorAll(".turn"));
  const texts = turns.map((turn) => turn.textContent.toLowerCase());
  const folded = Array.from(document.querySelectorAll("main details"));
  const canMark = "highlights" in CSS && typeof Highlight === "function";
  const maxMarks = 2000;
  form.hidden = false;

  const mark = (words) => {
    const marks = new Highlight();
    for (const turn of turns) {
      if (turn.hidden) continue;
      const walker = document.createTreeWalker(turn, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const text = node.data.toLowerCase();
        if (text.length !== node.data.length) continue;
        for (const word of words) {
          for (let at = text.indexOf(word); at >= 0 && marks.size < maxMarks; at = text.indexOf(word, at + word.length)) {
            const range = new Range();
            range.setStart(node, at);
            range.setEnd(node, at + word.length);
            marks.add(range);
          }
        }
      }
    }
    CSS.highlights.set("found", marks);
  };

  const search = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    turns.forEach((turn, index) => {
      turn.hidden = !words.every((word) => texts[index].includes(word));
      found += turn.hidden ? 0 : 1;
    });
    output.textContent = words.length ? `${found} of ${turns.length} turns` : "";
    if (canMark) CSS.highlights.delete("found");
    if (!words.length) return;
    for (const each of folded) {
      const text = each.textContent.toLowerCase();
      each.open = words.some((word) => text.includes(word));
    }
    if (canMark) mark(words);
  };

  let timer = 0;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 120);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  button.addEventListener("click", () => {
    const open = folded.some((each) => !each.open);
    for (const each of folded) each.open = open;
    button.textContent = open ? "Fold all" : "Unfold all";
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== field) {
      event.preventDefault();
      field.focus();
    }
  });
})();
