import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Schema } from "effect"
import { page, root, section, table } from "./docs/Markdown.ts"
import { assert, describe, it } from "./harness/It.ts"
import { temporaryDirectory } from "./harness/temporary.ts"

/** The files of a small project: what each imports, and the rule that refuses the import. */
const files: ReadonlyArray<readonly [file: string, text: string, refusal?: string]> = [
  ["src/domain/Money.ts", 'import { Effect } from "effect"'],
  ["src/domain/OrganizationScope.ts", ""],
  ["src/domain/Node.ts", 'import "node:fs"', "domain: fs"],
  ["src/domain/Outwards.ts", 'import "../services/a/A.ts"', "domain: src/services/a/A.ts"],
  ["src/services/a/A.ts", 'import "node:fs"; import "../../domain/Money.ts"; import "@effect/sql/SqlClient"'],
  ["src/services/a/Package.ts", 'import "pg"', "services: node_modules/pg"],
  ["src/services/a/Unknown.ts", 'import "no-such-package"', "services: no-such-package"],
  ["src/services/a/Test.ts", 'import "../../../test/Fake.ts"', "services: test/Fake.ts"],
  ["test/Fake.ts", ""],
  ["src/database/Pool.ts", 'import "pg"'],
  ["src/tracing/Import.ts", 'import { a } from "../database/Pool.ts"', "tracing: src/database/Pool.ts"],
  ["src/tracing/Mixed.ts", 'import { type A, b } from "../database/Pool.ts"', "tracing: src/database/Pool.ts"],
  ["src/tracing/Type.ts", 'import type { A } from "../database/Pool.ts"', "tracing: src/database/Pool.ts"],
  ["src/tracing/Star.ts", 'export * as A from "../database/Pool.ts"', "tracing: src/database/Pool.ts"],
  ["src/tracing/Export.ts", 'export type { A } from "../database/Pool.ts"', "tracing: src/database/Pool.ts"],
  ["src/tracing/Lazy.ts", 'const a = () => import("../database/Pool.ts")', "tracing: src/database/Pool.ts"],
  ["src/tracing/TypeOf.ts", 'type A = typeof import("../database/Pool.ts")', "tracing: src/database/Pool.ts"],
  ["src/http/HttpAnswer.ts", 'import type { A } from "../domain/OrganizationScope.ts"'],
  ["src/http/Outwards.ts", 'import "./server/Server.ts"', "http: src/http/server/Server.ts"],
  ["src/http/Scope.ts", 'import "../domain/OrganizationScope.ts"', "scope-of-caller: src/domain/OrganizationScope.ts"],
  ["src/http/server/Server.ts", 'import "../chat/Handlers.ts"; import "../chat/parts/Part.ts"'],
  ["src/http/chat/Handlers.ts", 'import "../../services/a/A.ts"; import "./Schema.ts"'],
  ["src/http/chat/Schema.ts", 'import "../../services/a/A.ts"', "http schemas: src/services/a/A.ts"],
  ["src/http/chat/parts/Part.ts", ""],
  ["src/http/images/Inside.ts", 'import "../chat/parts/Part.ts"', "inside-of-room: src/http/chat/parts/Part.ts"],
  ["src/console/Type.tsx", 'import type { A } from "../http/HttpAnswer.ts"; export const a = <p>import</p>'],
  ["src/console/Value.tsx", 'import { a } from "../http/HttpAnswer.ts"', "console: only types: src/http/HttpAnswer.ts"],
  ["src/console/Domain.tsx", 'import type { A } from "../domain/Money.ts"', "console: src/domain/Money.ts"],
  ["src/NoRing.ts", 'import "effect"', "no-ring: node_modules/effect"],
  ["src/other/NoRing.ts", 'import "../domain/Money.ts"', "no-ring: src/domain/Money.ts"],
  ["src/services/b/B.ts", 'import "../a/A.ts"'],
  ["src/services/b/inside/Inside.ts", 'import type { C } from "../../c/C.ts"'],
  ["src/services/c/C.ts", 'export type { D } from "../d/D.ts"'],
  ["src/services/d/D.ts", 'import "../b/B.ts"']
]

