import { Effect, Schema } from "effect"
import type { ProviderAccount, VideoRoute } from "../../domain/Model.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { isSameAccount } from "../catalog/Catalog.ts"

const orNull = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.transform(Schema.NullOr(schema), Schema.UndefinedOr(Schema.typeSchema(schema)), {
    strict: true,
    decode: (value) => value ?? undefined,
    encode: (value) => value ?? null
  })

/** The route of a running render, unaffected by catalog changes; without its credential. */
export const FrozenRoute = Schema.Struct({
  id: Schema.String,
  provider: Schema.Struct({ name: Schema.String, adapter: Schema.String, baseUrl: orNull(Schema.String) }),
  model: Schema.String,
  imageModel: orNull(Schema.String),
  referenceImage: Schema.Literal("none", "optional", "required"),
  seconds: Schema.Array(Schema.Number),
  secondsAs: Schema.Literal("number", "text", "suffixed", "omitted"),
  options: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
  cost: orNull(Schema.Struct({ per: Schema.Literal("second", "video"), price: NanoUsdFromRow }))
})
export type FrozenRoute = typeof FrozenRoute.Type

/** Null where another version wrote what this one cannot read. */
export const KeptRoute = Schema.NullOr(Schema.parseJson(FrozenRoute)).annotations({
  decodingFallback: () => Effect.succeed(null)
})

export const encodeRoute: (route: VideoRoute) => string = Schema.encodeSync(Schema.parseJson(FrozenRoute))

/** Undefined while the catalog has no such account at that address. */
export const restoreRoute = (frozen: FrozenRoute, accounts: ReadonlyArray<ProviderAccount>): VideoRoute | undefined => {
  const provider = accounts.find((one) => isSameAccount(one, frozen.provider))
  return provider && { ...frozen, provider, preference: 1, weight: 1 }
}
