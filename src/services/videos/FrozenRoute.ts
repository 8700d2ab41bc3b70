import { Effect, Schema } from "effect"
import type { ProviderAccount, VideoRoute } from "../../domain/Model.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"

/**
 * A route as it was when it was asked, as a row keeps it: a catalog that changes meanwhile changes nothing for a
 * render under way. Its credential is not kept; it is the account's of that name.
 */
export const FrozenRoute = Schema.Struct({
  id: Schema.String,
  provider: Schema.Struct({
    name: Schema.String,
    adapter: Schema.String,
    baseUrl: Schema.NullOr(Schema.String)
  }),
  model: Schema.String,
  imageModel: Schema.NullOr(Schema.String),
  referenceImage: Schema.Literal("none", "optional", "required"),
  seconds: Schema.Array(Schema.Number),
  secondsAs: Schema.Literal("number", "text", "suffixed", "omitted"),
  options: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
  cost: Schema.NullOr(Schema.Struct({ per: Schema.Literal("second", "video"), price: NanoUsdFromRow }))
})
export type FrozenRoute = typeof FrozenRoute.Type

/** As a row keeps it; null too where another version wrote what this one cannot read. */
export const KeptRoute = Schema.NullOr(Schema.parseJson(FrozenRoute)).annotations({
  decodingFallback: () => Effect.succeed(null)
})

const encode = Schema.encodeSync(Schema.parseJson(FrozenRoute))

/** As JSON text. */
export const freeze = (route: VideoRoute): string =>
  encode({
    id: route.id,
    provider: {
      name: route.provider.name,
      adapter: route.provider.adapter,
      baseUrl: route.provider.baseUrl ?? null
    },
    model: route.model,
    imageModel: route.imageModel ?? null,
    referenceImage: route.referenceImage,
    seconds: route.seconds,
    secondsAs: route.secondsAs,
    options: route.options,
    cost: route.cost ?? null
  })

/** The route with the account's credential; undefined while the catalog has no such account at that address. */
export const thaw = (frozen: FrozenRoute, accounts: ReadonlyArray<ProviderAccount>): VideoRoute | undefined => {
  const { adapter, baseUrl, name } = frozen.provider
  const provider = accounts.find(
    (account) => account.name === name && account.adapter === adapter && account.baseUrl === (baseUrl ?? undefined)
  )
  if (provider === undefined) return undefined
  const { cost, imageModel, ...same } = frozen
  return {
    ...same,
    provider,
    imageModel: imageModel ?? undefined,
    cost: cost ?? undefined,
    preference: 1,
    weight: 1
  }
}
