const base = `
:root {
  --back: #fff; --text: #1c2430; --soft: #566275; --line: #dde2ea; --panel: #f5f7fa; --accent: #0b5fce; --warn: #a0410d;
  --get: #0b6b3a; --post: #0b5fce; --delete: #b3261e;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #12161c; --text: #e3e8ef; --soft: #9aa7b8; --line: #2c3440; --panel: #1a2028; --accent: #7fb2ff; --warn: #f0a070;
    --get: #6fd39b; --post: #7fb2ff; --delete: #ff9a92;
  }
}
* { box-sizing: border-box }
html { scroll-padding-top: 4.5rem }
body {
  margin: 0; background: var(--back); color: var(--text); line-height: 1.55;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif;
}
a { color: var(--accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px }
code, pre { font-family: var(--mono); font-size: .86em; overflow-wrap: anywhere }
p code, li code, td code { background: var(--panel); padding: .1em .3em; border-radius: 4px }
pre {
  margin: .5rem 0 1rem; padding: .9rem 1rem; overflow: auto; background: var(--panel); border: 1px solid var(--line);
  border-radius: 8px; line-height: 1.45; font-size: .82rem;
}
pre code { font-size: inherit; overflow-wrap: normal }
h1, h2, h3, h4 { line-height: 1.25 }
`

export const home = `${base}
main { max-width: 44rem; margin: 0 auto; padding: 3rem 1.25rem }
h1 { margin: 0 0 .5rem; font-size: 1.8rem }
h1 small { font-size: .9rem; font-weight: normal; color: var(--soft) }
`

const page = `${base}
.skip { position: absolute; left: -99rem }
.skip:focus { left: .5rem; top: .5rem; z-index: 3; background: var(--back); padding: .5rem }
header { padding: .6rem 1.25rem; border-bottom: 1px solid var(--line) }
header ul { display: flex; flex-wrap: wrap; list-style: none; margin: 0 -.5rem; padding: 0; font-size: .9rem }
header a { display: block; padding: .3rem .5rem; text-decoration: none; border-radius: 6px }
header a[aria-current] { color: inherit; font-weight: 600; text-decoration: underline }
.contents { padding: .75rem 1.25rem; border-bottom: 1px solid var(--line); font-size: .9rem }
.contents h2 { margin: 1rem 0 .25rem; font-size: .75rem; text-transform: uppercase; letter-spacing: .06em; color: var(--soft) }
.contents ul { list-style: none; margin: 0; padding: 0 }
.contents a { display: block; padding: .3rem .4rem; color: inherit; text-decoration: none; border-radius: 6px }
.contents a:hover { background: var(--panel) }
main { padding: 1.5rem 1.25rem 6rem; min-width: 0 }
h1 { margin: 0 0 .5rem; font-size: 1.9rem }
main h2 { margin: 3.5rem 0 .5rem; font-size: 1.45rem }
h3 { margin: 0 0 .4rem; font-size: 1.2rem }
details { margin: .4rem 0 }
summary { cursor: pointer; width: fit-content; font-size: .88rem; color: var(--accent) }
.contents summary { font-weight: 600; color: inherit }
table { border-collapse: collapse; width: 100%; font-size: .88rem; margin: .5rem 0 }
th, td { text-align: left; vertical-align: top; padding: .5rem .6rem .5rem 0; border-top: 1px solid var(--line) }
.block { position: relative }
.copy {
  position: absolute; right: .45rem; top: .45rem; font: .72rem system-ui, sans-serif; padding: .2rem .5rem; cursor: pointer;
  color: var(--soft); background: var(--back); border: 1px solid var(--line); border-radius: 5px;
}
@media (min-width: 60rem) {
  header { display: flex; align-items: center; gap: 2rem }
  .page { display: grid; grid-template-columns: 16rem minmax(0, 1fr) }
  .contents { position: sticky; top: 0; height: 100vh; overflow: auto; border: 0; border-right: 1px solid var(--line) }
  main { padding: 2rem 2.5rem 8rem; max-width: 88rem }
}
`

export const guide = `${page}
html { scroll-padding-top: 1rem }
main { line-height: 1.6 }
main > p, main > ul { max-width: 48rem }
main > ul > li, main > p { overflow-wrap: anywhere }
caption { text-align: left; color: var(--soft); font-size: .85rem }
.model { padding: 1.25rem 0; border-top: 1px solid var(--line); max-width: 48rem }
.model dl { display: grid; gap: .2rem 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr)); margin: 0; font-size: .9rem }
.model dt { display: inline; color: var(--soft) }
.model dt::after { content: ": " }
.model dd { display: inline; margin: 0 }
.prices { font-variant-numeric: tabular-nums }
.prices tbody th { font-weight: normal }
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

export const reference = `${page}
.choices { position: sticky; top: 0; z-index: 2; padding: .6rem 1.25rem; background: var(--back); border-bottom: 1px solid var(--line) }
fieldset { display: flex; border: 0; margin: 0; padding: 0; gap: .9rem }
legend { position: absolute; left: -99rem }
fieldset label { cursor: pointer; font-size: .9rem }
h1 small { font-size: .9rem; font-weight: normal; color: var(--soft) }
main h2, .contents h2 { text-transform: capitalize }
h3 a { color: inherit; text-decoration: none }
h3 a:hover { text-decoration: underline }
h4 { margin: 1.5rem 0 .5rem; font-size: .95rem }
.samples h4:first-child, .text > :first-child { margin-top: 0 }
.operation { padding: 1.75rem 0; border-top: 1px solid var(--line) }
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
body:has(#curl:checked) .sample:not(.curl), body:has(#python:checked) .sample:not(.python),
body:has(#javascript:checked) .sample:not(.javascript) { display: none }
@media (min-width: 60rem) {
  .contents { top: 2.75rem; height: calc(100vh - 2.75rem) }
}
@media (min-width: 80rem) {
  .columns { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 2.5rem }
  .samples { position: sticky; top: 4.5rem; align-self: start; max-height: calc(100vh - 5.5rem); overflow: auto }
}
`
