import { readSources } from "../../harness/Imports.ts"
import { assert, describe, it } from "../../harness/It.ts"

describe("the scope of a request", () => {
  it("comes from who makes it: nothing of HTTP takes all or another", () => {
    const makers = [...readSources("src/http")].flatMap(([path, text]) =>
      /OrganizationScope\.(?:all|only)\b/.test(text) ? [path] : []
    )
    assert.deepStrictEqual(makers, [])
  })
})
