import { toUsdText } from "../../domain/Money.ts"
import { plain } from "../../services/catalog/CatalogSource.ts"
import type { Feed } from "./Feed.ts"
import { possessiveOf } from "./FeedModel.ts"
import type { Line, Proposal } from "./Proposal.ts"
import type { Proposals } from "./Proposals.ts"
import { toLine, toYaml, type YamlValue } from "./Yaml.ts"

const yaml = (value: YamlValue): string => toYaml(value, toUsdText)

const lineText = ({ comment, key, value }: Line): string => {
  const remark = comment === undefined ? "" : `# ${value === undefined ? `${key}: ` : ""}${toLine(comment)}`
  if (value === undefined) return remark
  return `${key}: ${yaml(value)}${remark === "" ? "" : `  ${remark}`}`
}

const routesText = ({ key, value }: Line): ReadonlyArray<string> =>
  Array.isArray(value) && key === "routes" ? ["routes:", ...value.map((route: YamlValue) => `  - ${yaml(route)}`)] : []

const entryText = ({ entry, lines, missing }: Proposal): string => {
  const rows = lines.flatMap((line) => (line.key === "routes" ? routesText(line) : [lineText(line)]))
  const text = rows.map((row, index) => (index === 0 ? `- ${row}` : `  ${row}`))
  return missing.length === 0
    ? [`  # ${toLine(entry)}`, ...text.map((row) => `  ${row}`)].join("\n")
    : [`  # ${toLine(entry)}: add ${missing.join(", ")}`, ...text.map((row) => `  # ${row}`)].join("\n")
}

/** Options are as the adapter gets them. */
const isYaml = (value: unknown): value is YamlValue =>
  ["string", "number", "boolean"].includes(typeof value) ||
  (Array.isArray(value) ? value.every(isYaml) : isMapping(value) && Object.values(value).every(isYaml))

const isMapping = (value: unknown): value is object => typeof value === "object" && value !== null

const mapping = (entry: object): string => {
  const known = Object.entries(entry).flatMap(([key, value]) => {
    const simple = plain(value)
    return isYaml(simple) ? [[key, simple] as const] : []
  })
  return yaml(Object.fromEntries(known))
}

/** Headers may hold a secret. */
const providerText = ({ seller: { entry, name } }: Proposal): string => {
  const { headers, ...shown } = entry
  const remark = headers === undefined ? "" : "  # its headers are left out"
  return `  ${yaml(name)}: ${mapping(shown)}${remark}`
}

const familyText = ({ family }: Proposal): ReadonlyArray<string> =>
  family === undefined
    ? []
    : [`  ${yaml(family.name)}: ${mapping(family.entry)}${family.isOwn ? "" : "  # new: none of yours fits"}`]

const unique = (lines: ReadonlyArray<string>) => [...new Set(lines)]

/** A catalog of its own that `catalog check` accepts; what lacks something is a comment. */
export const proposalText = (
  { complete, incomplete }: Proposals,
  { file, prices, today }: Feed,
  catalog: string
): string => {
  const head = [
    `# From ${toLine(file)}, which is ${possessiveOf(prices.kind)}, on ${today}: what it prices and ${toLine(catalog)} lacks.`
  ]
  const rest = incomplete.map(entryText)
  if (complete.length === 0) {
    return [...head, incomplete.length === 0 ? "# Nothing." : "# Nothing complete.", ...rest].join("\n\n")
  }
  const families = unique(complete.flatMap(familyText))
  return [
    [
      ...head,
      "# The prices are the vendors': set yours. Providers and families are repeated, for a check of this file."
    ].join("\n"),
    ["providers:", ...unique(complete.map(providerText))].join("\n"),
    ...(families.length === 0 ? [] : [["families:", ...families].join("\n")]),
    ["models:", ...complete.map(entryText), ...rest].join("\n")
  ].join("\n\n")
}
