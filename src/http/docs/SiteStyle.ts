const base = `
:root {
  --back: #fff; --text: #1c2430; --soft: #566275; --line: #dde2ea; --panel: #f5f7fa; --accent: #0b5fce; --warn: #a0410d;
  --tint: #e9f1fc; --mark: #fff0b8; --shadow: 0 8px 30px rgb(20 30 50 / .18);
  --get: #0b6b3a; --post: #0b5fce; --delete: #b3261e;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #12161c; --text: #e3e8ef; --soft: #9aa7b8; --line: #2c3440; --panel: #1a2028; --accent: #7fb2ff; --warn: #f0a070;
    --tint: #1b2a40; --mark: #57480f; --shadow: 0 8px 30px rgb(0 0 0 / .6);
    --get: #6fd39b; --post: #7fb2ff; --delete: #ff9a92;
  }
}
* { box-sizing: border-box }
body {
  margin: 0; background: var(--back); color: var(--text); line-height: 1.6;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif;
}
a { color: var(--accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px }
[hidden] { display: none !important }
code, pre, kbd { font-family: var(--mono); font-size: .86em; overflow-wrap: anywhere }
p code, li code, td code, th code { background: var(--panel); padding: .1em .3em; border-radius: 4px }
h1, h2, h3, h4 { line-height: 1.25; overflow-wrap: anywhere }
.block { margin: .6rem 0 1.25rem; border: 1px solid var(--line); border-radius: 8px; background: var(--panel); overflow: hidden }
.bar {
  display: flex; justify-content: space-between; align-items: center; min-height: 2.1rem; padding: 0 .5rem 0 1rem;
  border-bottom: 1px solid var(--line); color: var(--soft); font-size: .78rem;
}
.bar button {
  font: inherit; padding: .2rem .55rem; cursor: pointer; color: var(--text); background: var(--back);
  border: 1px solid var(--line); border-radius: 5px;
}
.bar button:hover { border-color: var(--accent) }
pre { margin: 0; padding: .8rem 1rem; overflow: auto; line-height: 1.5; font-size: .82rem }
pre:focus-visible { outline-offset: -2px }
pre code { font-size: inherit; overflow-wrap: normal }
`

export const home = `${base}
main { max-width: 44rem; margin: 0 auto; padding: 3rem 1.25rem }
h1 { margin: 0 0 .5rem; font-size: 1.8rem }
h1 small { font-size: .9rem; font-weight: normal; color: var(--soft) }
`

