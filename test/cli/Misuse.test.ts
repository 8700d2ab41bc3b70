import { Effect } from "effect"
import { vi } from "vitest"
import { run } from "../../src/cli.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("gateway", () => {
  const misuses: ReadonlyArray<readonly [args: ReadonlyArray<string>, names: string]> = [
    [["nope"], "gateway nope"],
    [["--foo"], "--foo"],
    [["orgs", "nope"], "gateway orgs nope"],
    [["orgs"], "gateway orgs --help"],
    [["orgs", "create"], "<NAME>"],
    [["orgs", "create", "a", "b"], "'b'"],
    [["orgs", "list", "--bogus"], "'--bogus'"],
    [["orgs", "list", "--JSON"], "'--JSON'"],
    [["orgs", "update", "a", "--fit-holds", "yes"], "--fit-holds"],
    [["orgs", "update", "a", "--fit-holds"], "--fit-holds"],
    [["orgs", "update", "a", "--fit-holds", "on", "--cap"], "--cap needs a value, USD: the most USD"],
    [["requests", "--limit"], "--limit needs a value, N: how many rows"],
    [["orgs", "update", "a", "--cap-period", "year"], "--cap-period"],
    [["keys", "list", "--org"], "--org"],
    [["credits", "add", "a", "5", "--ref"], "--ref"],
    [["orgs", "create", "a", "--credits", "-5"], "--credits"],
    [["keys", "create"], "--org"],
    [["keys", "create", "--org", "a", "--scopes", "chat,audio"], "--scopes"],
    [["keys", "create", "--org", "a", "--rpm", "0"], "--rpm"],
    [["keys", "create", "--org", "a", "--rpm", "2147483648"], "--rpm"],
    [["keys", "create", "--org", "a", "--cap-period", "year"], "--cap-period"],
    [["keys", "create", "--org", "a", "--expires", "2026-02-30"], "--expires"],
    [["credits", "adjust", "a", "5"], "--note"],
    [["credits", "adjust", "a", "0", "--note", "x"], "USD"],
    [["credits", "add", "a", "5", "--ref", " "], "--ref"],
    [["credits", "add", "a", "5", "--ref", "x".repeat(801)], "--ref"],
    [["credits", "adjust", "a", "5", "--note", "x".repeat(1001)], "--note"],
    [["requests", "--limit", "0"], "--limit"],
    [["requests", "--address", "203.0.113"], "--address"],
    [["requests", "--status", "20"], "--status"],
    [["videos", "list", "--status", "done"], "--status"],
    [["usage", "--by", "org,org"], "--by"]
  ]
  for (const [args, names] of misuses) {
    it.live(`${args.join(" ").slice(0, 60)} is refused in one line that names what is wrong`, function* () {
      const written = vi.spyOn(process.stderr, "write").mockReturnValue(true)
      const code = yield* run(["node", "gateway", ...args], { serve: () => Effect.dieMessage("must not serve") })
      const lines = written.mock.calls.map(([text]) => String(text))
      written.mockRestore()
      assert.strictEqual(code, 1)
      assert.lengthOf(lines, 1)
      assert.match(lines[0] ?? "", /^gateway: .+\n$/)
      assert.include(lines[0], names)
    })
  }
})
