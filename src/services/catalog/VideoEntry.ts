import { Array as Arr, Schema } from "effect"
import { type Listing, type ParamField, saving, type VideoPrices } from "../../domain/ListedModel.ts"
import { type SecondsAs, type VideoModel, type VideoPricing, type VideoRoute } from "../../domain/Model.ts"
import { toUsd } from "../../domain/Money.ts"
import { changePrice } from "../../domain/Pricing.ts"
import { clipPrice, nearestSeconds } from "../../domain/VideoRules.ts"
import type { Path } from "./CatalogSource.ts"
import { datedList, Instant, integer, model, Name, oneOf, optional, route, Seconds, Usd } from "./EntryFields.ts"
import {
  type BaseOf,
  checkNarrowing,
  type EntryOperations,
  findRepeats,
  firstCost,
  type NonEmpty,
  type Report,
  requireValue,
  sandboxMargin
} from "./EntryOperations.ts"
import { effectiveAt, routeAt } from "./PriceLists.ts"

const ReferenceImage = oneOf("none", "optional", "required")
const LengthFormat = Schema.Union(
  Schema.Literal("none"),
  Schema.String.pipe(Schema.pattern(/^\d+s?$/, { description: "The seconds as text, such as 8 or 8s." })),
  integer(1, 3600)
).annotations({ message: () => ({ message: 'must be none, 8, "8" or "8s"', override: true }) })

const clipPrices = { per_second_usd: optional(Usd), per_video_usd: optional(Usd) }
const ClipCost = Schema.Struct(clipPrices)

const RouteEntry = Schema.Struct({
  ...route,
  reference_image: optional(ReferenceImage),
  image_model: optional(Name),
  seconds: optional(Schema.NonEmptyArray(Seconds)),
  seconds_as: optional(LengthFormat),
  cost: optional(ClipCost),
  cost_from: datedList(Schema.Struct({ at: Instant, ...clipPrices }))
})
const customerPrices = { ...clipPrices, official: optional(Schema.Struct(clipPrices)) }

export const VideoModelEntry = Schema.Struct({
  ...model,
  surface: Schema.Literal("video"),
  pricing: Schema.Struct(customerPrices),
  pricing_from: datedList(Schema.Struct({ at: Instant, ...customerPrices })),
  seconds: Schema.Struct({ allowed: Schema.NonEmptyArray(Seconds), default: Seconds }),
  reference_image: optional(ReferenceImage),
  routes: Schema.NonEmptyArray(RouteEntry)
})
export type VideoModelEntry = typeof VideoModelEntry.Type

const checkClipPrice = (report: Report, path: Path, price: VideoModelEntry["pricing"]) => {
  if ((price.per_second_usd === undefined) === (price.per_video_usd === undefined)) {
    report(path, "set exactly one of per_second_usd and per_video_usd")
  }
}

const checkVideo = (report: Report, at: Path, entry: VideoModelEntry) => {
  const { pricing, reference_image: own = "none", routes, seconds } = entry
  checkClipPrice(report, [...at, "pricing"], pricing)
  const unit = pricing.per_second_usd === undefined ? "per_video_usd" : "per_second_usd"
  if (pricing.official !== undefined && Object.keys(pricing.official).join() !== unit) {
    report([...at, "pricing", "official"], `must use ${unit}, like the price`)
  }
  const allowed = seconds.allowed.map(String)
  for (const repeated of findRepeats(allowed))
    report([...at, "seconds", "allowed"], `${repeated} appears twice: remove one`)
  if (!seconds.allowed.includes(seconds.default)) report([...at, "seconds", "default"], "must be one of allowed")
  const checkRoutes = checkNarrowing(report, at, routes)
  checkRoutes("seconds", allowed, (route) => route.seconds?.map(String))
  routes.forEach((route, index) => {
    const path = [...at, "routes", index]
    const narrowed = route.reference_image ?? own
    if (narrowed !== own && own !== "optional")
      report([...path, "reference_image"], `the model's reference_image is ${own}: make it optional, or remove it here`)
    if (narrowed === "none" && route.image_model !== undefined)
      report(
        [...path, "image_model"],
        "the route takes no reference image: remove image_model, or change reference_image"
      )
    if (route.cost !== undefined) checkClipPrice(report, [...path, "cost"], route.cost)
  })
  if (own !== "optional") return
  const narrowed = routes.map((route) => route.reference_image ?? own)
  if (narrowed.every((reference) => reference === "none"))
    report([...at, "routes"], "no route takes a reference image: set the model's reference_image to none")
  if (narrowed.every((reference) => reference === "required"))
    report([...at, "routes"], "every route requires a reference image: set the model's reference_image to required")
}

const videoEntryAt = (entry: VideoModelEntry, at: number): VideoModelEntry => ({
  ...entry,
  pricing: effectiveAt(entry.pricing_from, at) ?? entry.pricing,
  routes: Arr.map(entry.routes, (route) => routeAt(route, at))
})

const clipPricing = (entry: NonNullable<VideoModelEntry["routes"][number]["cost"]>): VideoPricing =>
  entry.per_second_usd === undefined
    ? { per: "video", price: requireValue(entry.per_video_usd, "per_video_usd") }
    : { per: "second", price: entry.per_second_usd }

