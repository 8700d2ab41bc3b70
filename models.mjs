// Writes the list of models and vendors into README.md, from catalog.yaml. With --check it only compares.
import { readFileSync, writeFileSync } from "node:fs"
import { parse } from "yaml"

const [begin, end] = ["<!-- models: made of catalog.yaml by `npm run docs` -->", "<!-- /models -->"]

const { models, providers } = parse(readFileSync("catalog.yaml", "utf8"))

/** Providers that share a credential are one vendor, named as the first of them. */
const vendorOf = (name) =>
  Object.keys(providers).find((other) => providers[other].credential === providers[name].credential)

const byPreference = (a, b) => (a.preference ?? 1) - (b.preference ?? 1)

const vendorsOf = ({ routes }) => [...new Set(routes.toSorted(byPreference).map(({ provider }) => vendorOf(provider)))]

/** Neighbours with the same vendors share an item. */
const items = []
for (const model of models) {
  const vendors = vendorsOf(model).join(", ")
  const last = items.at(-1)
  if (last?.surface === model.surface && last.vendors === vendors) last.ids.push(model.id)
  else items.push({ surface: model.surface, vendors, ids: [model.id] })
}

const list = items
  .map(({ ids, surface, vendors }) => `- ${surface} (${vendors}): ${ids.map((id) => `\`${id}\``).join(" ")}`)
  .join("\n")

const readme = readFileSync("README.md", "utf8")
const [before, after] = [readme.indexOf(begin), readme.indexOf(end)]
if (before === -1 || after < before) throw new Error(`README.md has no "${begin}" with "${end}" after it`)

const made = `${readme.slice(0, before)}${begin}\n\n${list}\n\n${readme.slice(after)}`

if (!process.argv.includes("--check")) writeFileSync("README.md", made)
else if (made !== readme) {
  console.error("README.md's list of models is not that of catalog.yaml: npm run docs")
  process.exitCode = 1
}
