// Measures the page that it stands in, and tells the frame around it. Nothing of a report has a script; a test adds this one.
const background = element => {
  for (let at = element; at; at = at.parentElement) {
    const found = channels(getComputedStyle(at).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found;
  }
  return [255, 255, 255];
};
const all = [...document.body.querySelectorAll('*')].filter(element => element.tagName !== 'SCRIPT');
const isShown = element => element.getClientRects().length > 0;
const hasText = element => [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
const page = background(document.body);
const text = all.filter(element => isShown(element) && hasText(element)).map(element =>
  contrast(channels(getComputedStyle(element).color), background(element)));
const colours = [...document.querySelectorAll('.legend i')].map(element =>
  contrast(channels(getComputedStyle(element).backgroundColor), page));
const root = document.documentElement;
const known = /^(MAIN|SECTION|H1|H2|H3|P|A|DIV|B|I|SPAN|TABLE|THEAD|TBODY|TR|TH|TD)$/;
// By keyboard: what takes the focus shows it, and leads somewhere.
const links = [...document.querySelectorAll('a')];
const isSeen = link => {
  link.focus({ focusVisible: true });
  const style = getComputedStyle(link);
  return document.activeElement === link && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
};
const leads = link => document.getElementById(link.getAttribute('href').slice(1))?.localName === 'section';
// A heading skips no level.
const levels = [...document.querySelectorAll('h1, h2, h3')].map(heading => Number(heading.localName[1]));
// Times that run into each other, of those that are shown.
const marks = axis => [...axis.children].map(mark => mark.getBoundingClientRect()).filter(mark => mark.width > 0);
const isCrowded = shown => shown.some((mark, place) => place > 0 && mark.left < shown[place - 1].right);
const overlaps = [...document.querySelectorAll('.axis')].map(marks).filter(isCrowded);
const measured = {
  dark: matchMedia('(prefers-color-scheme: dark)').matches,
  width: innerWidth,
  overflow: Math.max(0, root.scrollWidth - root.clientWidth),
  text: Math.min(...text),
  colours: Math.min(...colours),
  // A longer text needs some room beside its neighbours.
  narrowest: Math.min(...all.filter(cell => /^(TD|TH)$/.test(cell.tagName) && isShown(cell) && cell.innerText.trim().length > 12)
    .map(cell => cell.getBoundingClientRect().width)),
  links: links.length,
  lost: links.filter(link => !isSeen(link) || !leads(link)).length,
  focusable: all.filter(element => element.tabIndex >= 0).length,
  levels,
  overlaps: overlaps.length,
  rows: document.querySelectorAll('.pods tbody tr').length,
  // What a screen reader would read without a name: pictures that are not hidden from it.
  unnamed: [...document.querySelectorAll('.bar, i')].filter(element => !element.closest('[aria-hidden=true]')).length,
  elements: all.map(element => element.tagName).filter(name => !known.test(name)),
  body: document.body.innerText,
};
parent.postMessage(JSON.stringify(measured), '*');
