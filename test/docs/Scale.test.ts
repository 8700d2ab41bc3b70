import { spawnSync } from "node:child_process"
import path from "node:path"
import { assert, describe, it } from "../harness/It.ts"
import costs from "../scale/costs.json" with { type: "json" }
import { hotStatements } from "../scale/HotStatements.ts"
import { codeSpans, page, root, section, table } from "./Markdown.ts"

const calculated = (...args: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [path.join(root, "test/scale/scale.mjs"), ...args], { encoding: "utf8" })

const scale = page("docs/scale.md")

const optionsOf = (heading: string) =>
  table(section(scale, heading), "Option").map(([names = "", defaults = ""]) => ({
    names: codeSpans({ file: "", text: names.replace(/^--.*/, "`$&`") }),
    defaults: defaults.split(", ")
  }))

describe("docs/scale.md", () => {
  it("shows what the calculator prints", () => {
    const { stdout } = calculated()
    assert.include(stdout, "| 10,000 a second |")
    assert.include(scale.text, `\n${stdout}\n`)
  })

  it("tells the options of the calculator, and their defaults", () => {
    const told = [...optionsOf("Calculate it"), ...optionsOf("With your own figures")].flatMap(({ defaults, names }) =>
      names.map((name, at) => [name, defaults[at] ?? ""] as const)
    )
    assert.includeMembers(
      told.map(([name]) => name),
      Object.keys(costs).map((name) => `--${name}`)
    )
    const load = ["--requests", "10000", "--streams", "100000"]
    const usual = told.filter(([name]) => !load.includes(name) && name !== "--month").flat()
    assert.strictEqual(calculated(...usual, ...load).stdout, calculated(...load).stdout)
  })

  it("lists the statements that are tested", () => {
    assert.deepStrictEqual(
      table(section(scale, "Statements and organizations"), "Statement"),
      hotStatements.map(({ extent, name, needs, why }) => [name, extent, why, needs])
    )
  })
})
