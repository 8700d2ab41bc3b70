import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Schema } from "effect"
import { assert, describe, it } from "./harness/It.ts"
import { prefix } from "./harness/temporary.ts"

/** For each folder, or file of any folder, what it must not import; `..` counts from the folder. */
const forbidden: Readonly<Record<string, ReadonlyArray<string>>> = {
  "src/domain": ["../services/Ids.ts", "node:fs", "fs", "pg", "@effect/platform"],
  "src/domain/nested": ["../../services/Ids.ts"],
  "src/services": [
    "../http/Limits.ts",
    "../providers/Sse.ts",
    "../database/Database.ts",
    "../cli/Output.ts",
    "../storage/DiskStore.ts",
    "../tracing/Otlp.ts"
  ],
  "src/services/nested": ["../../http/Limits.ts", "../../Settings.ts", "../../Gateway.ts", "../../main.ts"],
  "src/providers": ["../http/Limits.ts", "../database/Database.ts", "../Gateway.ts", "@effect/sql", "pg"],
  "src/providers/nested": [
    "../../fetching/SafeFetcher.ts",
    "../../http/Limits.ts",
    "../../Serving.ts",
    "../../settings/Variables.ts"
  ],
  "src/database": ["../http/Limits.ts", "../providers/Sse.ts", "../cli.ts"],
  "src/database/nested": ["../../http/Limits.ts", "../../providers/Sse.ts", "../../Settings.ts"],
  "src/storage": ["../http/Limits.ts", "../providers/Sse.ts", "../fetching/SafeFetcher.ts", "../Settings.ts", "pg"],
  "src/fetching": ["../http/Limits.ts", "../database/Database.ts", "../storage/DiskStore.ts", "../Gateway.ts"],
  "src/tracing": ["../http/Limits.ts", "../database/Database.ts", "../Settings.ts", "@effect/sql"],
  "src/http": [
    "../providers/Sse.ts",
    "../tracing/Otlp.ts",
    "../database/Database.ts",
    "../Gateway.ts",
    "@effect/sql",
    "pg"
  ],
  "src/http/*/Schema.ts": [
    "../../services/Ids.ts",
    "../admission/Admission.ts",
    "./Handlers.ts",
    "../server/Server.ts",
    "@effect/sql-pg"
  ],
  "src/http/schema": ["../../services/Ids.ts", "../admission/Admission.ts", "../chat/Handlers.ts", "@effect/sql-pg"],
  "src/http/openapi": ["../../services/Ids.ts", "../admission/Admission.ts", "../chat/Handlers.ts"],
  "src/http/*/Handlers.ts": [
    "../server/Server.ts",
    "../server/Edge.ts",
    "../images/Handlers.ts",
    "../../providers/Sse.ts",
    "@effect/sql/SqlClient"
  ],
  "src/http/admission": ["../server/Server.ts", "../chat/Handlers.ts", "../../database/Database.ts", "../../main.ts"],
  "src/http/body": ["../server/Server.ts", "../chat/Handlers.ts", "../../storage/DiskStore.ts"],
  "src/http/server": ["../../providers/Sse.ts", "../../database/Database.ts", "../../Gateway.ts"],
  "src/console": [
    "../http/Answer.ts",
    "../services/Ids.ts",
    "../domain/Money.ts",
    "node:fs",
    "effect",
    "../Settings.ts"
  ],
  "src/console/nested": ["../../http/Answer.ts", "../../database/Database.ts", "../../cli/Output.ts"],
  "src/cli": ["../http/Limits.ts", "../providers/Sse.ts", "../main.ts"],
  "src/settings": ["../database/Database.ts", "../http/Limits.ts", "../Gateway.ts"],
  "src/workers": ["../database/Database.ts", "../providers/Sse.ts", "../Gateway.ts", "../main.ts"],
  src: ["./main.ts", "./cli.ts", "./cli/Output.ts"]
}

const violations = Object.entries(forbidden).flatMap(([folder, specifiers]) => {
  const depth = folder.replace(/\/\w+\.ts$/, "").split("/").length
  const test = `${"../".repeat(depth)}test/harness/temporary.ts`
  return [test, ...specifiers].map((specifier) => ({ folder, specifier }))
})

/** What each folder may import, of what the others may not. */
const allowed = [
  { folder: "src/domain", specifier: "./Money.ts" },
  { folder: "src/domain", specifier: "effect" },
  { folder: "src/services/nested", specifier: "../Ids.ts" },
  { folder: "src/services", specifier: "@effect/sql" },
  { folder: "src/database", specifier: "pg" },
  { folder: "src/http/*/Schema.ts", specifier: "../schema/Errors.ts" },
  { folder: "src/http/*/Schema.ts", specifier: "../../services/requests/RequestCounts.ts" },
  { folder: "src/http/openapi", specifier: "../../services/requests/RequestCounts.ts" },
  { folder: "src/console", specifier: "../services/requests/RequestCounts.ts" },
  { folder: "src/http/schema", specifier: "../errors/Wire.ts" },
  { folder: "src/http/*/Handlers.ts", specifier: "./Schema.ts" },
  { folder: "src/http/*/Handlers.ts", specifier: "../../services/Ids.ts" },
  { folder: "src/http/server", specifier: "../chat/Handlers.ts" },
  { folder: "src/storage", specifier: "../services/MediaStore.ts" },
  { folder: "src/fetching", specifier: "../services/Fetcher.ts" },
  { folder: "src/cli", specifier: "../Gateway.ts" },
  { folder: "src", specifier: "./http/Server.ts" }
]

const Report = Schema.parseJson(
  Schema.Struct({ diagnostics: Schema.Array(Schema.Struct({ code: Schema.String, filename: Schema.String })) })
)

/** The files, of those with one import each, whose import the rules of the project refuse. */
const refused = (imports: ReadonlyArray<{ readonly folder: string; readonly specifier: string }>) => {
  const directory = mkdtempSync(prefix)
  try {
    cpSync(".oxlintrc.json", path.join(directory, ".oxlintrc.json"))
    for (const [at, { folder, specifier }] of imports.entries()) {
      const file = path.join(
        directory,
        folder.includes("*") ? folder.replace("*", `Import${at}`) : `${folder}/Import${at}.ts`
      )
      mkdirSync(path.dirname(file), { recursive: true })
      writeFileSync(file, `export * as Imported from "${specifier}"\n`)
    }
    const oxlint = path.resolve("node_modules/.bin/oxlint")
    const { stdout } = spawnSync(oxlint, ["--format", "json"], { cwd: directory, encoding: "utf8" })
    const found = Schema.decodeUnknownSync(Report)(stdout).diagnostics.filter(({ code }) =>
      code.includes("no-restricted-imports")
    )
    const files = new Set(found.map(({ filename }) => /Import\d+/.exec(filename)?.[0]))
    return imports.filter((_, at) => files.has(`Import${at}`))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

describe("the lint rules", () => {
  it("know every ring there is", () => {
    const rings = readdirSync("src", { withFileTypes: true }).filter((entry) => entry.isDirectory())
    assert.includeMembers(
      Object.keys(forbidden),
      rings.map(({ name }) => `src/${name}`)
    )
  })

  it("refuse imports against the rings, in nested folders too", () => {
    assert.deepStrictEqual(refused(violations), violations)
  })

  it("let the rings import inwards", () => {
    assert.deepStrictEqual(refused(allowed), [])
  })
})
