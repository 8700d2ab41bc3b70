import { Either } from "effect"
import type { Capability } from "../../domain/Model.ts"
import type { Entries } from "../../services/catalog/CatalogRules.ts"
import type { FeedEntry, FeedModel } from "./FeedModel.ts"
import { type ProposedPrices, tokenPrices, unitPrice } from "./ProposedPrices.ts"
import { type ChosenFamily, chooseFamily, firstSeller, type Seller } from "./Seller.ts"
import type { YamlValue } from "./Yaml.ts"

/** Without a value it is a remark. */
export interface Line {
  readonly key: string
  readonly value?: YamlValue | undefined
  readonly comment?: string | undefined
}

export interface Proposal {
  readonly id: string
  readonly entry: string
  readonly seller: Seller
  readonly family: ChosenFamily | undefined
  readonly lines: ReadonlyArray<Line>
  /** What a catalog requires and the feed does not tell. */
  readonly missing: ReadonlyArray<string>
}

const untold = "not in the feed"

const missingLine = (key: string): Line => ({ key, comment: untold })

const routeLine = (seller: Seller, { name }: FeedEntry, cost: YamlValue): Line => ({
  key: "routes",
  value: [{ provider: seller.name, model: name, cost }]
})

const createdLine = ({ created }: FeedModel): Line =>
  created === undefined ? missingLine("created") : { key: "created", value: created }

const retirementLines = ({ retirement }: FeedModel): ReadonlyArray<Line> =>
  retirement?.on === undefined ? [] : [{ key: "retirement", comment: `on ${retirement.on}, says the feed` }]

const windowOf = ({ contextLengths, maxOutput }: FeedModel): number | undefined =>
  contextLengths.find((length) => length >= (maxOutput ?? 0))

const limitLines = (fed: FeedModel, family: ChosenFamily): ReadonlyArray<Line> => {
  const window = windowOf(fed)
  const other = fed.contextLengths.find((length) => length !== window)
  const { maxOutput } = fed
  const capLine: Line =
    maxOutput !== undefined
      ? {
          key: "max_output",
          value: maxOutput,
          comment: maxOutput === window ? "as large as the window: a cap may be unknown" : undefined
        }
      : { key: "max_output", comment: family.entry.max_output === undefined ? untold : `${untold}: the family's holds` }
  if (window === undefined) return [missingLine("context_length"), capLine]
  const comment =
    other === undefined ? undefined : `of the prompt; ${other} with the output, where the vendor counts both`
  return [{ key: "context_length", value: window, comment }, capLine]
}

const sold: ReadonlyArray<Capability> = ["tools", "vision", "response_format", "web_search"]

interface Can {
  readonly capabilities: ReadonlyArray<Capability>
  readonly line: Line
}

const capabilitiesOf = (fed: FeedModel, seller: Seller): Can => {
  const able = seller.featuresOf("chat")
  const told = fed.capabilities?.filter((capability) => sold.includes(capability))
  if (told === undefined) return { capabilities: [], line: { key: "capabilities", value: [], comment: untold } }
  const unable = told.filter((capability) => able?.has(capability) !== true)
  const isPriced = fed.webSearch !== undefined && fed.webSearch > 0n
  const unpriced = told.includes("web_search") && !unable.includes("web_search") && !isPriced
  const capabilities = told.filter(
    (capability) => !unable.includes(capability) && (capability !== "web_search" || isPriced)
  )
  const remarks = [
    ...(unable.length === 0 ? [] : [`${unable.join(", ")}: not with ${seller.entry.adapter} and its options`]),
    ...(unpriced ? ["web_search: without a price in the feed"] : [])
  ]
  return { capabilities, line: { key: "capabilities", value: capabilities, comment: remarks.join("; ") || undefined } }
}

const reasoningLine = ({ capabilities, efforts }: FeedModel, seller: Seller): Line => {
  const none = (comment: string | undefined): Line => ({ key: "reasoning", value: "none", comment })
  if (capabilities === undefined) return none(untold)
  if (efforts.length === 0) {
    return none(capabilities.includes("reasoning") ? "it reasons, but the feed does not tell the efforts" : undefined)
  }
  return seller.featuresOf("chat")?.has("reasoning") === true
    ? { key: "reasoning", value: efforts }
    : none(`not with ${seller.entry.adapter} and its options`)
}

const priceLines = ({ comments, prices }: ProposedPrices): ReadonlyArray<Line> => [
  { key: "pricing", value: prices },
  ...comments.map((comment) => ({ key: "pricing", comment }))
]

