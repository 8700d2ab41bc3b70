import { Command } from "@effect/cli"
import { Effect, Redacted, Struct } from "effect"
import { ApiKeys, type IssuedKey } from "../services/access/ApiKeys.ts"
import { Key, type KeyLimits, limits, reissuing } from "../services/access/Key.ts"
import type { Changed } from "../services/admin/Audit.ts"
import * as Operations from "../services/admin/KeyOperations.ts"
import { readOffers } from "../services/catalog/Catalog.ts"
import { change, command, findOrganization } from "./Commands.ts"
import { readCatalogOptions } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const shown = (key: Key) => Struct.omit(key, "org_name")

const id = Inputs.word("KEYID", "a key's id")

const describeChange = <E, R>(change: Effect.Effect<Changed<unknown, Key>, E, R>) =>
  Effect.map(change, ({ record }) => ({ record: shown(record) }))

const inCatalog = Effect.flatMap(readCatalogOptions, readOffers)

/** By the catalog of this machine, whose faults are none of the key's. */
const warningsOf = (given: KeyLimits) =>
  given.models
    ? Effect.match(inCatalog, {
        onFailure: () => ["The models were not compared with the catalog, which could not be read."],
        onSuccess: ({ all }) =>
          Operations.warningsOf(
            given,
            all.map(({ model }) => model.id)
          )
      })
    : Effect.succeed([])

const showIssued = ({ record, value }: Changed<IssuedKey, Key>) => {
  const { id, ...rest } = shown(record)
  const secret = value && { key: Redacted.value(value.secret) }
  return Output.record({ id, ...secret, ...rest }, "Keep the key: it is not shown again.")
}

const create = command(
  "create",
  `${Operations.create.summary}.`,
  { org: Inputs.orgOption, given: Inputs.inputOptions(limits, "none") },
  Effect.fnUntraced(
    function* ({ given, org }) {
      const created = showIssued(yield* Operations.create.run({ organization: org, ...given }))
      return { ...created, warnings: yield* warningsOf(given) }
    },
    Effect.catchTag("FieldRefused", Inputs.explainRefused)
  )
)

const columns = Object.keys(Struct.omit(Key.fields, "org", "org_name", "created_at"))

const list = command(
  "list",
  "List an organization's keys.",
  { org: Inputs.orgOption },
  Effect.fnUntraced(function* ({ org }) {
    const { id } = yield* findOrganization(org)
    const { list } = yield* ApiKeys
    return Output.list((yield* list(id)).map(shown), { columns, none: "The organization has no keys." })
  })
)

const update = command(
  "update",
  `${Operations.update.summary}.`,
  { id, given: Inputs.inputOptions(limits, "kept") },
  Effect.fnUntraced(
    function* ({ given, id }) {
      yield* Inputs.requireChange(given)
      const { record } = yield* describeChange(Operations.update.run(id, given))
      return { ...Output.record(record), warnings: yield* warningsOf(given) }
    },
    Effect.catchTag("FieldRefused", Inputs.explainRefused)
  )
)

const rename = change(
  "rename",
  "Call a key something else.",
  { id, name: Inputs.argument("NAME", limits.name.accepts, limits.name.read) },
  ({ id, name }) =>
    Effect.catchTag(describeChange(Operations.update.run(id, { name })), "FieldRefused", Inputs.explainRefused)
)

const revoke = change("revoke", `${Operations.revoke.summary}.`, { id }, ({ id }) =>
  describeChange(Operations.revoke.run(id))
)

const reissue = command(
  "reissue",
  `${Operations.reissue.summary}.`,
  { id, given: Inputs.inputOptions(reissuing, "none") },
  ({ given, id }) => Effect.map(Operations.reissue.run(id, given), showIssued)
)

export const keys = Inputs.group("keys", "The keys that customers call with.").pipe(
  Command.withSubcommands([create, list, update, rename, revoke, reissue])
)
