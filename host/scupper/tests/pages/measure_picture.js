// Measures the picture that it stands in, and tells the frame around it. Nothing of a report has a script; a test adds this one.
const root = document.documentElement;
const all = [...document.querySelectorAll('*')].filter(element => element.localName !== 'script');
const fill = element => channels(getComputedStyle(element).fill);
const page = fill(document.querySelector('rect.page'));
const against = selector => Math.min(...[...document.querySelectorAll(selector)].map(element => contrast(fill(element), page)));
const known = /^(svg|title|desc|style|rect|text)$/;
const edge = root.getBoundingClientRect();
// A text that is longer than its place is cut off there.
const shown = element => (element.parentElement === root ? element : element.parentElement);
const outside = all.filter(element => /^(rect|text)$/.test(element.localName)).filter(element => {
  const place = element.getBoundingClientRect();
  if (element.localName === 'rect' || shown(element) === element) return place.right > edge.right + 1 || place.bottom > edge.bottom + 1;
  const around = shown(element);
  return Number(around.getAttribute('x')) + Number(around.getAttribute('width')) > 1200;
});
// Names that are too long are shortened, so that their ends are seen.
const cut = [...document.querySelectorAll('svg > svg')].filter(label => label.querySelector('text').getBBox().width > Number(label.getAttribute('width')));
const labels = [...document.querySelectorAll('svg > svg')].map(label => Number(label.getAttribute('y')));
const named = root.getAttribute('aria-labelledby').split(' ').map(id => document.getElementById(id).textContent);
const measured = {
  dark: matchMedia('(prefers-color-scheme: dark)').matches,
  width: innerWidth,
  overflow: Math.max(0, root.scrollWidth - root.clientWidth, Math.round(edge.right) - innerWidth),
  outside: outside.map(element => element.outerHTML),
  text: against('text'),
  colours: against('rect:not(.page):not(.line)'),
  rows: document.querySelectorAll('rect.line').length,
  // Of labels below each other.
  distance: Math.min(...labels.slice(1).map((at, place) => at - labels[place]).filter(distance => distance > 0)),
  cut: cut.map(label => label.textContent),
  role: root.getAttribute('role'),
  named,
  elements: all.map(element => element.localName).filter(name => !known.test(name)),
  text_of_all: root.textContent,
};
parent.postMessage(JSON.stringify(measured), '*');