const frame = `
.unseen { position: absolute; left: -99rem }
.skip { position: absolute; left: -99rem }
.skip:focus { left: .5rem; top: .5rem; z-index: 5; background: var(--back); padding: .5rem }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 2rem; padding: .6rem 1.25rem; border-bottom: 1px solid var(--line) }
.brand { color: inherit; font-weight: 700; text-decoration: none }
.search { position: relative; flex: 1 1 14rem; max-width: 30rem }
.search input {
  width: 100%; font: inherit; font-size: .9rem; padding: .4rem 2.2rem .4rem .75rem; color: var(--text); background: var(--panel);
  border: 1px solid var(--line); border-radius: 8px;
}
.search input::-webkit-search-cancel-button { display: none }
.search kbd {
  position: absolute; right: .6rem; top: .5rem; padding: .05rem .4rem; border: 1px solid var(--line); border-radius: 4px;
  color: var(--soft); background: var(--back); pointer-events: none; line-height: 1.3;
}
.results {
  position: absolute; z-index: 4; left: 0; top: calc(100% + .4rem); width: max(100%, min(36rem, calc(100vw - 2.5rem)));
  max-height: min(70vh, 36rem); overflow: auto; background: var(--back); border: 1px solid var(--line); border-radius: 10px;
  box-shadow: var(--shadow);
}
.results p { margin: 0; padding: .6rem 1rem; color: var(--soft); font-size: .82rem; overflow-wrap: anywhere }
.results ul { list-style: none; margin: 0; padding: 0 }
.results a { display: block; padding: .55rem 1rem; border-top: 1px solid var(--line); color: inherit; text-decoration: none }
.results a:hover, .results a:focus { background: var(--tint) }
.results a:focus-visible { outline-offset: -2px }
.results strong { margin-right: .6rem; font-size: .92rem; overflow-wrap: anywhere }
.results span { color: var(--soft); font-size: .78rem }
.results small { display: block; color: var(--soft); font-size: .8rem; overflow-wrap: anywhere }
mark { color: var(--text); background: var(--mark); border-radius: 2px }
.menu { padding: .5rem 1.25rem; border-bottom: 1px solid var(--line); font-size: .9rem }
.menu summary { padding: .3rem 0; font-weight: 600; color: inherit; cursor: pointer }
.menu p { margin: 1.1rem 0 .25rem; padding: 0 .5rem; font-size: .75rem; font-weight: 600; color: var(--soft) }
.menu ul { list-style: none; margin: 0; padding: 0 }
.menu a { display: block; padding: .25rem .5rem; color: inherit; text-decoration: none; border-radius: 6px }
.menu a:hover { background: var(--panel) }
.menu a[aria-current] { background: var(--tint); color: var(--accent); font-weight: 600 }
.menu ul ul { margin: .15rem 0 .4rem .5rem; padding-left: .4rem; border-left: 1px solid var(--line); font-size: .85rem }
.menu ul ul a { color: var(--soft); padding: .18rem .5rem }
.menu ul ul a:hover { color: inherit }
.reference .menu ul ul > li > a { text-transform: capitalize }
.reference .menu ul ul ul > li > a { text-transform: none }
main { padding: 1.5rem 1.25rem 6rem; min-width: 0 }
.languages { display: flex; border: 0; margin: 0 0 1rem; padding: 0; gap: .35rem }
.languages label { cursor: pointer; font-size: .85rem }
.languages input { position: absolute; opacity: 0 }
.languages span { display: block; padding: .25rem .7rem; border: 1px solid var(--line); border-radius: 99px; background: var(--back) }
.languages input:checked + span { background: var(--tint); border-color: var(--accent); color: var(--accent); font-weight: 600 }
.languages input:focus-visible + span { outline: 2px solid var(--accent); outline-offset: 2px }
body:has(#curl:checked) .choice:has(.curl) .sample:not(.curl),
body:has(#python:checked) .choice:has(.python) .sample:not(.python),
body:has(#javascript:checked) .choice:has(.javascript) .sample:not(.javascript) { display: none }
.languages { position: sticky; top: 0; z-index: 2; margin: -1.5rem -1.25rem 1rem; padding: .5rem 1.25rem; background: var(--back); border-bottom: 1px solid var(--line) }
html { scroll-padding-top: 4rem }
@media (min-width: 60rem) {
  header { position: sticky; top: 0; z-index: 3; height: 3.5rem; background: var(--back) }
  .page { display: grid; grid-template-columns: 17rem minmax(0, 1fr) }
  .menu { position: sticky; top: 3.5rem; height: calc(100vh - 3.5rem); overflow: auto; border: 0; border-right: 1px solid var(--line); padding: .25rem .75rem 2rem }
  .menu summary { display: none }
  main { padding: 2rem 3rem 8rem; max-width: 62rem }
  .models main, .reference main { max-width: 90rem }
  .models main { padding-left: 2rem; padding-right: 2rem }
  .languages { top: 3.5rem; margin: -2rem -3rem 1.5rem; padding: .6rem 3rem }
  html { scroll-padding-top: 7.5rem }
}
`

const content = `
h1 { margin: 0 0 .75rem; font-size: 1.9rem }
h1 small { font-size: .9rem; font-weight: normal; color: var(--soft) }
main h2 { margin: 2.75rem 0 .5rem; font-size: 1.4rem }
main h3 { margin: 1.75rem 0 .4rem; font-size: 1.12rem }
h4 { margin: 1.5rem 0 .5rem; font-size: .95rem }
main > p, main > ul { max-width: 48rem; overflow-wrap: anywhere }
details { margin: .4rem 0 }
summary { cursor: pointer; width: fit-content; font-size: .88rem; color: var(--accent) }
table { border-collapse: collapse; width: 100%; font-size: .88rem; margin: .75rem 0 }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem .5rem 0; border-top: 1px solid var(--line) }
thead th { border-top: 0; color: var(--soft); font-weight: 600 }
tbody th { font-weight: normal }
caption { text-align: left; color: var(--soft); font-size: .85rem }
@media (min-width: 60rem) {
  .wide code { overflow-wrap: break-word }
}
@media (max-width: 59.99rem) {
  .wide thead { position: absolute; left: -99rem }
  .wide tbody, .wide tr, .wide td { display: block }
  .wide tr { padding: .6rem 0; border-top: 1px solid var(--line) }
  .wide td { padding: .1rem 0; border: 0 }
  .wide td:not(:empty)::before { content: attr(data-label) ": "; color: var(--soft) }
}
`

