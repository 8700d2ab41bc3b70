// The rules for imports, also those of types. `npm run check` refuses every other import; oxlint refuses cycles of files.

const platform = ["node:", "effect", "@effect/platform", "@effect/platform-node"]
const http = ["shared", "counts", "http", "http admission", "http docs", "http system", "http schemas"]

/**
 * What each ring may import: other rings, only the types of others, and packages. `node:` is all of Node's own modules.
 * A file of src belongs to the first ring whose `files` match its path.
 */
const rings = {
  /** Modules of the domain that import no package, for the bundle of the console too. */
  shared: {
    files: "domain/(?:Documents|ModelPatterns|Moment|Percent|SourceText|Wording)[.]ts$",
    imports: ["shared"],
    packages: []
  },
  domain: { files: "domain/", imports: ["domain", "shared"], packages: ["effect"] },
  counts: {
    files: "services/requests/RequestCounts[.]ts$",
    imports: [],
    importsTypes: ["domain", "services"],
    packages: []
  },
  services: {
    files: "services/",
    imports: ["domain", "shared", "counts", "services"],
    packages: ["node:", "effect", "@effect/sql", "@effect/platform", "gpt-tokenizer", "ipaddr.js", "yaml"]
  },
  node: {
    files: "node/",
    imports: ["node"],
    packages: ["node:", "effect", "@effect/sql", "@effect/sql-pg", "pg", "undici"]
  },
  providers: {
    files: "providers/",
    imports: ["domain", "shared", "services", "node", "providers"],
    packages: ["node:", "effect", "eventsource-parser", "undici"]
  },
  invoices: {
    files: "invoices/",
    imports: ["domain", "shared", "services", "node", "invoices"],
    packages: ["node:", "effect", "csv-parse", "undici"]
  },
  database: {
    files: "database/",
    imports: ["shared", "services", "node", "database"],
    packages: ["node:", "effect", "@effect/sql", "@effect/sql-pg", "pg", "pg-copy-streams"]
  },
  storage: {
    files: "storage/",
    imports: ["domain", "services", "node", "storage"],
    packages: ["node:", "effect", "aws4fetch", "undici"]
  },
  fetching: {
    files: "fetching/",
    imports: ["services", "node", "fetching"],
    packages: ["node:", "effect", "@effect/platform-node", "ipaddr.js", "undici"]
  },
  tracing: {
    files: "tracing/",
    imports: ["services", "node", "tracing"],
    packages: ["node:", "effect", "@effect/opentelemetry", "@effect/platform", "@effect/platform-node"]
  },
  stripe: {
    files: "stripe/",
    imports: ["domain", "services", "node", "stripe"],
    packages: ["node:", "effect", "undici"]
  },
  "http server": {
    files: "http/server/",
    imports: ["domain", "services", "node", ...http, "http handlers", "http server"],
    packages: platform
  },
  "http handlers": {
    files: "http/.*/\\w*Handlers[.]ts$",
    imports: ["domain", "services", ...http],
    packages: [...platform, "send", "package.json"]
  },
  "http schemas": {
    files: "http/(?:schema/|openapi/|[^/]+/\\w*Schema[.]ts$)",
    imports: ["domain", "shared", "counts", "http", "http schemas"],
    packages: ["effect", "@effect/platform", "openai"]
  },
  "http admission": {
    files: "http/admission/",
    imports: ["domain", "services", ...http],
    packages: [...platform, "ipaddr.js"]
  },
  "http docs": {
    files: "http/docs/",
    imports: ["domain", "services", ...http],
    packages: [...platform, "marked", "docs/"]
  },
  "http system": { files: "http/system/", imports: ["domain", "services", ...http], packages: platform },
  http: { files: "http/", imports: ["domain", "services", "node", ...http], packages: [...platform, "package.json"] },
  console: {
    files: "console/",
    imports: ["console", "shared", "counts"],
    importsTypes: ["http", "services"],
    packages: ["preact", "uplot"]
  },
  settings: {
    files: "(?:settings/|Settings[.]ts$)",
    imports: ["domain", "shared", "services", "node", "settings"],
    packages: ["node:", "effect"]
  },
  gateway: {
    files: "Gateway[.]ts$",
    imports: ["domain", "services", "providers", "database", "storage", "fetching", "stripe", "settings"].concat(
      "http server",
      "http handlers"
    ),
    packages: ["node:", "effect", "package.json"]
  },
  workers: {
    files: "workers/",
    imports: ["services", "http system", "workers"],
    packages: ["node:", "effect"]
  },
  exit: { files: "ExitCode[.]ts$", imports: ["services"], packages: ["node:", "effect", "@effect/sql"] },
  start: {
    files: "(?:Serve|Launch|Banner|StackTraces)[.]ts$",
    imports: ["domain", "shared", "services", "settings", "gateway", "workers", "tracing", "start"],
    packages: [...platform, "@effect/sql"]
  },
  cli: {
    files: "cli/",
    imports: ["domain", "shared", "services", "invoices", "database", "storage", "settings", "gateway", "exit", "cli"],
    packages: ["node:", "effect", "@effect/cli", "@effect/platform", "@effect/sql"]
  },
  commands: {
    files: "cli[.]ts$",
    imports: ["cli", "exit", "settings"],
    packages: ["node:", "effect", "@effect/cli", "@effect/platform-node", "package.json"]
  },
  main: { files: "main[.]ts$", imports: ["exit", "node", "settings", "start", "commands"], packages: platform }
}

