"use strict";
const { entries, pictures } = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const PLAY_MS = 900;
const at = (id) => document.getElementById(id);
let current = 0;
let timer = null;

function make(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function draw(parent, name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  parent.append(node);
  return node;
}

const nameOf = (entry) => entry.actions.map((each) => each.action.action).join(", ");

function summary(entry) {
  const said = entry.actions.map((each) => each.output).filter(Boolean).join(" ");
  return entry.error ? `Failed: ${entry.error}` : said;
}

/* Overlays are in native pixels, whatever size the picture has. */
function overlay(entry, which) {
  const [width, height] = entry.native_size;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  if (which === "after") {
    for (const [left, top, right, bottom] of entry.changed || [])
      draw(svg, "rect", { class: "box", x: left, y: top, width: right - left, height: bottom - top });
    return svg;
  }
  let number = 0;
  for (const each of entry.actions) {
    const points = each.native || [];
    if (points.length > 1) draw(svg, "polyline", { class: "path", points: points.join(" ") });
    for (const [x, y] of points.length > 2 ? [points[0], points[points.length - 1]] : points) {
      number += 1;
      draw(svg, "circle", { class: "point", cx: x, cy: y, r: 16 });
      draw(svg, "circle", { class: "dot", cx: x, cy: y, r: 3 });
      const label = draw(svg, "text", { class: "number", x: x + 18, y: y - 12 });
      label.textContent = number;
    }
  }
  return svg;
}

function view(entry, which) {
  const screen = at(which).querySelector(".screen");
  const picture = entry[which];
  screen.replaceChildren();
  if (!picture) {
    const why = which === "after" && entry.hidden ? "Not kept: a secret was typed." : "No picture was taken.";
    screen.append(make("p", {}, why));
  } else if (!pictures[picture.sha256]) {
    screen.append(make("p", {}, "This picture is no longer kept."));
  } else {
    screen.append(make("img", { src: pictures[picture.sha256], alt: `The screen ${which} the step` }));
    if (entry.native_size && !picture.region) screen.append(overlay(entry, which));
  }
}

function details(entry) {
  const rows = [
    ["when", entry.at],
    ["took", entry.took_ms == null ? null : `${entry.took_ms} ms`],
    ["settled", entry.settled_ms == null ? null : `${entry.settled_ms} ms${entry.still_changing ? ", still changing" : ""}`],
    ["who", [entry.actor, entry.chat_id && `chat ${entry.chat_id}`].filter(Boolean).join(", ")],
    ["call", [entry.id, entry.vendor_call_id].filter(Boolean).join(" · ")],
  ];
  for (const each of entry.actions) {
    rows.push(["action", JSON.stringify(each.action)]);
    if (each.native && each.native.length) rows.push(["native", each.native.slice(0, 20).map((p) => `(${p})`).join(" ")]);
    if (each.output) rows.push(["said", each.output]);
    if (each.warning) rows.push(["warning", each.warning]);
  }
  for (const warning of entry.warnings || []) rows.push(["warning", warning]);
  if (entry.error) rows.push(["error", `${entry.error} (${entry.error_code})`]);
  const list = make("dl", {});
  for (const [name, value] of rows)
    if (value) list.append(make("dt", {}, name), make("dd", {}, name === "action" ? make("code", {}, value) : value));
  at("details").replaceChildren(list);
}

function show(index) {
  current = Math.max(0, Math.min(entries.length - 1, index));
  const entry = entries[current];
  at("scrub").value = current;
  at("position").textContent = entry ? `${current + 1} of ${entries.length}` : "no steps";
  if (!entry) return;
  view(entry, "before");
  view(entry, "after");
  details(entry);
  for (const button of at("steps").querySelectorAll("button"))
    button.setAttribute("aria-current", String(Number(button.dataset.index) === current));
  const chosen = at("steps").querySelector('[aria-current="true"]');
  if (chosen) chosen.scrollIntoView({ block: "nearest" });
}

function play() {
  if (timer) {
    clearInterval(timer);
    timer = null;
  } else {
    if (current === entries.length - 1) show(0);
    timer = setInterval(() => (current < entries.length - 1 ? show(current + 1) : play()), PLAY_MS);
  }
  at("play").textContent = timer ? "Pause" : "Play";
}

entries.forEach((entry, index) => {
  const button = make("button", { "data-index": index }, make("span", {}, `${index + 1}. ${nameOf(entry)}`),
    make("small", {}, summary(entry)));
  if (entry.error) button.className = "failed";
  button.addEventListener("click", () => show(index));
  at("steps").append(make("li", {}, button));
});
at("scrub").max = Math.max(0, entries.length - 1);
at("scrub").addEventListener("input", (event) => show(Number(event.target.value)));
at("previous").addEventListener("click", () => show(current - 1));
at("next").addEventListener("click", () => show(current + 1));
at("play").addEventListener("click", play);
document.addEventListener("keydown", (event) => {
  if (event.target.id === "scrub") return;
  if (event.key === "ArrowLeft") show(current - 1);
  if (event.key === "ArrowRight") show(current + 1);
  if (event.key === " " && event.target.tagName !== "BUTTON") { event.preventDefault(); play(); }
});
show(0);
