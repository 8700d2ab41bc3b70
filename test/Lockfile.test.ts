import { readFileSync } from "node:fs"
import { Schema } from "effect"
import { assert, describe, it } from "./harness/It.ts"

const Names = Schema.Record({ key: Schema.String, value: Schema.String })
const Entry = Schema.Struct({
  optionalDependencies: Schema.optional(Names),
  engines: Schema.optional(Schema.Struct({ node: Schema.optional(Schema.String) })),
  hasInstallScript: Schema.optional(Schema.Boolean)
})
const Package = Schema.parseJson(
  Schema.Struct({
    engines: Schema.Struct({ node: Schema.String }),
    allowScripts: Schema.Record({ key: Schema.String, value: Schema.Boolean })
  })
)
const Lock = Schema.parseJson(Schema.Struct({ packages: Schema.Record({ key: Schema.String, value: Entry }) }))

/** Compares `20.19` with `>=18`, `^20.19.0` or `>= 20.1`: whether a range, one of those between `||`, takes the version. */
const admits = (range: string, version: readonly [major: number, minor: number]) => {
  const [, operator, major = "0", minor = "0"] = /^\s*(\D*?)\s*v?(\d+)(?:\.(\d+))?/.exec(range) ?? []
  const [lowest, minorOfLowest] = [Number(major), Number(minor)]
  if (lowest === version[0]) return minorOfLowest <= version[1]
  return operator === ">=" && lowest < version[0]
}

describe("package-lock.json", () => {
  const { allowScripts, engines } = Schema.decodeSync(Package)(readFileSync("package.json", "utf8"))
  const { packages } = Schema.decodeSync(Lock)(readFileSync("package-lock.json", "utf8"))
  const optional = Object.entries(packages).flatMap(([at, entry]) =>
    Object.keys(entry.optionalDependencies ?? {}).map((name) => ({ at, name }))
  )

  it("names the packages of every platform: `npm ci` refuses a lock that knows only its author's", () => {
    assert.isNotEmpty(optional)
    const missing = optional.filter(
      ({ at, name }) =>
        packages[`${at}/node_modules/${name}`] === undefined && packages[`node_modules/${name}`] === undefined
    )
    assert.deepStrictEqual(missing, [])
  })

  it("has no package that refuses the oldest Node of package.json: npm would warn", () => {
    const [, major, minor] = /^>=(\d+)\.(\d+)$/.exec(engines.node) ?? assert.fail(engines.node)
    const ranges = Object.entries(packages).flatMap(([at, entry]) =>
      entry.engines?.node === undefined || entry.engines.node === "*" ? [] : [{ at, range: entry.engines.node }]
    )
    assert.isAbove(ranges.length, 100)
    const refusing = ranges.filter(
      ({ range }) => !range.split("||").some((part) => admits(part, [Number(major), Number(minor)]))
    )
    assert.deepStrictEqual(refusing, [])
  })

  it("has no install script that package.json neither allows nor denies: npm would warn", () => {
    const scripted = Object.entries(packages).flatMap(([at, { hasInstallScript }]) =>
      hasInstallScript === true ? [at.slice(at.lastIndexOf("node_modules/") + "node_modules/".length)] : []
    )
    assert.deepStrictEqual(Object.keys(allowScripts), [...new Set(scripted)].toSorted())
  })
})
