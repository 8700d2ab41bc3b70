import { Record } from "effect"

/** A kind of tokens with its own price. */
interface TokenKind<Usage extends string, Name extends string, Exact extends string> {
  /** The field of `Usage` that counts its tokens. */
  readonly usage: Usage
  /** The name in stored price lists; with `_per_1m_usd` also in the catalog. */
  readonly name: Name
  /** The field with the exact price in the model list. */
  readonly exact: Exact
  /** The name in reports. */
  readonly unit: string
  /** The heading in the price table at `/docs`. */
  readonly heading: string
}

const baseKind = <const Usage extends string, const Name extends string, const Exact extends string>(
  kind: TokenKind<Usage, Name, Exact>
) => ({ ...kind, price: `${kind.name}_per_1m_usd` as const })

/** The kinds for which every model has a price. */
export const baseKinds = {
  prompt: baseKind({
    usage: "prompt",
    name: "prompt",
    exact: "prompt",
    unit: "prompt",
    heading: "Prompt, 1 million tokens"
  }),
  completion: baseKind({
    usage: "completion",
    name: "completion",
    exact: "completion",
    unit: "completion",
    heading: "Output with reasoning, 1 million tokens"
  })
}

interface Part {
  /** The parent kind, whose count includes this one. If the part has no price, the parent's applies. */
  readonly of: "prompt" | "completion" | "cacheWrite"
  /** Margin reports omit it if it has the parent's price. */
  readonly isRare?: boolean
  /** Describes the price to customers. */
  readonly description: string
}

const partKind = <const Usage extends string, const Name extends string, const Exact extends string>(
  kind: TokenKind<Usage, Name, Exact> & Part
) => ({ ...kind, price: `${kind.name}_per_1m_usd` as const })

/** Each part comes after its parent, and splitting relies on that order. Parts of the same parent share no tokens. */
export const partKinds = {
  cachedPrompt: partKind({
    of: "prompt",
    usage: "cached",
    name: "cached_prompt",
    exact: "input_cache_read",
    unit: "cached prompt",
    heading: "Prompt read from a cache",
    description: "Prompt tokens read from the provider's cache."
  }),
  cacheWrite: partKind({
    of: "prompt",
    usage: "cacheWrite",
    name: "cache_write",
    exact: "input_cache_write",
    unit: "cache write",
    heading: "Prompt written to a cache",
    description: "Prompt tokens written to the provider's cache."
  }),
  cacheWriteHour: partKind({
    of: "cacheWrite",
    usage: "cacheWriteHour",
    name: "cache_write_1h",
    exact: "input_cache_write_1h",
    unit: "one-hour cache write",
    heading: "Prompt written to a cache for an hour",
    description: "Prompt tokens written to the cache for an hour.",
    isRare: true
  })
}

export const tokenKinds = { ...baseKinds, ...partKinds }

export type PartName = keyof typeof partKinds
export type TokenKindName = keyof typeof tokenKinds
/** The fields of `Usage` that count tokens with their own price. */
export type TokenCount = (typeof tokenKinds)[TokenKindName]["usage"]
const parts = Record.toEntries(partKinds)
const partsByName: Partial<Record<TokenKindName, Part>> = partKinds

/** Returns the kind that includes `kind`. */
export const parentOf = (kind: TokenKindName): TokenKindName | undefined => partsByName[kind]?.of

/** Like `parentOf`, but returns undefined for kinds that are not rare. */
export const parentOfRare = (kind: TokenKindName): TokenKindName | undefined =>
  partsByName[kind]?.isRare === true ? parentOf(kind) : undefined

/** Returns the direct parts of `kind`. */
export const partsOf = (kind: TokenKindName): ReadonlyArray<PartName> =>
  parts.flatMap(([name, part]) => (part.of === kind ? [name] : []))

/** Returns `kind` and all kinds within it. */
export const kindsWithin = (kind: TokenKindName): ReadonlyArray<TokenKindName> => [
  kind,
  ...partsOf(kind).flatMap(kindsWithin)
]

/** All kinds. Each part comes after its parent. */
export const orderedKinds: ReadonlyArray<TokenKindName> = Record.keys(baseKinds).flatMap(kindsWithin)
