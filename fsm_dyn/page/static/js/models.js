// The shipped models: pictures and summaries, a search, and the start of one by a click.

import { $, el, setText } from "./dom.js";

let cards = [];

function card(model) {
  const picture = model.picture ? el("img", { src: `pictures/${model.name}`, alt: "", width: 360, height: 240, loading: "lazy" }) : "";
  const button = el("button", { onclick: () => start(model.name) }, picture, el("strong", { text: model.name }), el("span", { text: model.summary }));
  const text = `${model.name} ${model.name.replaceAll("_", " ")} ${model.summary}`.toLowerCase();
  return { text, item: el("li", {}, button), button, theme: model.theme };
}

// A heading and a list for each theme, in the order of the cards.
function sections() {
  return [...new Set(cards.map(({ theme }) => theme))].map((theme) => {
    const items = cards.filter((one) => one.theme === theme).map(({ item }) => item);
    return el("section", {}, el("h2", { text: theme }), el("ul", { "aria-label": theme }, ...items));
  });
}

// Every word of the search occurs in the name or the summary.
function filter() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const { item, text } of cards) item.hidden = !words.every((word) => text.includes(word));
  for (const section of $("cards").children) section.hidden = !section.querySelector("li:not([hidden])");
  const shown = cards.filter(({ item }) => !item.hidden).length;
  setText($("count"), shown === cards.length ? `${shown} models` : `${shown} of ${cards.length}`);
}

async function start(name) {
  for (const { button } of cards) button.disabled = true;
  try {
    const answer = await fetch(`start/${name}`, { method: "POST" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    location.href = "./?from=models";
  } catch (error) {
    report(`${name} did not start: ${error.message}`);
  }
  for (const { button } of cards) button.disabled = false;
}

function report(text) {
  $("problem").hidden = !text;
  setText($("problem"), text);
}

async function list() {
  try {
    cards = (await (await fetch("catalogue")).json()).map(card);
  } catch (error) {
    report(`The server does not answer: ${error.message}`);
  }
  $("cards").replaceChildren(...sections());
  filter();
}

$("search").addEventListener("input", filter);
$("search").addEventListener("keydown", ({ key }) => {
  if (key === "Enter") cards.find(({ item }) => !item.hidden)?.button.click();
});
list();
