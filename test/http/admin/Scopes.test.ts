import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { assert, describe, it } from "../../harness/It.ts"

describe("the scope of a request", () => {
  it("comes from its caller: no module of HTTP makes one for all organizations or for another", () => {
    const files = readdirSync("src/http", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))
    assert.isAbove(files.length, 90)
    const makers = files.filter((file) =>
      /OrganizationScope\.(?:all|only)\b/.test(readFileSync(path.join("src/http", file), "utf8"))
    )
    assert.deepStrictEqual(makers, [])
  })
})
