import { Command } from "@effect/cli"
import { Effect, Record, Redacted, Struct } from "effect"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { CommandFailed } from "../ExitCode.ts"
import { ApiKeys, type IssuedKey } from "../services/access/ApiKeys.ts"
import { Key, type KeyLimits, limits, reissuing } from "../services/access/Key.ts"
import type { Changed } from "../services/admin/AuditLog.ts"
import * as Operations from "../services/admin/KeyOperations.ts"
import { readSaleStates } from "../services/catalog/Catalog.ts"
import type { Inputs as InputFields } from "../services/resources/ResourceInput.ts"
import { readCatalogOptions } from "./CliServices.ts"
import { change, command, findOrganization } from "./CommandBuilders.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const toRecord = (key: Key) => Struct.omit(key, "org_name")

const id = Inputs.word("KEYID", "a key's id")

const describeChange = <E, R>(change: Effect.Effect<Changed<unknown, Key>, E, R>) =>
  Effect.map(change, ({ record }) => ({ record: toRecord(record) }))

const readOwnSaleStates = Effect.flatMap(readCatalogOptions, readSaleStates)

/**
 * Warns about model patterns that match nothing in this machine's catalog. If that is unreadable, the command still
 * succeeds.
 */
const warningsOf = (input: KeyLimits) =>
  input.models
    ? Effect.match(readOwnSaleStates, {
        onFailure: () => ["The catalog could not be read, so the models were not checked."],
        onSuccess: ({ all }) =>
          Operations.warningsOf(
            input,
            all.map(({ model }) => model.id)
          )
      })
    : Effect.succeed([])

const showIssued = ({ record, value }: Changed<IssuedKey, Key>) => {
  const { id, ...rest } = toRecord(record)
  const secret = value && { key: Redacted.value(value.secret) }
  return Output.record({ id, ...secret, ...rest }, "Store the key now. It is not shown again.")
}

const create = command(
  "create",
  `${Operations.create.summary}.`,
  { org: Inputs.orgOption, input: Inputs.inputOptions(limits, "default") },
  Effect.fnUntraced(
    function* ({ input, org }) {
      const created = showIssued(yield* Operations.create.run({ organization: org, ...input }))
      return { ...created, warnings: yield* warningsOf(input) }
    },
    Effect.catchTag("FieldRefused", Inputs.explainRefused)
  )
)

const columns = ["name", ...Object.keys(Struct.omit(Key.fields, "name", "org", "org_name", "created_at"))]

const list = command(
  "list",
  "List an organization's keys.",
  { org: Inputs.orgOption },
  Effect.fnUntraced(function* ({ org }) {
    const { id } = yield* findOrganization(org)
    const { list } = yield* ApiKeys
    return Output.list((yield* list(id)).map(toRecord), { columns, none: "The organization has no keys." })
  })
)

/** More keys of one name would not fit into the message. */
const maxNamesakes = 20

/** Fails if several keys have the name. A key that is not revoked comes before revoked ones. */
const findByName = Effect.fnUntraced(function* (name: string, org: string | undefined) {
  const { page } = yield* ApiKeys
  const organization = org === undefined ? undefined : yield* findOrganization(org)
  const named = yield* page(OrganizationScope.all, { name, org: organization?.id, limit: maxNamesakes })
  const usable = named.filter(({ revoked_at }) => revoked_at === null)
  const [key, ...others] = usable.length === 0 ? named : usable
  if (key === undefined) return yield* new CommandFailed({ message: `There is no key with the id or name ${name}.` })
  if (others.length === 0) return key
  const ids = [key, ...others].map(({ id, org_name }) => `${id} (${org_name})`).join(", ")
  return yield* new CommandFailed({ message: `Several keys have the name ${name}. Use one of their ids: ${ids}` })
})

/** Shows a limit that is not set as the word that removes it. */
const describeKey = ({ id, name, org, org_name, ...rest }: Key): Output.Fields => {
  const inputs: InputFields = limits
  const fields = { ...rest } satisfies Output.Fields
  return {
    name,
    id,
    org_name,
    org,
    ...Record.map(fields, (value: Output.Fields[string], field) => value ?? inputs[field]?.none?.word)
  }
}

const show = command(
  "show",
  "Show a key with its limits, spend and last use.",
  {
    key: Inputs.word("KEY", "a key's id or name"),
    org: Inputs.optional(Inputs.text("org"), "the key's organization, if several keys have the name")
  },
  Effect.fnUntraced(function* ({ key, org }) {
    const { find } = yield* ApiKeys
    const found = yield* Effect.catchTag(find(OrganizationScope.all, key), "KeyNotFound", () => findByName(key, org))
    return { document: found, text: Output.sheet(describeKey(found)) }
  })
)

const update = command(
  "update",
  `${Operations.update.summary}.`,
  { id, input: Inputs.inputOptions(limits, "current") },
  Effect.fnUntraced(
    function* ({ id, input }) {
      yield* Inputs.requireChange(input)
      const { record } = yield* describeChange(Operations.update.run(id, input))
      return { ...Output.record(record), warnings: yield* warningsOf(input) }
    },
    Effect.catchTag("FieldRefused", Inputs.explainRefused)
  )
)

const rename = change(
  "rename",
  "Rename a key.",
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
  { id, input: Inputs.inputOptions(reissuing, "default") },
  ({ id, input }) => Effect.map(Operations.reissue.run(id, input), showIssued)
)

export const keys = Inputs.group("keys", "Manage API keys.").pipe(
  Command.withSubcommands([create, list, show, update, rename, revoke, reissue])
)
