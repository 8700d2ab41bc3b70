import type { Bug } from "./Bug.ts"

const credits = ["test/services/webhooks/CreditEvents.test.ts"]
const statements = ["test/services/statements/StatementNotices.test.ts"]
const endpoints = ["test/services/webhooks/EndpointTests.test.ts"]
const notices = "src/services/statements/StatementNotices.ts"

/** Bugs that would lose an event, tell of it twice, or tell too much or too early. */
export const eventBugs: ReadonlyArray<Bug> = [
  {
    name: "an event is lost: what a refund takes",
    file: "migrations/0044_credit_events.sql",
    find: "NEW.kind IN ('top_up', 'payment_reversal')",
    replace: "NEW.kind IN ('top_up')",
    caughtBy: credits
  },
  {
    name: "an event is told twice: credits under another id at each endpoint",
    file: "migrations/0046_sealed_numbers.sql",
    find: "SELECT event, NEW.org_id,",
    replace: "SELECT 'evt_' || replace(gen_random_uuid()::text, '-', ''), NEW.org_id,",
    caughtBy: credits
  },
  {
    name: "an event goes to endpoints that are off",
    file: "migrations/0046_sealed_numbers.sql",
    find: "WHERE endpoint.org_id = NEW.org_id AND endpoint.disabled_at IS NULL",
    replace: "WHERE endpoint.org_id = NEW.org_id",
    caughtBy: credits
  },
  {
    name: "an event is lost: a month is taken before its events are written",
    file: notices,
    find: "    yield* write(sql, ended.month, notices.flat())",
    replace: "    yield* write(sql, ended.month, [])\n    yield* write(sql, ended.month, notices.flat())",
    caughtBy: statements
  },
  {
    name: "an event is told twice: a month for each endpoint",
    file: notices,
    find: "SELECT DISTINCT org_id",
    replace: "SELECT org_id",
    caughtBy: statements
  },
  {
    name: "an event is told twice: a month by each gateway",
    file: notices,
    find: " AND EXISTS (SELECT FROM taken)`",
    replace: "`",
    caughtBy: statements
  },
  {
    name: "an event comes too early: a month that has not ended",
    file: notices,
    find: "(month + interval '1 month') AT TIME ZONE 'UTC'",
    replace: "month::timestamp AT TIME ZONE 'UTC'",
    caughtBy: statements
  },
  {
    name: "an endpoint of another organization is tested",
    file: "src/services/webhooks/EndpointTests.ts",
    find: "sql.and([sql`id = ${toStorable(id)}`, ...inScope(sql, scope)])",
    replace: "sql.and([sql`id = ${toStorable(id)}`])",
    caughtBy: endpoints
  },
  {
    name: "a member reads what the server of an endpoint answers",
    file: "src/http/admin/webhooks/Schema.ts",
    find: '"url", "delivered", "status", "duration_ms", "failure")',
    replace: '"url", "delivered", "status", "duration_ms", "failure", "answer")',
    caughtBy: ["test/http/admin/Webhooks.test.ts"]
  }
]
