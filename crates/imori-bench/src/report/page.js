"use strict";
for (const figure of document.querySelectorAll("figure")) {
  const rows = [...figure.querySelectorAll("tr[data-at]")];
  if (rows.length === 0) continue;
  const heads = [...figure.querySelectorAll("thead th")].map((head) => head.textContent);
  const tip = figure.appendChild(document.createElement("div"));
  tip.className = "tip";
  const show = (svg, event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const [left, right] = svg.dataset.across.split(" ").map(Number);
    const at = ((event.clientX - box.left) * scale - left) / (right - left);
    if (at < 0 || at > 1) return hide(svg);
    const away = (row) => Math.abs(Number(row.dataset.at) - at);
    const row = rows.reduce((best, other) => (away(other) < away(best) ? other : best));
    tip.replaceChildren(...[...row.cells].map((cell, index) => {
      const line = document.createElement("div");
      const name = line.appendChild(document.createElement(index === 0 ? "b" : "span"));
      name.textContent = index === 0 ? cell.textContent : heads[index];
      if (index > 0) line.appendChild(document.createElement("b")).textContent = cell.textContent;
      return line;
    }));
    const cursor = svg.querySelector(".cursor");
    cursor.setAttribute("transform", `translate(${left + Number(row.dataset.at) * (right - left)} 0)`);
    cursor.style.visibility = "visible";
    tip.style.display = "block";
    const frame = figure.getBoundingClientRect();
    const x = event.clientX - frame.left;
    const isRight = x > frame.width / 2;
    tip.style.left = isRight ? "auto" : `${x + 14}px`;
    tip.style.right = isRight ? `${frame.width - x + 14}px` : "auto";
    tip.style.top = `${box.top - frame.top + 24}px`;
  };
  const hide = (svg) => {
    tip.style.display = "none";
    svg.querySelector(".cursor").style.visibility = "hidden";
  };
  for (const svg of figure.querySelectorAll("svg[data-across]")) {
    svg.addEventListener("pointermove", (event) => show(svg, event));
    svg.addEventListener("pointerleave", () => hide(svg));
  }
}
