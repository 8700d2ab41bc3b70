import { Args, Command } from "@effect/cli"
import { Clock, Effect, Predicate, Redacted } from "effect"
import { CapPeriod } from "../domain/ApiKey.ts"
import { type ApiKey, ApiKeys, type Cap, type IssuedKey } from "../services/access/ApiKeys.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { command, findOrganization } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const recordOf = (key: ApiKey) => ({
  id: key.id,
  org: key.orgId,
  name: key.name,
  hint: key.hint,
  scopes: key.scopes,
  rpm: key.rpm,
  cap_usd: key.cap,
  cap_period: key.capPeriod,
  spent_usd: key.spent,
  created_at: key.createdAt,
  expires_at: key.expiresAt,
  revoked_at: key.revokedAt,
  last_used_at: key.lastUsedAt
})

const issued = ({ record, secret }: IssuedKey) => {
  const { id, ...rest } = recordOf(record)
  return Output.record({ id, key: Redacted.value(secret), ...rest }, "Keep the key: it is not shown again.")
}

const fields = {
  name: Inputs.optional(Inputs.text("name"), "what to call the key"),
  scopes: Inputs.optional(
    Inputs.option(
      "scopes",
      "a comma-separated list of chat, images and videos, or all",
      Inputs.or("all", Inputs.scopes)
    ),
    "the surfaces it may use, such as chat,images: of chat, images and videos, or all; a new key: all"
  ),
  rpm: Inputs.optional(
    Inputs.option("rpm", "an integer of at least 1, or default", Inputs.or("default", Inputs.whole(1))),
    "requests per minute, or default for the setting DEFAULT_RPM; a new key: default"
  ),
  cap: Inputs.optional(
    Inputs.option("cap", `${Inputs.usd.nonNegative}, or none`, Inputs.or("none", Inputs.nonNegativeUsd)),
    "the most USD it may spend in a period, or none; a new key: none"
  ),
  capPeriod: Inputs.optional(
    Inputs.oneOf("cap-period", CapPeriod.literals),
    "the period of the cap: day, week, month or total; days, weeks and months are UTC"
  ),
  expires: Inputs.optional(
    Inputs.option("expires", `${Inputs.momentForms}, or never`, Inputs.or("never", Inputs.moment)),
    `when it stops working: ${Inputs.momentForms}, or never; a new key: never`
  )
}

type Fields = Command.Command.ParseConfig<typeof fields>

const refuse = (message: string) => new CommandFailed({ message })

const capFrom = Effect.fnUntraced(function* ({ cap, capPeriod }: Fields, present: Cap | undefined) {
  if (cap === undefined && capPeriod === undefined) return undefined
  if (cap === null) return capPeriod === undefined ? null : yield* refuse("--cap none takes no --cap-period.")
  const amount = cap ?? present?.amount
  const period = capPeriod ?? present?.period
  if (amount === undefined) return yield* refuse("--cap-period needs --cap.")
  if (period === undefined) return yield* refuse("--cap needs --cap-period day, week, month or total.")
  return { amount, period }
})

const changesFrom = Effect.fnUntraced(function* (given: Fields, present?: Cap) {
  const { expires, name, rpm, scopes } = given
  const now = yield* Clock.currentTimeMillis
  const expiresAt = expires && new Date(Inputs.future(expires, now))
  if (expiresAt && expiresAt.getTime() <= now) return yield* refuse("--expires must be in the future.")
  return { name, scopes, rpm, cap: yield* capFrom(given, present), expiresAt }
})

const create = command(
  "create",
  "Issue a key. It is shown this once.",
  { org: Inputs.orgOption, ...fields },
  Effect.fnUntraced(function* ({ org, ...given }) {
    const changes = yield* changesFrom(given)
    const { id } = yield* findOrganization(org)
    const { create } = yield* ApiKeys
    return issued(yield* create({ org: id, ...changes }))
  })
)

const list = command(
  "list",
  "List an organization's keys.",
  { org: Inputs.orgOption },
  Effect.fnUntraced(function* ({ org }) {
    const { id } = yield* findOrganization(org)
    const { list } = yield* ApiKeys
    return Output.list((yield* list(id)).map(recordOf), {
      columns: [
        "id",
        "name",
        "hint",
        "scopes",
        "rpm",
        "cap_usd",
        "cap_period",
        "spent_usd",
        "last_used_at",
        "expires_at",
        "revoked_at"
      ],
      none: "The organization has no keys."
    })
  })
)

const update = command(
  "update",
  "Change what a key may do; what is not named stays.",
  { id: Inputs.keyArgument, ...fields },
  Effect.fnUntraced(function* ({ id, ...given }) {
    if (Object.values(given).every(Predicate.isUndefined)) {
      return yield* refuse("Nothing to change: give at least one option.")
    }
    const { find, update } = yield* ApiKeys
    const { cap, capPeriod } = yield* find(id)
    const present = cap === null || capPeriod === null ? undefined : { amount: cap, period: capPeriod }
    return Output.record(recordOf(yield* update(id, yield* changesFrom(given, present))))
  })
)

const rename = command(
  "rename",
  "Call a key something else.",
  {
    id: Inputs.keyArgument,
    name: Args.text({ name: "NAME" }).pipe(Args.withDescription("what to call it from now on"))
  },
  Effect.fnUntraced(function* ({ id, name }) {
    const { update } = yield* ApiKeys
    return Output.record(recordOf(yield* update(id, { name })))
  })
)

const revoke = command(
  "revoke",
  "Make a key useless, for good.",
  { id: Inputs.keyArgument },
  Effect.fnUntraced(function* ({ id }) {
    const { revoke } = yield* ApiKeys
    return Output.record(recordOf(yield* revoke(id)))
  })
)

const reissue = command(
  "reissue",
  "Give a key a new secret; the old one stops working at once.",
  { id: Inputs.keyArgument },
  Effect.fnUntraced(function* ({ id }) {
    const { reissue } = yield* ApiKeys
    return issued(yield* reissue(id))
  })
)

export const keys = Inputs.group("keys", "The keys that customers call with.").pipe(
  Command.withSubcommands([create, list, update, rename, revoke, reissue])
)
