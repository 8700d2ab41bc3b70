import { Effect } from "effect"
import { vi } from "vitest"
import { run } from "../../src/cli.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("gateway", () => {
  const misuses: ReadonlyArray<readonly [args: ReadonlyArray<string>, says: string]> = [
    [["nope"], "There is no command gateway nope; see gateway --help."],
    [["--foo"], "There is no option --foo; see gateway --help."],
    [["orgs", "nope"], "There is no command gateway orgs nope; see gateway --help."],
    [["orgs"], "gateway orgs needs one of its commands; see gateway orgs --help."],
    [["orgs", "create"], "Missing argument <NAME>"],
    [["orgs", "create", "a", "b"], "Received unknown argument: 'b'"],
    [["orgs", "list", "--bogus"], "Received unknown argument: '--bogus'"],
    [["orgs", "list", "--JSON"], "Received unknown argument: '--JSON'"],
    [["orgs", "update", "a", "--fit-holds", "yes"], "--fit-holds must be one of on, off."],
    [["orgs", "update", "a", "--fit-holds"], "--fit-holds must be one of on, off."],
    [
      ["orgs", "update", "a", "--fit-holds", "on", "--cap"],
      "--cap must be an amount in USD, 0 or more, such as 12.50,"
    ],
    [["orgs", "update", "a", "--cap-period", "year"], "--cap-period must be one of day, week, month, total."],
    [["keys", "list", "--org"], "--org needs a value."],
    [["credits", "add", "a", "5", "--ref"], "--ref must be a text that is not blank, of at most 800 characters."],
    [["orgs", "create", "a", "--credits", "-5"], "--credits must be an amount in USD, 0 or more,"],
    [["keys", "create"], "Expected to find option: '--org'"],
    [["keys", "create", "--org", "a", "--scopes", "chat,audio"], "--scopes must be"],
    [["keys", "create", "--org", "a", "--rpm", "0"], "--rpm must be an integer from 1 to 2147483647, or default."],
    [
      ["keys", "create", "--org", "a", "--rpm", "2147483648"],
      "--rpm must be an integer from 1 to 2147483647, or default."
    ],
    [["keys", "create", "--org", "a", "--cap-period", "year"], "--cap-period must be one of day, week, month, total."],
    [["keys", "create", "--org", "a", "--expires", "2026-02-30"], "--expires must be"],
    [["credits", "adjust", "a", "5"], "Expected to find option: '--note'"],
    [["credits", "adjust", "a", "0", "--note", "x"], "USD must be an amount in USD, not 0,"],
    [["credits", "add", "a", "5", "--ref", " "], "--ref must be a text that is not blank, of at most 800 characters."],
    [["credits", "add", "a", "5", "--ref", "x".repeat(801)], "--ref must be a text that is not blank, of at most 800"],
    [
      ["credits", "adjust", "a", "5", "--note", "x".repeat(1001)],
      "--note must be a text that is not blank, of at most 1000"
    ],
    [["requests", "--limit", "0"], "--limit must be an integer from 1 to 2147483647."],
    [
      ["requests", "--address", "203.0.113"],
      "--address must be an address or a range such as 203.0.113.0/24 or 2001:db8::/32."
    ],
    [["requests", "--status", "20"], "--status must be an HTTP status, 4xx, 5xx or ok."],
    [["videos", "list", "--status", "done"], "--status must be one of queued, in_progress, completed, failed."],
    [["usage", "--by", "org,org"], "--by must be one or two of model, key, day, hour, provider, org,"]
  ]
  for (const [args, says] of misuses) {
    it.live(`${args.join(" ").slice(0, 60)} is refused in one line`, function* () {
      const written = vi.spyOn(process.stderr, "write").mockReturnValue(true)
      const code = yield* run(["node", "gateway", ...args], { serve: () => Effect.dieMessage("must not serve") })
      const lines = written.mock.calls.map(([text]) => String(text))
      written.mockRestore()
      assert.strictEqual(code, 1)
      assert.lengthOf(lines, 1)
      assert.match(lines[0] ?? "", /^gateway: .+\n$/)
      assert.include(lines[0], says)
    })
  }
})
