import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { CapPeriod, longestKeyName, maxRpm, Scope } from "../../../domain/ApiKey.ts"
import { KeyRecord } from "../../../services/admin/KeyChanges.ts"
import { TextOrNull, UnixSeconds } from "../../../services/admin/Record.ts"
import { parameter } from "../../schema/Query.ts"
import { ChangeErrors, ReadAccess, WriteAccess } from "../Access.ts"
import { field, optionalField, Text, usdProblem, usdWhere } from "../Fields.ts"
import { organizationParameter } from "../Filters.ts"
import { pageOf, pageParameters } from "../Page.ts"

const reference = Schema.Struct({ id: Schema.String.annotations({ description: "The key's id, not its secret." }) })

/** The latest time that a `Date` can hold. */
const latest = 8_640_000_000_000

const limits = {
  name: optionalField(
    "name",
    Text.pipe(Schema.maxLength(longestKeyName)),
    `must be a text of at most ${longestKeyName} characters`,
    "What to call it."
  ),
  scopes: optionalField(
    "scopes",
    Schema.NullOr(Schema.NonEmptyArray(Scope)),
    "must be a list of chat, images and videos, or null for all",
    "The surfaces it may use; null: all."
  ),
  rpm: optionalField(
    "rpm",
    Schema.NullOr(Schema.Int.pipe(Schema.between(1, maxRpm))),
    "must be an integer of at least 1, or null for the default",
    "Requests a minute; null: the setting `DEFAULT_RPM`."
  ),
  cap_usd: optionalField(
    "cap_usd",
    Schema.NullOr(usdWhere((amount) => amount >= 0n)),
    `${usdProblem.nonNegative}, or null for no cap`,
    "The most it may spend in a period; null: no cap."
  ),
  cap_period: optionalField(
    "cap_period",
    Schema.NullOr(CapPeriod),
    "must be one of day, week, month, total",
    "Of the cap; days, weeks and months are UTC."
  ),
  expires_at: optionalField(
    "expires_at",
    Schema.NullOr(Schema.compose(Schema.Int.pipe(Schema.between(0, latest)), UnixSeconds)),
    "must be Unix seconds, or null for never",
    "When it stops working; null: never."
  )
}

const Issued = Schema.Struct({
  ...KeyRecord.fields,
  key: TextOrNull.annotations({
    description: "The secret, this once; null where an `Idempotency-Key` repeats the answer."
  })
}).annotations({ identifier: "IssuedKey" })

const list = HttpApiEndpoint.get("list", "/keys")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...organizationParameter,
      state: parameter(
        "state",
        Schema.Literal("live", "revoked"),
        "must be one of live, revoked",
        "`live`: neither revoked nor expired; all if left out."
      ),
      search: parameter("search", Schema.String, "must be a text", "An id, a hint, or a part of a name.")
    })
  )
  .addSuccess(pageOf(KeyRecord, "Keys"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List keys, newest first")

const create = HttpApiEndpoint.post("create", "/keys")
  .setPayload(
    Schema.Struct({
      organization: field("organization", Text, "must be an id or a name", "Whose it is: an id or a name."),
      ...limits
    })
  )
  .addSuccess(Issued, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Issue a key; its secret is shown this once")

const show = HttpApiEndpoint.get("show", "/keys/:id")
  .setPath(reference)
  .addSuccess(KeyRecord)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show a key")

const update = HttpApiEndpoint.patch("update", "/keys/:id")
  .setPath(reference)
  .setPayload(Schema.Struct(limits))
  .addSuccess(KeyRecord)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Change what a key may do; what is left out stays")

const revoke = HttpApiEndpoint.post("revoke", "/keys/:id/revoke")
  .setPath(reference)
  .addSuccess(KeyRecord)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Make a key useless, for good")

const reissue = HttpApiEndpoint.post("reissue", "/keys/:id/reissue")
  .setPath(reference)
  .addSuccess(Issued)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Give a key a new secret; the old one stops working at once")

export const KeysGroup = HttpApiGroup.make("keys")
  .add(list)
  .add(create)
  .add(show)
  .add(update)
  .add(revoke)
  .add(reissue)
  .addError(ChangeErrors)