/** The rooms b, c and d of services, which import each other through other files, partly by types. */
const cycle = [
  "src/services/b: cycle-of-rooms: src/services/c",
  "src/services/c: cycle-of-rooms: src/services/d",
  "src/services/d: cycle-of-rooms: src/services/b"
]

const Report = Schema.parseJson(
  Schema.Struct({
    summary: Schema.Struct({
      violations: Schema.Array(
        Schema.Struct({ from: Schema.String, to: Schema.String, rule: Schema.Struct({ name: Schema.String }) })
      )
    })
  })
)

/** Runs the rules over a directory. Returns the importing file, the rule and the import of each refusal. */
const refusalsIn = (cwd: string) => {
  const program = path.join(root, "node_modules/dependency-cruiser/bin/dependency-cruise.mjs")
  const rules = path.join(root, ".dependency-cruiser.mjs")
  const args = [program, "src", "--config", rules, "--output-type", "json"]
  const { stderr, stdout } = spawnSync(process.execPath, args, { cwd, encoding: "utf8" })
  assert.strictEqual(stderr, "")
  return Schema.decodeSync(Report)(stdout).summary.violations.map(
    ({ from, rule, to }) => `${from}: ${rule.name}: ${to.replace(/^.*(node_modules\/[^/]+).*/, "$1")}`
  )
}

describe("the rules for imports", () => {
  it.scoped("refuse what they do not allow, in every form of an import", function* () {
    const directory = yield* temporaryDirectory
    symlinkSync(path.join(root, "node_modules"), path.join(directory, "node_modules"))
    for (const [file, text] of files) {
      mkdirSync(path.join(directory, path.dirname(file)), { recursive: true })
      writeFileSync(path.join(directory, file), text)
    }
    const expected = files.flatMap(([file, , refusal]) => (refusal === undefined ? [] : [`${file}: ${refusal}`]))
    assert.sameMembers(refusalsIn(directory), [...expected, ...cycle])
  })

  it("are explained by pages that name files which exist", () => {
    const named = ["docs/architecture.md", "CONTRIBUTING.md"].flatMap((file) =>
      Array.from(page(file).text.matchAll(/`([\w-]+\/[\w./-]+\.(?:ts|tsx|mjs|sql))`/g), ([, name]) => `${name}`)
    )
    const isFound = (name: string) =>
      ["", "src", "src/services", "src/http", "test/harness"].some((folder) =>
        existsSync(path.join(root, folder, name))
      )
    assert.isNotEmpty(named)
    assert.deepStrictEqual(
      named.filter((name) => !isFound(name)),
      []
    )
  })

  it("lead along the path of a chat as docs/architecture.md lists it, in at most 35 files", () => {
    const rows = table(section(page("docs/architecture.md"), "The path of a chat request"), "File")
    const listed = rows.map(([file = "", does = ""]) => ({ file, isPort: does.startsWith("port: ") }))
    assert.isAtMost(listed.length, 35)
    const importsOf = (file: string) => {
      const text = readFileSync(path.join(root, "src", file), "utf8")
      return Array.from(text.matchAll(/ from "(\.[^"]+)"/g), ([, name = ""]) => path.join(path.dirname(file), name))
    }
    for (const [index, { file, isPort }] of listed.entries()) {
      if (index === 0) continue
      const above = listed.slice(0, index).map((one) => one.file)
      const links = isPort ? importsOf(file) : above.flatMap(importsOf)
      assert.isTrue(isPort ? links.some((name) => above.includes(name)) : links.includes(file), file)
    }
  })

  it("have a row in docs/architecture.md for every folder of src", () => {
    const folders = readdirSync("src", { withFileTypes: true }).filter((entry) => entry.isDirectory())
    const rows = table(section(page("docs/architecture.md"), "Rings"), "Ring")
    assert.includeMembers(
      rows.map(([ring]) => ring),
      folders.map(({ name }) => `src/${name}`)
    )
  })
})