const models = `
.filter { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem; margin: 1rem 0 .5rem }
.filter label { font-size: .9rem }
.filter input {
  font: inherit; font-size: .9rem; width: 18rem; max-width: 100%; padding: .35rem .7rem; color: var(--text); background: var(--panel);
  border: 1px solid var(--line); border-radius: 8px;
}
.filter p { margin: 0; color: var(--soft); font-size: .85rem }
.compare { overflow: auto; max-height: 80vh; border: 1px solid var(--line); border-radius: 8px }
.compare table { margin: 0; font-size: .84rem; border-collapse: separate; border-spacing: 0; font-variant-numeric: tabular-nums }
.compare th, .compare td { padding: .4rem .5rem; white-space: nowrap; vertical-align: middle }
.compare thead th { position: sticky; top: 0; z-index: 1; background: var(--panel); padding: .3rem .1rem; white-space: normal }
.compare thead button { font: inherit; color: inherit; text-align: inherit; background: none; border: 0; padding: .2rem .35rem; cursor: pointer; border-radius: 4px }
.compare thead button:hover { color: var(--accent) }
.compare thead button::after { content: "↕"; margin-left: .3rem; opacity: .45 }
.compare [aria-sort=ascending] button::after { content: "↑"; opacity: 1 }
.compare [aria-sort=descending] button::after { content: "↓"; opacity: 1 }
.compare .kind th { background: var(--tint); font-weight: 600; padding-top: .35rem; padding-bottom: .35rem }
.compare tbody tr:not(.kind) th { position: sticky; left: 0; background: var(--back) }
.compare tbody tr:not(.kind):hover > * { background: var(--panel) }
.compare .number { text-align: right }
.compare .can { text-align: center }
.compare td.can { color: var(--get) }
.model { padding: 1.25rem 0; border-top: 1px solid var(--line); max-width: 48rem }
.model h3 { margin-top: 0 }
.model dl { display: grid; gap: .2rem 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr)); margin: 0; font-size: .9rem }
.model dt { display: inline; color: var(--soft) }
.model dt::after { content: ": " }
.model dd { display: inline; margin: 0 }
.prices { font-variant-numeric: tabular-nums }
@media (max-width: 59.99rem) {
  .compare th, .compare td { padding: .4rem .5rem }
  .compare tbody tr:not(.kind) th { min-width: 9.5rem; white-space: normal }
  .compare tr:not(.kind) > :nth-child(2) { display: none }
}
`

const reference = `
.reference main > h2[id] { text-transform: capitalize }
.operation { padding: 1.75rem 0; border-top: 1px solid var(--line) }
.operation h3 { margin-top: 0; font-size: 1.2rem }
h3 a { color: inherit; text-decoration: none }
h3 a:hover { text-decoration: underline }
.samples h4:first-child, .text > :first-child { margin-top: 0 }
.endpoint { margin: 0 0 1rem }
.method { font: 700 .75rem var(--mono); text-transform: uppercase }
.get { color: var(--get) } .post { color: var(--post) } .delete { color: var(--delete) }
.columns { display: grid; gap: 1.5rem; grid-template-columns: minmax(0, 1fr) }
.fields { list-style: none; margin: 0; padding: 0 }
.fields > li { padding: .6rem 0; border-top: 1px solid var(--line) }
.fields p { margin: .15rem 0; font-size: .92rem }
.name { font-weight: 600; background: none !important; padding: 0 !important }
.type { color: var(--soft); font: .8rem var(--mono); overflow-wrap: anywhere }
.required { color: var(--warn); font-size: .78rem }
.fields .limits, .fields .values { color: var(--soft); font-size: .85rem }
.media { font: .82rem var(--mono); color: var(--soft) }
details > .fields { margin: .3rem 0 .3rem .3rem; padding-left: .9rem; border-left: 2px solid var(--line) }
.status { font-family: var(--mono) }
td ul { margin: .3rem 0 0; padding: 0; list-style: none }
td li { margin: .2rem 0 }
@media (min-width: 80rem) {
  .columns { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 2.5rem }
  .samples { position: sticky; top: 7.5rem; align-self: start; max-height: calc(100vh - 8.5rem); overflow: auto }
}
`

/** The style of all pages except the home page. It is small enough to be part of each page. */
export const site = [base, frame, content, models, reference].join("")
