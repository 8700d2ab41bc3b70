import { plainServeOf } from "../src/PlainServe.ts"
import { assert, it } from "./harness/It.ts"

it("reads a command line that only serves, and leaves all others to the commands", () => {
  assert.deepStrictEqual(plainServeOf(["serve"]), { workers: undefined })
  for (const args of [
    ["serve", "--workers", "2"],
    ["serve", "--workers=2"]
  ]) {
    assert.deepStrictEqual(plainServeOf(args), { workers: "2" })
  }
  for (const line of ["", "serve --help", "serve --workers", "serve --workers --json", "serve --workers 2 --json"]) {
    assert.isUndefined(plainServeOf(line.split(" ")), line)
  }
  for (const args of [
    ["serve", ""],
    ["serve", "--workers", ""],
    ["orgs", "list"]
  ]) {
    assert.isUndefined(plainServeOf(args), args.join(" "))
  }
})
