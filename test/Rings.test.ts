import { readdirSync, readFileSync } from "node:fs"
import { Schema } from "effect"
import { page, section, table } from "./docs/Markdown.ts"
import { readSources } from "./harness/Imports.ts"
import { assert, describe, it } from "./harness/It.ts"
import { findCircles, findRefusals, rings } from "./harness/Rings.ts"

const sources = readSources("src")

/** Rings whose rooms, their direct folders, import each other in one direction. */
const ordered = ["services", "http"]

/** For each folder or file what it must not import; `..` counts from its folder. */
const forbidden: Readonly<Record<string, ReadonlyArray<string>>> = {
  "src/domain": ["../services/Ids.ts", "node:fs", "fs", "pg", "@effect/platform"],
  "src/domain/nested": ["../../services/Ids.ts"],
  "src/services": [
    "../http/Limits.ts",
    "../providers/Sse.ts",
    "../database/Database.ts",
    "../cli/Output.ts",
    "../storage/DiskStore.ts",
    "../tracing/Otlp.ts",
    "../workers/Workers.ts",
    "../node/HalfOpenServer.ts",
    "../Serve.ts",
    "../Logging.ts",
    "undici",
    "pg"
  ],
  "src/services/nested": ["../../http/Limits.ts", "../../Settings.ts", "../../Gateway.ts", "../../main.ts"],
  "src/node": ["../services/Ids.ts", "../http/Limits.ts", "../domain/Money.ts"],
  "src/providers": [
    "../http/Limits.ts",
    "../database/Database.ts",
    "../Gateway.ts",
    "../Serve.ts",
    "@effect/sql",
    "pg"
  ],
  "src/providers/nested": [
    "../../fetching/SafeFetcher.ts",
    "../../http/Limits.ts",
    "../../Serve.ts",
    "../../settings/Variables.ts"
  ],
  "src/books": ["../providers/Sse.ts", "../database/Database.ts", "../Settings.ts", "../cli.ts", "node:fs", "pg"],
  "src/database": ["../http/Limits.ts", "../providers/Sse.ts", "../cli.ts"],
  "src/database/nested": ["../../http/Limits.ts", "../../providers/Sse.ts", "../../Settings.ts"],
  "src/storage": ["../http/Limits.ts", "../providers/Sse.ts", "../fetching/SafeFetcher.ts", "../Settings.ts", "pg"],
  "src/fetching": ["../http/Limits.ts", "../database/Database.ts", "../storage/DiskStore.ts", "../Gateway.ts"],
  "src/stripe": ["../http/Limits.ts", "../database/Database.ts", "../Settings.ts", "@effect/sql"],
  "src/tracing": ["../http/Limits.ts", "../database/Database.ts", "../Settings.ts", "@effect/sql"],
  "src/http": [
    "../providers/Sse.ts",
    "../tracing/Otlp.ts",
    "../database/Database.ts",
    "../Gateway.ts",
    "../workers/Workers.ts",
    "@effect/sql",
    "pg"
  ],
  "src/http/chat/Schema.ts": [
    "../../services/Ids.ts",
    "../admission/Admission.ts",
    "./Handlers.ts",
    "../server/Server.ts",
    "@effect/sql-pg"
  ],
  "src/http/schema": ["../../services/Ids.ts", "../admission/Admission.ts", "../chat/Handlers.ts", "@effect/sql-pg"],
  "src/http/openapi": ["../../services/Ids.ts", "../admission/Admission.ts", "../chat/Handlers.ts"],
  "src/http/chat/Handlers.ts": [
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
  "src/cli": ["../http/Limits.ts", "../providers/Sse.ts", "../main.ts", "../cli.ts", "../Serve.ts"],
  "src/settings": ["../database/Database.ts", "../http/Limits.ts", "../Gateway.ts"],
  "src/workers": ["../database/Database.ts", "../providers/Sse.ts", "../Gateway.ts", "../main.ts"],
  "src/Gateway.ts": ["./main.ts", "./cli.ts", "./cli/Output.ts", "./Serve.ts"],
  "src/Launch.ts": ["./main.ts", "./cli.ts", "./cli/Output.ts"],
  "src/Serve.ts": ["./main.ts", "./cli.ts", "./cli/Output.ts"],
  "src/cli.ts": ["./main.ts"],
  "src/NoRing.ts": ["effect"],
  "src/noring": ["../domain/Money.ts"]
}

/** Of what the others may not import, what each may. */
const allowed: Readonly<Record<string, ReadonlyArray<string>>> = {
  "src/domain": ["./Money.ts", "effect"],
  "src/services": ["@effect/sql"],
  "src/services/nested": ["../Ids.ts"],
  "src/database": ["pg", "../node/PgConnect.ts"],
  "src/http/chat/Schema.ts": ["../schema/Errors.ts"],
  "src/http/schema": ["../errors/Wire.ts"],
  "src/http/chat/Handlers.ts": ["./Schema.ts", "../../services/Ids.ts"],
  "src/http/server": ["../chat/Handlers.ts"],
  "src/storage": ["../services/MediaStore.ts"],
  "src/fetching": ["../services/Fetcher.ts"],
  "src/cli": ["../Gateway.ts"],
  "src/Gateway.ts": ["./http/server/Server.ts"]
}

const fileOf = (place: string) => (place.endsWith(".ts") ? place : `${place}/Import.ts`)

const rowsOf = (table: Readonly<Record<string, ReadonlyArray<string>>>) =>
  Object.entries(table).flatMap(([place, specifiers]) =>
    specifiers.map((specifier) => [fileOf(place), specifier] as const)
  )

/** The ways in which a file imports another. */
const waysToImport = (specifier: string) => [
  `import { a } from "${specifier}"\n`,
  `import type { A } from "${specifier}"\n`,
  `import {\n  a,\n  type B\n} from "${specifier}"\n`,
  `export * as Exported from "${specifier}"\n`,
  `export type { A } from "${specifier}"\n`,
  `import "${specifier}"\n`,
  `const load = () => import("${specifier}")\n`
]

describe("the rings", () => {
  it("are kept by every file of src", () => {
    assert.isAbove(sources.size, 500)
    assert.deepStrictEqual(findRefusals(sources), [])
  })

  it("have all the folders of src, and none that are not there", () => {
    const files = [...sources.keys()].map((file) => file.slice("src/".length))
    for (const [name, ring] of Object.entries(rings)) {
      assert.isTrue(
        files.some((file) => ring.files.test(file)),
        name
      )
      assert.includeMembers(Object.keys(rings), [...ring.knows, ...(ring.knowsTypesOf ?? [])])
    }
    for (const { name } of readdirSync("src", { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
      assert.isTrue(
        Object.keys(forbidden).some((place) => place === `src/${name}` || place.startsWith(`src/${name}/`)),
        name
      )
    }
  })

  it("refuse all other imports, in nested folders too", () => {
    const tests = Object.keys(forbidden).map((place) => {
      const file = fileOf(place)
      return [file, `${"../".repeat(file.split("/").length - 1)}test/harness/temporary.ts`] as const
    })
    for (const [file, specifier] of [...rowsOf(forbidden), ...tests]) {
      const [refusal, ...more] = findRefusals(new Map([[file, `import * as a from "${specifier}"\n`]]))
      assert.lengthOf(more, 0)
      assert.isTrue(refusal?.startsWith(file), `${file} imports ${specifier}`)
    }
  })

  it("are refused in every form of an import, with the file, the import and the rule", () => {
    for (const text of waysToImport("../database/Database.ts")) {
      assert.deepStrictEqual(findRefusals(new Map([["src/tracing/A.ts", text]])), [
        "src/tracing/A.ts imports ../database/Database.ts: tracing may import shared, services, tracing, node:, effect, @effect/opentelemetry, undici"
      ])
    }
  })

  it("let imports go inwards", () => {
    for (const [file, specifier] of rowsOf(allowed)) {
      assert.deepStrictEqual(findRefusals(new Map([[file, `import * as a from "${specifier}"\n`]])), [])
    }
  })

  it("let the console import types of the server, and nothing else of it", () => {
    const refusalsOf = (text: string) => findRefusals(new Map([["src/console/views/A.tsx", text]]))
    const specifier = "../../http/admin/session/Schema.ts"
    assert.lengthOf(refusalsOf(`import type { A } from "${specifier}"\n`), 0)
    assert.lengthOf(refusalsOf(`import { type A } from "${specifier}"\n`), 1)
    assert.lengthOf(refusalsOf('import type { A } from "../../domain/Money.ts"\n'), 1)
  })
})

const places: Readonly<Record<string, string>> = {
  shared: "domain",
  counts: "services",
  exit: "ExitCode.ts",
  gateway: "Gateway.ts"
}

/** Where a ring is in `src`; that of HTTP has several parts. */
const placeOf = (ring: string): string => places[ring] ?? ring.replace(/ .*/, "")

describe("the table of the rings", () => {
  const rows = table(section(page("docs/architecture.md"), "Rings"), "Ring")

  it("has every folder of src", () => {
    const folders = readdirSync("src", { withFileTypes: true }).filter((entry) => entry.isDirectory())
    assert.includeMembers(
      rows.map(([ring]) => ring),
      folders.map(({ name }) => `src/${name}`)
    )
  })

  it.each(rows)("tells what is known to %s", (ring = "", _, knows = "") => {
    const place = ring.slice("src/".length)
    const known = Object.entries(rings).flatMap(([name, { knows, knowsTypesOf = [] }]) =>
      placeOf(name) === place ? [...knows, ...knowsTypesOf].map(placeOf) : []
    )
    const told = knows.replace(/:.*/, "").split(", ")
    const others = [...new Set(known)].filter((one) => one !== place)
    assert.sameMembers(told, others.length === 0 ? ["nothing"] : others)
  })
})

describe("the rooms of a ring", () => {
  it.each(ordered)("import each other in one direction: %s", (ring) => {
    assert.deepStrictEqual(findCircles(ring, sources), [])
  })

  it("are found in a circle through other rooms, by types too", () => {
    const planted = new Map([
      ["src/services/a/A.ts", 'import { b } from "../b/B.ts"\n'],
      ["src/services/b/B.ts", 'import { own } from "./Own.ts"\n'],
      ["src/services/b/deep/Deep.ts", 'import type { C } from "../../c/C.ts"\n'],
      ["src/services/c/C.ts", 'export type { A } from "../a/Other.ts"\n'],
      ["src/services/d/D.ts", 'import { a } from "../a/A.ts"\n']
    ])
    assert.deepStrictEqual(findCircles("services", planted), [
      "src/services/a/A.ts imports ../b/B.ts, src/services/b/deep/Deep.ts imports ../../c/C.ts, src/services/c/C.ts imports ../a/Other.ts"
    ])
    planted.delete("src/services/c/C.ts")
    assert.deepStrictEqual(findCircles("services", planted), [])
    assert.deepStrictEqual(findCircles("http", planted), [])
  })
})

const Lint = Schema.parseJson(
  Schema.Struct({ overrides: Schema.Array(Schema.Struct({ files: Schema.Array(Schema.String) })) })
)

const globOf = (pattern: string) =>
  new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll(/\*\*|\*/g, (stars) => (stars === "**" ? ".*" : "[^/]*"))}$`)

/** Patterns of the linter that match no file. */
const findStale = (lint: typeof Lint.Type, files: ReadonlyArray<string>): ReadonlyArray<string> =>
  lint.overrides
    .flatMap((override) => override.files)
    .filter((pattern) => !files.some((file) => globOf(pattern).test(file)))

describe("the patterns of the linter", () => {
  const files = [...sources.keys(), ...readSources("test").keys()]

  it("name only what is there", () => {
    assert.deepStrictEqual(findStale(Schema.decodeUnknownSync(Lint)(readFileSync(".oxlintrc.json", "utf8")), files), [])
  })

  it("are found where they name a file or folder that is not there", () => {
    const planted = { overrides: [{ files: ["src/**", "src/old/**"] }, { files: ["src/Serving.ts", "src/cli/*.ts"] }] }
    assert.deepStrictEqual(findStale(planted, files), ["src/old/**", "src/Serving.ts"])
  })
})
