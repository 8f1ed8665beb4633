"""How pages look: one style for all of them, in light and dark, on a phone, and on paper."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1d2129; --paper: #ffffff; --soft: #5b6472;
  --line: #d5d9e0; --shade: #f4f6f9; --edge: #1d212933; --warn: #c77700; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ec; --paper: #14171c; --soft: #9aa3b2; --line: #343a45; --shade: #1c2028; --edge: #e4e7ec40; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.25rem; max-width: 56rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line);
  overflow-wrap: anywhere; }
p { margin: .5rem 0; max-width: 50rem; overflow-wrap: anywhere; }
.note { padding: .5rem .75rem; background: var(--shade); border-left: 3px solid var(--warn); }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; list-style: none; margin: .75rem 0; padding: 0;
  font-size: .9rem; }
a { color: inherit; overflow-wrap: anywhere; }
/* What scrolls has a shade at each edge that hides more: the cover of the shade moves with the content. */
.wide { overflow-x: auto;
  background: linear-gradient(to right, var(--paper) 40%, transparent) left / 2.5rem 100% no-repeat local,
    linear-gradient(to left, var(--paper) 40%, transparent) right / 2.5rem 100% no-repeat local,
    linear-gradient(to right, var(--edge), transparent) left / .625rem 100% no-repeat scroll,
    linear-gradient(to left, var(--edge), transparent) right / .625rem 100% no-repeat scroll; }
.wide { margin: .5rem 0 1rem; }
table { border-collapse: collapse; min-width: min(100%, 36rem); font-size: .875rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: .25rem 0; }
th, td { text-align: left; padding: .3rem 1rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; vertical-align: bottom; }
/* Names of columns stay on a line: one that wraps where it cannot be seen leaves a gap above those that can. */
thead th.short, thead th.number { white-space: nowrap; }
tbody th { font-weight: 400; vertical-align: top; }
tr.chosen > * { font-weight: 700; background: var(--shade); }
td.short, tbody th.short, td.number, tbody th.number { white-space: nowrap; }
.number { text-align: right; }
/* Long texts break where the page marks it, and anywhere only when nothing else is left. */
.long { min-width: 11rem; max-width: 32rem; overflow-wrap: anywhere; }
figure { margin: 1rem 0; overflow-x: auto; }
figure svg { display: block; width: 100%; max-width: 46rem; height: auto; }
figcaption { color: var(--soft); font-size: .875rem; max-width: 50rem; }
.gallery { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 0 2rem; }
pre { background: var(--shade); padding: .75rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8125rem; }
@media print {
  @page { margin: 14mm; }
  :root { color-scheme: light; --ink: #000; --paper: #fff; --soft: #444; --line: #999; --shade: #fff; --edge: #fff; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h1 { font-size: 16pt; }
  h2 { font-size: 12pt; margin-top: 14pt; }
  nav { display: none; }
  p, figcaption { max-width: none; }
  h2, figure, tr, pre, .note { break-inside: avoid; }
  h2, caption, thead { break-after: avoid; }
  thead { display: table-header-group; }
  .wide, figure { overflow: visible; background: none; }
  table { font-size: 8.5pt; min-width: min(100%, 24rem); }
  th, td { padding: .15rem .6rem .15rem 0; }
  .long { min-width: 6rem; max-width: none; }
  td.short, thead th.short, thead th.number { white-space: normal; }
  figure svg { max-width: 4.8in; }
  .gallery { grid-template-columns: 1fr 1fr; gap: 0 1rem; }
  .note { border: 1px solid var(--line); border-left: 3px solid var(--warn); }
  tr.chosen > * { border-top: 1.5px solid var(--ink); border-bottom: 1.5px solid var(--ink); }
}
"""
"""Style sheet of every page."""