type Propose = (
  id: string,
  listed: FeedEntry,
  fed: FeedModel,
  sellers: ReadonlyArray<Seller>,
  entries: Entries
) => Either.Either<Proposal, string>

const noSeller = (sellers: ReadonlyArray<Seller>, surface: string) =>
  Either.left(`no wire format of ${sellers.map(({ name }) => name).join(", ")} has ${surface} models`)

const proposeChat: Propose = (id, listed, fed, sellers, entries) =>
  Either.gen(function* () {
    const seller = firstSeller(sellers, "chat") ?? (yield* noSeller(sellers, "chat"))
    const able = seller.featuresOf("chat")
    const family = chooseFamily(entries, sellers, fed.sampling, able?.has("sampling") === true)
    const { capabilities, line } = capabilitiesOf(fed, seller)
    const prices = yield* tokenPrices(fed, capabilities.includes("web_search"))
    const window = windowOf(fed)
    const cap = fed.maxOutput ?? family.entry.max_output
    const limit = Math.max(window ?? 0, cap ?? 0)
    if (limit > 1_000_000_000) return yield* Either.left("its limits are above 1000000000 tokens")
    if (fed.maxOutput !== undefined && fed.contextLengths.length > 0 && window === undefined) {
      return yield* Either.left("its output is longer than its context window")
    }
    if (window !== undefined && cap !== undefined && fed.maxOutput === undefined && cap > window) {
      return yield* Either.left("its context window is smaller than what its family may answer")
    }
    const sampling = fed.sampling === undefined ? `whether it takes temperature is ${untold}` : undefined
    return {
      id,
      entry: listed.entry,
      seller,
      family,
      lines: [
        { key: "id", value: id },
        { key: "surface", value: "chat" },
        { key: "family", value: family.name, comment: sampling },
        ...limitLines(fed, family),
        reasoningLine(fed, seller),
        line,
        ...priceLines(prices),
        createdLine(fed),
        ...retirementLines(fed),
        routeLine(seller, listed, prices.prices)
      ],
      missing: [...(window === undefined ? ["context_length"] : []), ...(cap === undefined ? ["max_output"] : [])]
    }
  })

interface UnitKind {
  readonly surface: "image" | "video"
  readonly unit: string
  readonly priceOf: (fed: FeedModel) => FeedModel["perImage"]
  readonly priceKey: string
  readonly priceComment: string
  /** What no feed tells of such models. */
  readonly untoldLines: ReadonlyArray<Line>
  readonly missing: ReadonlyArray<string>
}

const proposeByUnit =
  ({ missing, priceComment, priceKey, priceOf, surface, unit, untoldLines }: UnitKind): Propose =>
  (id, listed, fed, sellers) =>
    Either.gen(function* () {
      const seller = firstSeller(sellers, surface) ?? (yield* noSeller(sellers, surface))
      const price = { [priceKey]: yield* unitPrice(priceOf(fed), unit) }
      return {
        id,
        entry: listed.entry,
        seller,
        family: undefined,
        lines: [
          { key: "id", value: id },
          { key: "surface", value: surface },
          { key: "pricing", value: price, comment: priceComment },
          ...untoldLines,
          createdLine(fed),
          ...retirementLines(fed),
          routeLine(seller, listed, price)
        ],
        missing
      }
    })

const proposeImage = proposeByUnit({
  surface: "image",
  unit: "image",
  priceOf: ({ perImage }) => perImage,
  priceKey: "per_image_usd",
  priceComment: "for which size and quality is not in the feed",
  untoldLines: [{ key: "sizes, aspect_ratios", comment: `${untold}: sold as squares` }, missingLine("edit")],
  missing: []
})

const proposeVideo = proposeByUnit({
  surface: "video",
  unit: "second",
  priceOf: ({ perSecond }) => perSecond,
  priceKey: "per_second_usd",
  priceComment: "for which resolution is not in the feed",
  untoldLines: [
    { key: "seconds", comment: `${untold}: the lengths that it makes, such as {allowed: [4, 6, 8], default: 8}` },
    missingLine("reference_image")
  ],
  missing: ["seconds"]
})

const proposers = { chat: proposeChat, image: proposeImage, video: proposeVideo } as const

/** Fails with why there is none. */
export const proposeEntry: Propose = (id, listed, fed, sellers, entries) => {
  if (fed.makes !== undefined) return Either.left(`its name says that it makes ${fed.makes}`)
  if (fed.surface === undefined) return Either.left("it is of a kind that the gateway does not sell")
  if (fed.otherCharge !== undefined)
    return Either.left(`the feed prices it ${fed.otherCharge}, which a catalog cannot state`)
  return proposers[fed.surface](id, listed, fed, sellers, entries)
}
