import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { assert, describe, it } from "./harness/It.ts"

const files = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((file) => /\.(tsx?|css)$/.test(file) && !file.endsWith(".d.ts"))
  .map((file) => {
    const name = path.join("src", file)
    const text = readFileSync(name, "utf8")
    const imports = Array.from(text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g), ([, target = ""]) =>
      path.join(path.dirname(name), target)
    )
    return { name, imports, lines: text.split("\n").length - 1 }
  })

const importersOf = (name: string) => files.filter(({ imports }) => imports.includes(name)).map((file) => file.name)

/** Names that a tool or a convention asks for. */
const isConventional = (name: string) => /^(index\.ts|main\.tsx?|main\.css)$/.test(path.basename(name))

describe("the files of src", () => {
  it("are modules: a file of at most 60 lines does not serve one file beside it", () => {
    const parts = files.flatMap(({ lines, name }) => {
      const [importer, ...others] = importersOf(name)
      if (lines > 60 || importer === undefined || others.length > 0 || isConventional(name)) return []
      return path.dirname(importer) === path.dirname(name) ? [`${name} belongs in ${importer}`] : []
    })
    assert.deepStrictEqual(parts, [])
  })

  it("have names that no other file has", () => {
    const names = files.filter(({ name }) => !isConventional(name)).map(({ name }) => path.basename(name))
    const repeated = names.filter((name, index) => names.indexOf(name) !== index)
    assert.deepStrictEqual(repeated, [])
  })
})
