import { link, parseHash, searchOf, withQuery } from "../../src/console/Route.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("the address of a view", () => {
  it("has a path and filters, and parses to the same values", () => {
    const path = ["organizations", "ACME & Söhne/1?"]
    const query = { status: "5xx", search: "a b&c=d#e%" }
    assert.deepStrictEqual(parseHash(link(path, query)), { path, query })
  })

  it("is the first view if it is empty or only a slash", () => {
    for (const hash of ["", "#", "#/"]) assert.deepStrictEqual(parseHash(hash), { path: [], query: {} })
    assert.strictEqual(link([""]), "#/")
  })

  it("accepts an invalid escape", () => {
    assert.deepStrictEqual(parseHash("#/videos/%zz"), { path: ["videos", "%zz"], query: {} })
  })

  it("omits empty filters", () => {
    assert.strictEqual(searchOf({ a: undefined, b: null, c: "" }), "")
    assert.strictEqual(searchOf({ limit: 0, force: false, a: "" }), "?limit=0&force=false")
  })

  it("changes and removes single filters", () => {
    const route = parseHash("#/requests?status=5xx&model=m1")
    assert.strictEqual(withQuery(route, { status: "", search: "x" }), "#/requests?model=m1&search=x")
  })
})
