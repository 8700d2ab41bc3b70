import { assert, withLayer } from "../harness/It.ts"
import { failure, json, list } from "./Cli.ts"
import { suite } from "./Operator.ts"

withLayer(suite)("members by commands", (it) => {
  it.scoped("are made with --org, listed with their organization, and never owners", function* () {
    const { id: org } = yield* json("orgs", "create", "of-members")
    const made = yield* json("operators", "create", "mia", "--org", "of-members", "--role", "write")
    assert.deepInclude(made, { name: "mia", role: "write", org, org_name: "of-members" })
    assert.match(String(made["token"]), /^ggo_/)
    yield* json("operators", "create", "olga", "--role", "write")
    const listed = yield* list("operators", "list")
    assert.deepStrictEqual(
      listed.map(({ name, org }) => [name, org]),
      [
        ["mia", org],
        ["olga", null]
      ]
    )
    const changed = yield* json("operators", "update", "mia", "--role", "read")
    assert.deepInclude(changed, { id: made["id"], name: "mia", role: "read", org })
    const raised = yield* failure(["operators", "update", "mia", "--role", "owner"])
    assert.include(raised, "A member of an organization has the role read or write")
    const owner = yield* failure(["operators", "create", "otto", "--org", "of-members", "--role", "owner"])
    assert.include(owner, "A member of an organization has the role read or write")
    const unknown = yield* failure(["operators", "create", "otto", "--org", "nowhere", "--role", "read"])
    assert.include(unknown, "There is no organization nowhere.")
  })
})
