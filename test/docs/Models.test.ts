import { spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Effect } from "effect"
import { parse } from "yaml"
import { assert, describe, it } from "../harness/It.ts"
import { prefix } from "../harness/temporary.ts"
import { codeSpans, page, root } from "./Markdown.ts"

const made = (cwd: string, ...args: ReadonlyArray<string>) => {
  const { status, stderr } = spawnSync(process.execPath, ["models.mjs", ...args], { cwd, encoding: "utf8" })
  return { status, stderr }
}

const copy = Effect.acquireRelease(
  Effect.sync(() => {
    const directory = mkdtempSync(prefix)
    for (const file of ["models.mjs", "catalog.yaml", "README.md"]) {
      cpSync(path.join(root, file), path.join(directory, file))
    }
    symlinkSync(path.join(root, "node_modules"), path.join(directory, "node_modules"))
    return directory
  }),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
)

describe("the models of README.md", () => {
  it("are those of the catalog, with their vendors: npm run docs writes them", () => {
    assert.deepStrictEqual(made(root, "--check"), { status: 0, stderr: "" })
  })

  it("name every id", () => {
    const named = new Set(codeSpans(page("README.md")))
    const { models } = parse(readFileSync(path.join(root, "catalog.yaml"), "utf8"))
    assert.lengthOf(models, 45)
    for (const { id } of models) assert.isTrue(named.has(id), id)
  })

  it.scoped("are stale once the catalog changed, until they are written anew", function* () {
    const directory = yield* copy
    const catalog = path.join(directory, "catalog.yaml")
    const text = readFileSync(catalog, "utf8")
    writeFileSync(catalog, text.replace("- id: grok-4.3", "- id: grok-4.4"))
    const { status, stderr } = made(directory, "--check")
    assert.strictEqual(status, 1)
    assert.include(stderr, "npm run docs")
    assert.deepStrictEqual(made(directory), { status: 0, stderr: "" })
    assert.deepStrictEqual(made(directory, "--check"), { status: 0, stderr: "" })
    assert.include(readFileSync(path.join(directory, "README.md"), "utf8"), "(xai, openrouter): `grok-4.5` `grok-4.4`")
  })
})
