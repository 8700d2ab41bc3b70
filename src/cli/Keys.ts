import { Command, Options } from "@effect/cli"
import { Clock, Effect, Option, Redacted } from "effect"
import { CapPeriod } from "../domain/ApiKey.ts"
import type { NanoUsd } from "../domain/Money.ts"
import { type ApiKey, ApiKeys, type Cap, type IssuedKey } from "../services/access/ApiKeys.ts"
import { Organizations } from "../services/access/Organizations.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { operator } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { presentList, presentRecord } from "./Output.ts"

const record = (key: ApiKey) => ({
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

const presentIssued = (json: boolean, { record: key, secret }: IssuedKey) => {
  const { id, ...rest } = record(key)
  return presentRecord(json, { id, key: Redacted.value(secret), ...rest }, "Keep the key: it is not shown again.")
}

const fields = {
  name: Options.text("name").pipe(Options.withDescription("what to call the key"), Options.optional),
  scopes: Inputs.option(
    "scopes",
    "a comma-separated list of chat, images and videos, or all",
    Inputs.or("all", Inputs.scopes)
  ).pipe(Options.withDescription("the surfaces it may use: of chat,images,videos, or all"), Options.optional),
  rpm: Inputs.option("rpm", "an integer of at least 1, or default", Inputs.or("default", Inputs.whole(1))).pipe(
    Options.withDescription("requests per minute, or default"),
    Options.optional
  ),
  cap: Inputs.option("cap", `${Inputs.usd.nonNegative}, or none`, Inputs.or("none", Inputs.nonNegativeUsd)).pipe(
    Options.withDescription("the most USD it may spend in a period, or none"),
    Options.optional
  ),
  capPeriod: Inputs.oneOf("cap-period", CapPeriod.literals).pipe(
    Options.withDescription("the period of the cap; days, weeks and months are UTC"),
    Options.optional
  ),
  expires: Inputs.option("expires", `${Inputs.momentForms}, or never`, Inputs.or("never", Inputs.moment)).pipe(
    Options.withDescription(`when it stops working: ${Inputs.momentForms}, or never`),
    Options.optional
  )
}

interface Fields {
  readonly name: Option.Option<string>
  readonly scopes: Option.Option<ApiKey["scopes"]>
  readonly rpm: Option.Option<number | null>
  readonly cap: Option.Option<NanoUsd | null>
  readonly capPeriod: Option.Option<CapPeriod>
  readonly expires: Option.Option<Inputs.Moment | null>
}

const refuse = (message: string) => new CommandFailed({ message })

/** What the two flags make of the cap that is there. */
const capFrom = Effect.fnUntraced(function* ({ cap, capPeriod }: Fields, present: Cap | undefined) {
  if (Option.isNone(cap) && Option.isNone(capPeriod)) return undefined
  const amount = Option.getOrElse(cap, () => present?.amount)
  const period = Option.getOrElse(capPeriod, () => present?.period)
  if (amount === null) return Option.isSome(capPeriod) ? yield* refuse("--cap none takes no --cap-period.") : null
  if (amount === undefined) return yield* refuse("--cap-period needs --cap.")
  if (period === undefined) return yield* refuse("--cap needs --cap-period day, week, month or total.")
  return { amount, period }
})

const changesFrom = Effect.fnUntraced(function* (given: Fields, present?: Cap) {
  const now = yield* Clock.currentTimeMillis
  const expires = Option.getOrUndefined(given.expires)
  const at = expires === undefined || expires === null ? expires : new Date(Inputs.future(expires, now))
  if (at instanceof Date && at.getTime() <= now) return yield* refuse("--expires must be in the future.")
  return {
    name: Option.getOrUndefined(given.name),
    scopes: Option.getOrUndefined(given.scopes),
    rpm: Option.getOrUndefined(given.rpm),
    cap: yield* capFrom(given, present),
    expiresAt: at
  }
})

const create = Command.make(
  "create",
  { org: Inputs.orgOption, ...fields, json: Inputs.json },
  Effect.fnUntraced(function* ({ json, org, ...given }) {
    const changes = yield* changesFrom(given)
    const { id } = yield* Effect.flatMap(Organizations, ({ find }) => find(org))
    const keys = yield* ApiKeys
    yield* presentIssued(json, yield* keys.create({ org: id, ...changes }))
  })
).pipe(Command.withDescription("Issue a key. It is shown this once."), Command.provide(operator))

const list = Command.make(
  "list",
  { org: Inputs.orgOption, json: Inputs.json },
  Effect.fnUntraced(function* ({ json, org }) {
    const { id } = yield* Effect.flatMap(Organizations, ({ find }) => find(org))
    const keys = yield* ApiKeys
    yield* presentList(json, (yield* keys.list(id)).map(record), {
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
).pipe(Command.withDescription("List an organization's keys."), Command.provide(operator))

const update = Command.make(
  "update",
  { id: Inputs.keyArgument, ...fields, json: Inputs.json },
  Effect.fnUntraced(function* ({ id, json, ...given }) {
    if (Object.values(given).every((field) => Option.isNone<unknown>(field)))
      return yield* refuse("Nothing to change: give at least one option.")
    const keys = yield* ApiKeys
    const { cap, capPeriod } = yield* keys.find(id)
    const present = cap === null || capPeriod === null ? undefined : { amount: cap, period: capPeriod }
    const updated = yield* keys.update(id, yield* changesFrom(given, present))
    return yield* presentRecord(json, record(updated))
  })
).pipe(Command.withDescription("Change what a key may do; what is not named stays."), Command.provide(operator))

const revoke = Command.make(
  "revoke",
  { id: Inputs.keyArgument, json: Inputs.json },
  Effect.fnUntraced(function* ({ id, json }) {
    const keys = yield* ApiKeys
    yield* presentRecord(json, record(yield* keys.revoke(id)))
  })
).pipe(Command.withDescription("Make a key useless, for good."), Command.provide(operator))

const reissue = Command.make(
  "reissue",
  { id: Inputs.keyArgument, json: Inputs.json },
  Effect.fnUntraced(function* ({ id, json }) {
    const keys = yield* ApiKeys
    yield* presentIssued(json, yield* keys.reissue(id))
  })
).pipe(
  Command.withDescription("Give a key a new secret; the old one stops working at once."),
  Command.provide(operator)
)

export const keys = Inputs.group("keys", "The keys that customers call with.").pipe(
  Command.withSubcommands([create, list, update, revoke, reissue])
)
