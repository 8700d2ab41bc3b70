import { HttpApiBuilder } from "@effect/platform"
import { Effect, identity, Stream, Struct } from "effect"
import { csvLine } from "../../../domain/Csv.ts"
import type { Month } from "../../../domain/Month.ts"
import { CurrentActor } from "../../../services/admin/Actor.ts"
import type { Organization } from "../../../services/admin/Organization.ts"
import * as Operations from "../../../services/admin/OrganizationOperations.ts"
import { Organizations } from "../../../services/admin/Organizations.ts"
import { currentTurns } from "../../../services/admin/ReadTurns.ts"
import { lineColumns, linesOf } from "../../../services/statements/Statement.ts"
import { Statements } from "../../../services/statements/Statements.ts"
import { AdminApi } from "../AdminApi.ts"
import { streamCsv } from "../Csv.ts"
import { answerOf, conflict, invalid, notFound, recordOf, refuseField } from "../Fields.ts"
import { cutPage, defaultListed } from "../Page.ts"

const nameRefusals = { NameTaken: conflict("name"), NameRefused: invalid("name") }
const unknown = { OrganizationNotFound: notFound }

export const OrganizationsHandlers = HttpApiBuilder.group(
  AdminApi,
  "organizations",
  Effect.fnUntraced(function* (handlers) {
    const organizations = yield* Organizations
    const statements = yield* Statements
    const statementOf = (org: string, month: Month | undefined) =>
      Effect.gen(function* () {
        const { scope } = yield* CurrentActor
        const { id } = yield* organizations.findAny(scope, org)
        return yield* (yield* currentTurns).takeSoon(statements.find(scope, id, month))
      }).pipe(Effect.catchTags({ ...unknown, NoStatement: invalid("month") }))
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultListed, search, state } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const rows = yield* organizations.page(scope, { after, limit: limit + 1, search, state })
          return cutPage(rows, limit, identity<Organization>, Struct.get("id"))
        })
      )
      .handle("create", ({ payload: { credits_usd, name } }) =>
        recordOf(Operations.create.run({ name, credits: credits_usd })).pipe(Effect.catchTags(nameRefusals))
      )
      .handle("show", ({ path: { org } }) =>
        Effect.flatMap(CurrentActor, ({ scope }) => organizations.findAny(scope, org)).pipe(Effect.catchTags(unknown))
      )
      .handle("update", ({ path: { org }, payload }) =>
        answerOf(Operations.update.run(org, payload), (record) => {
          const warnings = Operations.warningsOf(payload, record)
          return warnings.length === 0 ? record : { ...record, warnings }
        }).pipe(Effect.catchTags({ ...nameRefusals, ...unknown, FieldRefused: refuseField }))
      )
      .handle("suspend", ({ path: { org } }) => Effect.catchTags(recordOf(Operations.suspend.run(org)), unknown))
      .handle("resume", ({ path: { org } }) => Effect.catchTags(recordOf(Operations.resume.run(org)), unknown))
      .handle("delete", ({ path: { org } }) =>
        recordOf(Operations.remove.run(org)).pipe(Effect.catchTags({ ...unknown, OrganizationInUse: conflict(null) }))
      )
      .handle("statement", ({ path: { org }, urlParams: { month } }) => statementOf(org, month))
      .handle("statementCsv", ({ path: { org }, urlParams: { month } }) =>
        Effect.flatMap(statementOf(org, month), (statement) => {
          const lines = linesOf(statement).map((line) => csvLine(lineColumns.map((column) => line[column])))
          return streamCsv(`statement-${statement.month}.csv`, Stream.succeed([csvLine(lineColumns), ...lines]))
        })
      )
  })
)
