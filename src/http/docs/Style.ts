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

export const reference = `${base}
.skip { position: absolute; left: -99rem }
.skip:focus { left: .5rem; top: .5rem; z-index: 3; background: var(--back); padding: .5rem }
header {
  position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; align-items: center;
  padding: .6rem 1.25rem; background: var(--back); border-bottom: 1px solid var(--line);
}
header strong { display: none }
fieldset { display: flex; border: 0; margin: 0; padding: 0; gap: .9rem }
legend { position: absolute; left: -99rem }
fieldset label { cursor: pointer; font-size: .9rem }
nav { padding: .75rem 1.25rem; border-bottom: 1px solid var(--line); font-size: .9rem }
nav h2 { margin: 1rem 0 .25rem; font-size: .75rem; text-transform: uppercase; letter-spacing: .06em; color: var(--soft) }
nav ul { list-style: none; margin: 0; padding: 0 }
nav a { display: block; padding: .3rem .4rem; color: inherit; text-decoration: none; border-radius: 6px }
nav a:hover { background: var(--panel) }
main { padding: 1.5rem 1.25rem 6rem; min-width: 0 }
h1 { margin: 0 0 .5rem; font-size: 1.9rem }
h1 small { font-size: .9rem; font-weight: normal; color: var(--soft) }
main h2 { margin: 3.5rem 0 .5rem; font-size: 1.45rem }
main h2, nav h2 { text-transform: capitalize }
h3 { margin: 0 0 .4rem; font-size: 1.2rem }
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
details { margin: .4rem 0 }
summary { cursor: pointer; width: fit-content; font-size: .88rem; color: var(--accent) }
nav summary { font-weight: 600; color: inherit }
details > .fields { margin: .3rem 0 .3rem .3rem; padding-left: .9rem; border-left: 2px solid var(--line) }
.status { font-family: var(--mono) }
.answer p { margin: .2rem 0 }
table { border-collapse: collapse; width: 100%; font-size: .88rem; margin: .5rem 0 }
th, td { text-align: left; vertical-align: top; padding: .5rem .6rem .5rem 0; border-top: 1px solid var(--line) }
td ul { margin: .3rem 0 0; padding: 0; list-style: none }
td li { margin: .2rem 0 }
.block { position: relative }
.copy {
  position: absolute; right: .45rem; top: .45rem; font: .72rem system-ui, sans-serif; padding: .2rem .5rem; cursor: pointer;
  color: var(--soft); background: var(--back); border: 1px solid var(--line); border-radius: 5px;
}
body:has(#curl:checked) .sample:not(.curl), body:has(#python:checked) .sample:not(.python),
body:has(#javascript:checked) .sample:not(.javascript) { display: none }
@media (min-width: 60rem) {
  header strong { display: block; margin-right: auto }
  .page { display: grid; grid-template-columns: 16rem minmax(0, 1fr) }
  nav { position: sticky; top: 3.1rem; height: calc(100vh - 3.1rem); overflow: auto; border: 0; border-right: 1px solid var(--line) }
  main { padding: 2rem 2.5rem 8rem; max-width: 88rem }
}
@media (min-width: 80rem) {
  .columns { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 2.5rem }
  .samples { position: sticky; top: 4.5rem; align-self: start; max-height: calc(100vh - 5.5rem); overflow: auto }
}
`
