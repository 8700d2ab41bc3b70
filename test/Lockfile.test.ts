import { readFileSync } from "node:fs"
import { Schema } from "effect"
import { assert, describe, it } from "./harness/It.ts"

const Names = Schema.Record({ key: Schema.String, value: Schema.String })
const Entry = Schema.Struct({ optionalDependencies: Schema.optional(Names), optional: Schema.optional(Schema.Boolean) })
const Lock = Schema.parseJson(Schema.Struct({ packages: Schema.Record({ key: Schema.String, value: Entry }) }))

describe("package-lock.json", () => {
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
})
