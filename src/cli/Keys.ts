import { Command } from "@effect/cli"
import { Clock, Effect, Predicate, Redacted, Struct } from "effect"
import { CapPeriod, longestKeyName, maxRpm } from "../domain/ApiKey.ts"
import { ApiKeys, type IssuedKey } from "../services/access/ApiKeys.ts"
import type { Changed } from "../services/admin/Audit.ts"
import * as Changes from "../services/admin/KeyChanges.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { change, command, findOrganization } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const shown = (record: Changes.KeyRecord) => Struct.omit(record, "org_name")

const id = Inputs.word("KEYID", "a key's id")

const describeChange = <E, R>(change: Effect.Effect<Changed<unknown, Changes.KeyRecord>, E, R>) =>
  Effect.map(change, ({ record }) => ({ record: shown(record) }))

const issued = ({ record, value }: Changed<IssuedKey, Changes.KeyRecord>) => {
  const { id, ...rest } = shown(record)
  const secret = value && { key: Redacted.value(value.secret) }
  return Output.record({ id, ...secret, ...rest }, "Keep the key: it is not shown again.")
}

const nameForm = `a text of at most ${longestKeyName} characters`
const readName = Inputs.upTo(longestKeyName)

const fields = {
  name: Inputs.optional(Inputs.option("name", nameForm, readName), "what to call the key"),
  scopes: Inputs.optional(
    Inputs.option(
      "scopes",
      "a comma-separated list of chat, images and videos, or all",
      Inputs.or("all", Inputs.scopes)
    ),
    "the surfaces it may use, such as chat,images: of chat, images and videos, or all; a new key: all"
  ),
  rpm: Inputs.optional(
    Inputs.option("rpm", `an integer from 1 to ${maxRpm}, or default`, Inputs.or("default", Inputs.whole(1, maxRpm))),
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

const problems = {
  expired: "--expires must be in the future.",
  "cap missing": "--cap-period needs --cap.",
  "period missing": "--cap needs --cap-period day, week, month or total.",
  "period without cap": "--cap none takes no --cap-period."
}

const explain = ({ problem }: Changes.KeyRefused) => refuse(problems[problem])

const fieldsFrom = ({ expires, ...given }: Fields) =>
  Effect.map(Clock.currentTimeMillis, (now) => ({
    ...given,
    expiresAt: expires && new Date(Inputs.toFuture(expires, now))
  }))

const create = command(
  "create",
  "Issue a key. It is shown this once.",
  { org: Inputs.orgOption, ...fields },
  Effect.fnUntraced(
    function* ({ org, ...given }) {
      return issued(yield* Changes.createKey({ org, ...(yield* fieldsFrom(given)) }))
    },
    Effect.catchTag("KeyRefused", explain)
  )
)

const list = command(
  "list",
  "List an organization's keys.",
  { org: Inputs.orgOption },
  Effect.fnUntraced(function* ({ org }) {
    const { id } = yield* findOrganization(org)
    const { list } = yield* ApiKeys
    return Output.list(
      (yield* list(id)).map((key) => shown(Changes.keyRecord(key))),
      {
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
      }
    )
  })
)

const update = change(
  "update",
  "Change what a key may do; what is not named stays.",
  { id, ...fields },
  Effect.fnUntraced(
    function* ({ id, ...given }) {
      if (Object.values(given).every(Predicate.isUndefined)) {
        return yield* refuse("Nothing to change: give at least one option.")
      }
      return yield* describeChange(Changes.updateKey(id, yield* fieldsFrom(given)))
    },
    Effect.catchTag("KeyRefused", explain)
  )
)

const rename = change(
  "rename",
  "Call a key something else.",
  {
    id,
    name: Inputs.argument("NAME", nameForm, readName)
  },
  ({ id, name }) => Effect.catchTag(describeChange(Changes.updateKey(id, { name })), "KeyRefused", explain)
)

const revoke = change("revoke", "Make a key useless, for good.", { id }, ({ id }) =>
  describeChange(Changes.revokeKey(id))
)

const reissue = command("reissue", "Give a key a new secret; the old one stops working at once.", { id }, ({ id }) =>
  Effect.map(Changes.reissueKey(id), issued)
)

export const keys = Inputs.group("keys", "The keys that customers call with.").pipe(
  Command.withSubcommands([create, list, update, rename, revoke, reissue])
)
