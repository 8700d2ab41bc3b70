import { type Import, importsOf, type Sources } from "./Imports.ts"

interface Ring {
  /** A file of `src` belongs to the first ring whose pattern its path matches. */
  readonly files: RegExp
  /** The rings that it imports; all others are refused to it. */
  readonly knows: ReadonlyArray<string>
  /** The rings of which it imports types alone. */
  readonly knowsTypesOf?: ReadonlyArray<string>
  readonly packages: ReadonlyArray<string>
}

const http = ["calendar", "counts", "http", "http admission", "http docs", "http system", "http schemas"]
const guides = ["agents", "errors", "limits", "money", "webhooks"]
const platform = ["node:", "effect", "@effect/platform", "@effect/platform-node"]

export const rings: Readonly<Record<string, Ring>> = {
  calendar: { files: /^domain\/Calendar\.ts$/, knows: [], packages: [] },
  domain: { files: /^domain\//, knows: ["domain", "calendar"], packages: ["effect"] },
  counts: {
    files: /^services\/requests\/RequestCounts\.ts$/,
    knows: [],
    knowsTypesOf: ["domain", "services"],
    packages: []
  },
  services: {
    files: /^services\//,
    knows: ["domain", "counts", "services"],
    packages: ["node:", "effect", "@effect/sql", "@effect/platform", "gpt-tokenizer", "ipaddr.js", "yaml"]
  },
  node: { files: /^node\//, knows: ["node"], packages: ["node:", "effect", "@effect/sql", "@effect/sql-pg", "pg"] },
  providers: {
    files: /^providers\//,
    knows: ["domain", "services", "providers"],
    packages: ["node:", "effect", "eventsource-parser", "@silvia-odwyer/photon-node", "undici"]
  },
  books: {
    files: /^books\//,
    knows: ["domain", "services", "books"],
    packages: ["effect", "@effect/platform", "undici"]
  },
  database: {
    files: /^database\//,
    knows: ["services", "node", "database"],
    packages: ["node:", "effect", "@effect/sql", "@effect/sql-pg", "pg", "pg-copy-streams"]
  },
  storage: {
    files: /^storage\//,
    knows: ["domain", "services", "storage"],
    packages: ["node:", "effect", "aws4fetch", "undici"]
  },
  fetching: {
    files: /^fetching\//,
    knows: ["services", "fetching"],
    packages: ["node:", "effect", "@effect/platform-node", "ipaddr.js", "undici"]
  },
  tracing: {
    files: /^tracing\//,
    knows: ["services", "tracing"],
    packages: ["node:", "effect", "@effect/opentelemetry", "undici"]
  },
  stripe: {
    files: /^stripe\//,
    knows: ["domain", "services", "stripe"],
    packages: ["node:", "effect", "undici"]
  },
  "http server": {
    files: /^http\/server\//,
    knows: ["domain", "services", "node", ...http, "http handlers", "http server"],
    packages: platform
  },
  "http handlers": {
    files: /^http\/.*\/\w*Handlers\.ts$/,
    knows: ["domain", "services", ...http],
    packages: [...platform, "package.json", "send"]
  },
  "http schemas": {
    files: /^http\/(?:schema\/|openapi\/|[^/]+\/\w*Schema\.ts$)/,
    knows: ["domain", "counts", "http", "http schemas"],
    packages: ["effect", "@effect/platform", "openai"]
  },
  "http admission": {
    files: /^http\/admission\//,
    knows: ["domain", "services", ...http],
    packages: [...platform, "ipaddr.js"]
  },
  "http docs": {
    files: /^http\/docs\//,
    knows: ["domain", "services", ...http],
    packages: [...platform, "marked", ...guides.map((name) => `docs/${name}.md`)]
  },
  "http system": { files: /^http\/system\//, knows: ["domain", "services", ...http], packages: platform },
  http: { files: /^http\//, knows: ["domain", "services", "node", ...http], packages: platform },
  console: {
    files: /^console\//,
    knows: ["counts", "calendar", "console"],
    knowsTypesOf: ["http", "services"],
    packages: ["preact", "uplot"]
  },
  settings: {
    files: /^(?:settings\/|Settings\.ts$)/,
    knows: ["domain", "services", "settings"],
    packages: ["node:", "effect"]
  },
  gateway: {
    files: /^Gateway\.ts$/,
    knows: [
      "domain",
      "services",
      "providers",
      "database",
      "storage",
      "fetching",
      "stripe",
      "http server",
      "http handlers",
      "settings"
    ],
    packages: ["node:", "effect", "package.json"]
  },
  workers: {
    files: /^workers\//,
    knows: ["services", "node", "http system", "settings", "workers"],
    packages: ["node:", "effect"]
  },
  exit: { files: /^ExitCode\.ts$/, knows: ["services"], packages: ["effect", "@effect/sql"] },
  start: {
    files: /^(?:Serve|PlainServe|Launch|Banner|FirstStart|Logging|StackTraces)\.ts$/,
    knows: ["domain", "services", "settings", "gateway", "workers", "tracing", "start"],
    packages: [...platform, "@effect/sql"]
  },
  cli: {
    files: /^cli\//,
    knows: ["domain", "services", "books", "database", "storage", "settings", "gateway", "exit", "cli"],
    packages: ["node:", "effect", "@effect/cli", "@effect/platform", "@effect/sql"]
  },
  commands: {
    files: /^cli\.ts$/,
    knows: ["cli", "exit", "settings"],
    packages: ["effect", "@effect/cli", "@effect/platform-node", "package.json"]
  },
  main: { files: /^main\.ts$/, knows: ["exit", "settings", "start", "commands"], packages: platform }
}

const root = "src/"

const ringOf = (path: string): string | undefined => {
  if (!path.startsWith(root)) return undefined
  const within = path.slice(root.length)
  return Object.keys(rings).find((name) => rings[name]?.files.test(within))
}

/** Why the import is refused; undefined where it is not. */
const refusalOf = ({ file, isType, specifier, target }: Import): string | undefined => {
  const name = ringOf(file)
  const ring = name === undefined ? undefined : rings[name]
  if (ring === undefined) return `${file} belongs to no ring: add one to test/harness/Rings.ts`
  const of = ringOf(target)
  const { knows, knowsTypesOf = [], packages } = ring
  if (of === undefined ? packages.includes(target) : knows.includes(of)) return undefined
  if (of !== undefined && isType && knowsTypesOf.includes(of)) return undefined
  const types = knowsTypesOf.length === 0 ? "" : `, types of ${knowsTypesOf.join(", ")}`
  return `${file} imports ${specifier}: ${name} may import ${[...knows, ...packages].join(", ")}${types}`
}

/** One line for each import against the rings: the file, the import and the rule. */
export const findRefusals = (sources: Sources): ReadonlyArray<string> =>
  importsOf(sources).flatMap((found) => refusalOf(found) ?? [])

/** The direct folder of the ring; undefined for the ring's own files. */
const roomOf = (ring: string, path: string): string | undefined =>
  path.startsWith(`${root}${ring}/`) ? /^([^/]+)\//.exec(path.slice(root.length + ring.length + 1))?.[1] : undefined

type Arrows = ReadonlyMap<string, ReadonlyMap<string, Import>>

/** An import for each pair of rooms of which the first imports the second. */
const arrowsOf = (ring: string, sources: Sources): Arrows => {
  const arrows = new Map<string, Map<string, Import>>()
  for (const found of importsOf(sources)) {
    const from = roomOf(ring, found.file)
    const to = roomOf(ring, found.target)
    if (from === undefined || to === undefined || from === to) continue
    const known = arrows.get(from) ?? new Map<string, Import>()
    arrows.set(from, known.set(to, known.get(to) ?? found))
  }
  return arrows
}

/** The imports of the shortest way from one room to another. */
const pathBetween = (arrows: Arrows, from: string, to: string): ReadonlyArray<Import> | undefined => {
  const paths = new Map<string, ReadonlyArray<Import>>([[from, []]])
  for (const [room, path] of paths) {
    for (const [next, found] of arrows.get(room) ?? []) {
      if (next === to) return [...path, found]
      if (!paths.has(next)) paths.set(next, [...path, found])
    }
  }
  return undefined
}

/** One line for each circle of imports among the rooms of a ring. */
export const findCircles = (ring: string, sources: Sources): ReadonlyArray<string> => {
  const arrows = arrowsOf(ring, sources)
  const circles = new Map<string, string>()
  for (const room of arrows.keys()) {
    const circle = pathBetween(arrows, room, room)
    if (circle === undefined) continue
    const lines = circle.map(({ file, specifier }) => `${file} imports ${specifier}`)
    const key = lines.toSorted().join()
    if (!circles.has(key)) circles.set(key, lines.join(", "))
  }
  return [...circles.values()]
}
