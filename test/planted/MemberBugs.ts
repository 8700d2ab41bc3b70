import type { Bug } from "./Bug.ts"

const members = "test/http/admin/Members.test.ts"

/** Bugs that would show a member another organization's data, or what the operators keep to themselves. */
export const memberBugs: ReadonlyArray<Bug> = [
  {
    name: "a key of another organization is found by its id",
    file: "src/services/access/ApiKeys.ts",
    find: "sql.and([sql`id = ${id}`, ...inScope(sql, scope)])",
    replace: "sql.and([sql`id = ${id}`])",
    caughtBy: [members]
  },
  {
    name: "a page of the log begins after another organization's request",
    file: "src/services/telemetry/RequestListing.ts",
    find: "sql.and([sql`id = ${after}`, ...inScope(sql, scope)])",
    replace: "sql.and([sql`id = ${after}`])",
    caughtBy: [members]
  },
  {
    name: "refusals of other organizations are counted",
    file: "src/services/telemetry/RequestFailures.ts",
    find: "equals(sql, { org_id: scope.narrow(org) })",
    replace: "equals(sql, { org_id: org })",
    caughtBy: [members]
  },
  {
    name: "a member sees what a request costs",
    file: "src/http/admin/requests/Schema.ts",
    find: '  "usage",\n  "charge_usd",',
    replace: '  "usage",\n  "cost_usd",\n  "charge_usd",',
    caughtBy: [members]
  },
  {
    name: "a member gets the answers of operators",
    file: "src/http/admin/Members.ts",
    find: "return HttpServerResponse.setBody(response, HttpBody.unsafeJson(seen))",
    replace: "return seen === null ? HttpServerResponse.setBody(response, HttpBody.unsafeJson(seen)) : response",
    caughtBy: [members]
  },
  {
    name: "a key of another organization is told from one that nobody has",
    file: "src/services/access/ApiKeys.ts",
    find: "return found ?? (yield* new KeyNotFound({ id }))",
    replace:
      "const [other] = yield* records(sql`SELECT ${columns} FROM api_keys WHERE id = ${toStorable(id)}`)\n        return found ?? (yield* new KeyNotFound({ id: other === undefined ? id : `${id} here` }))",
    caughtBy: [members]
  },
  {
    name: "a new endpoint is open to members",
    file: "src/http/admin/MemberEndpoints.ts",
    find: "if (access === undefined) return yield* new UnknownEndpoint()",
    replace: "if (access === undefined) return",
    caughtBy: [members]
  }
]