const secondsAs = (format: VideoModelEntry["routes"][number]["seconds_as"]): SecondsAs => {
  if (format === undefined || typeof format === "number") return "number"
  if (format === "none") return "omitted"
  return format.endsWith("s") ? "suffixed" : "text"
}

const sortSeconds = (
  seconds: readonly [number, ...ReadonlyArray<number>]
): readonly [number, ...ReadonlyArray<number>] => {
  const [first = seconds[0], ...rest] = seconds.toSorted((a, b) => a - b)
  return [first, ...rest]
}

const compileVideo = (entry: VideoModelEntry, base: BaseOf): VideoModel => {
  const referenceImage = entry.reference_image ?? "none"
  const allowed = sortSeconds(entry.seconds.allowed)
  const { official } = entry.pricing
  return {
    id: entry.id,
    surface: "video",
    created: entry.created ?? 0,
    pricing: clipPricing(entry.pricing),
    official: official?.per_second_usd ?? official?.per_video_usd,
    seconds: { allowed, default: entry.seconds.default },
    referenceImage,
    routes: entry.routes.map((route): VideoRoute => {
      const narrowed = route.reference_image ?? referenceImage
      return {
        ...base(route),
        referenceImage: narrowed,
        imageModel: narrowed === "none" ? undefined : (route.image_model ?? route.model),
        seconds: route.seconds === undefined ? allowed : sortSeconds(route.seconds),
        secondsAs: secondsAs(route.seconds_as),
        cost: route.cost && clipPricing(route.cost)
      }
    })
  }
}

const narrowVideo = (model: VideoModel, routes: NonEmpty<VideoRoute>): VideoModel => {
  const servedSeconds = model.seconds.allowed.filter((seconds) =>
    routes.some((route) => route.seconds.includes(seconds))
  )
  const allowed = Arr.isNonEmptyReadonlyArray(servedSeconds) ? servedSeconds : model.seconds.allowed
  const references = new Set(routes.map((route) => route.referenceImage))
  const [sharedReference = model.referenceImage] = references
  return {
    ...model,
    routes,
    seconds: { allowed, default: nearestSeconds(allowed, model.seconds.default) },
    referenceImage: references.size === 1 ? sharedReference : "optional"
  }
}

const videoPrices = ({ official, pricing: { per, price } }: VideoModel): VideoPrices => ({
  ...(per === "second" ? { per_second_usd: toUsd(price) } : { per_video_usd: toUsd(price) }),
  approximate: false,
  ...saving([price, official]),
  ...(official !== undefined &&
    (per === "second" ? { official_per_second_usd: toUsd(official) } : { official_per_video_usd: toUsd(official) }))
})

/** Returns a slider for three or more evenly spaced lengths, otherwise a select. */
const secondsField = ({ allowed, default: defaultSeconds }: VideoModel["seconds"]): ParamField => {
  const step = (allowed[1] ?? allowed[0]) - allowed[0]
  const isEven = allowed.every((seconds, index) => seconds === allowed[0] + index * step)
  if (allowed.length < 3 || !isEven) {
    return { key: "seconds", type: "select", default: String(defaultSeconds), options: allowed.map(String) }
  }
  return { key: "seconds", type: "slider", default: defaultSeconds, min: allowed[0], max: Math.max(...allowed), step }
}

const videoParams = ({ referenceImage, seconds }: VideoModel): ReadonlyArray<ParamField> =>
  referenceImage === "none" ? [secondsField(seconds)] : [secondsField(seconds), { key: "image", type: "image" }]

const listVideo = (model: VideoModel): Listing => {
  const { referenceImage, seconds } = model
  const acceptsImage = referenceImage !== "none"
  const params = videoParams(model)
  return {
    architecture: { input_modalities: acceptsImage ? ["text", "image"] : ["text"], output_modalities: ["video"] },
    capabilities: acceptsImage ? ["reference_image"] : [],
    supported_parameters: params.map(({ key }) => key),
    video: { seconds, reference_image: referenceImage },
    pricing: videoPrices(model),
    params
  }
}

export const videoOperations: EntryOperations<VideoModelEntry, VideoModel, VideoRoute> = {
  check: checkVideo,
  promises: ({ routes }) => routes.map(() => []),
  entryAt: videoEntryAt,
  compile: compileVideo,
  narrow: narrowVideo,
  inSandbox: (model, sandboxRoutes) => {
    const { id, pricing, referenceImage } = model
    const first = firstCost(model.routes)
    const isMargin = first !== undefined && (first.per !== pricing.per || first.price !== pricing.price)
    const imageModel = referenceImage === "none" ? undefined : id
    const own = {
      referenceImage,
      imageModel,
      seconds: model.seconds.allowed,
      secondsAs: "number",
      cost: isMargin ? first : { ...pricing, price: changePrice(pricing.price, -sandboxMargin) }
    } as const
    return { ...model, routes: sandboxRoutes.map((base) => ({ ...base, ...own })) }
  },
  list: listVideo,
  margins: ({ pricing, seconds: { allowed } }, { cost, seconds }) =>
    allowed
      .filter((length) => seconds.includes(length))
      .map((length) => ({
        unit: `${length} s clip`,
        price: clipPrice(pricing, length),
        cost: cost && clipPrice(cost, length)
      }))
}