const names = Object.keys(rings)

/** The paths of a ring's files: those that no earlier ring has. */
const filesOf = (name) => {
  const earlier = names.slice(0, names.indexOf(name)).map((other) => rings[other].files)
  return `^src/${earlier.length === 0 ? "" : `(?!${earlier.join("|")})`}${rings[name].files}`
}

const pathOf = (name) => (name === "docs/" || name === "package.json" ? `^${name}` : `(?:^|/)node_modules/${name}/`)

const onlyTypes = ["type-only", "type-import"]

const rulesOf = ([name, { imports, importsTypes = [], packages }]) => [
  {
    name,
    severity: "error",
    comment: `${name} may import ${[...imports, ...importsTypes.map((ring) => `types of ${ring}`), ...packages].join(", ")}`,
    from: { path: filesOf(name) },
    to: {
      pathNot: [...[...imports, ...importsTypes].map(filesOf), ...packages.map(pathOf)],
      dependencyTypesNot: packages.includes("node:") ? ["core"] : []
    }
  },
  ...importsTypes.map((ring) => ({
    name: `${name}: only types`,
    severity: "error",
    comment: `${name} imports ${ring} by "import type"`,
    from: { path: filesOf(name) },
    to: { path: filesOf(ring), dependencyTypesNot: onlyTypes }
  }))
]

export default {
  forbidden: [
    ...Object.entries(rings).flatMap(rulesOf),
    {
      name: "no-ring",
      severity: "error",
      comment: "The file belongs to no ring. Add it to one in .dependency-cruiser.mjs.",
      from: { path: "^src/", pathNot: names.map(filesOf) },
      to: {}
    },
    {
      name: "scope-of-caller",
      severity: "error",
      comment: "HTTP uses the OrganizationScope of its caller. It cannot create another one.",
      from: { path: "^src/http/" },
      to: { path: "^src/domain/OrganizationScope[.]ts$", dependencyTypesNot: onlyTypes }
    },
    {
      name: "cycle-of-rooms",
      severity: "error",
      comment: "Rooms, the direct folders of services and http, import each other in one direction.",
      scope: "folder",
      from: { path: "^src/(services|http)/[^/]+$" },
      to: { path: "^src/$1/[^/]+$", circular: true }
    },
    {
      name: "inside-of-room",
      severity: "error",
      comment:
        "Only the room itself, and http/server, import from folders inside a room. cycle-of-rooms relies on this.",
      from: { path: "^src/(services|http)/([^/]+)/", pathNot: "^src/http/server/" },
      to: { path: "^src/$1/[^/]+/[^/]+/", pathNot: "^src/$1/$2/" }
    }
  ],
  options: {
    // To see imports of types, dependency-cruiser needs the JavaScript API of TypeScript 6: the package "typescript".
    tsPreCompilationDeps: true,
    moduleSystems: ["es6"],
    doNotFollow: { path: "node_modules" },
    skipAnalysisNotInRules: true,
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default"] }
  }
}
