import { Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"

export class Entry extends Schema.Class<Entry>("Entry")({
  id: Schema.String,
  orgId: OrgId,
  at: Schema.DateFromSelf,
  kind: Schema.Literal("top_up", "charge", "adjustment"),
  amount: NanoUsdFromRow,
  holdId: Schema.NullOr(Schema.String),
  keyId: Schema.NullOr(KeyId),
  ref: Schema.NullOr(Schema.String),
  note: Schema.NullOr(Schema.String)
}) {}
