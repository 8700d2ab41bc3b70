import { assert, describe, it } from "../harness/It.ts"
import { runAlone } from "./Helps.ts"

describe("gateway", () => {
  const misuses: ReadonlyArray<readonly [args: ReadonlyArray<string>, names: string]> = [
    [["nope"], 'Unknown command "nope". See gateway --help.'],
    [["key", "create"], 'Unknown command "key". Did you mean "keys"?'],
    [["kyes"], 'Did you mean "keys"?'],
    [["--foo"], 'Unknown option "--foo". See gateway --help.'],
    [["--versoin"], 'Did you mean "--version"?'],
    [["help", "keyss"], 'Did you mean "keys"?'],
    [["nope", "--help"], 'Unknown command "nope".'],
    [["orgs", "nope"], 'Unknown command "orgs nope". See gateway orgs --help.'],
    [["keys", "creat", "--org", "a"], 'Unknown command "keys creat". Did you mean "keys create"?'],
    [["requests", "shwo", "x"], 'Did you mean "requests show"?'],
    [["orgs", "create"], "NAME is required: a unique name. See gateway orgs create --help."],
    [["orgs", "rename", "a"], "NAME is required"],
    [["orgs", "create", "a", "b"], 'Unexpected argument "b".'],
    [["orgs", "list", "--bogus"], 'Unknown option "--bogus". See gateway orgs list --help.'],
    [["orgs", "list", "--jsn"], 'Unknown option "--jsn". Did you mean "--json"?'],
    [["orgs", "list", "--JSON"], 'Did you mean "--json"?'],
    [["keys", "list", "-x"], 'Unknown option "-x".'],
    [["keys", "list", "--org", "a", "--org", "b"], "--org is used more than once."],
    [["requests", "--key", "--csv"], "--key needs a value, KEY: a key's id; default: all."],
    [["orgs", "update", "a", "--fit-holds", "yes"], "--fit-holds"],
    [["orgs", "update", "a", "--fit-holds"], "--fit-holds"],
    [["orgs", "update", "a", "--fit-holds", "on", "--cap"], "--cap needs a value, USD: the maximum USD"],
    [["requests", "--limit"], "--limit needs a value, N: maximum number of rows"],
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
      const { code, stderr, stdout } = yield* runAlone(...args)
      assert.strictEqual(code, 2)
      assert.match(stderr, /^gateway: .+\n$/)
      assert.include(stderr, names)
      assert.strictEqual(stdout, "")
    })
  }

  const incomplete: ReadonlyArray<readonly [args: ReadonlyArray<string>, message: string]> = [
    [["nope", "--json"], 'Unknown command "nope". See gateway --help.'],
    [["--json"], "gateway needs a command. See gateway --help."],
    [["keys", "--json"], "gateway keys needs a subcommand. See gateway keys --help."],
    [["--json", "orgs", "create"], "NAME is required: a unique name. See gateway orgs create --help."],
    [["orgs", "--json", "create"], "NAME is required: a unique name. See gateway orgs create --help."]
  ]
  for (const [args, message] of incomplete) {
    it.live(`${args.join(" ")} is refused with one JSON document`, function* () {
      const { code, stderr, stdout } = yield* runAlone(...args)
      assert.deepStrictEqual([code, stdout], [2, ""])
      assert.deepStrictEqual(JSON.parse(stderr), { error: { message, type: "usage_error" } })
    })
  }

  it.live("a negative amount is not taken for an option", function* () {
    const { code, stderr } = yield* runAlone("credits", "adjust", "acme", "-5")
    assert.strictEqual(code, 2)
    assert.include(stderr, "--note TEXT is required")
  })
})
