import { createHash } from "node:crypto"
import { list, record, records, string } from "../../contracts/ChatHosts.ts"

type Fields = Record<PropertyKey, unknown>

/** Simulates how Anthropic's Messages API counts prompts with cached prefixes. */
export interface CountedPrompt {
  readonly prompt: number
  readonly cached: number
  readonly cacheWrite: number
  readonly cacheWriteHour: number
}

const minute = 60_000
const lifetimes: Readonly<Record<string, number>> = { "5m": 5 * minute, "1h": 60 * minute }
const mostMarks = 4
/** The number of blocks that the lookup checks backwards from a breakpoint, including its own. */
const lookback = 20

/** Each word counts as a token. */
export const wordsIn = (value: unknown): number => {
  if (typeof value === "string") return value.split(/\s+/).filter((word) => word !== "").length
  if (typeof value !== "object" || value === null) return 0
  return Object.entries(value)
    .filter(([key]) => key !== "type" && key !== "cache_control")
    .reduce((sum, [, member]) => sum + wordsIn(member), 0)
}

const blocksOf = (content: unknown): ReadonlyArray<Fields> =>
  typeof content === "string" ? [{ type: "text", text: content }] : records(content)

interface Position {
  readonly key: string
  readonly tokens: number
  readonly mark: Fields | undefined
}

const withoutMark = (block: Fields): Fields => ({ ...block, cache_control: undefined })

const positionsIn = (body: Fields): ReadonlyArray<Position> => {
  const { messages, model, system, thinking, tool_choice, tools } = body
  const blocks = [
    ...records(tools).map((block) => ({ place: "tool", block })),
    ...blocksOf(system).map((block) => ({ place: "system", block })),
    // Thinking and tool choice are part of the messages' prefix.
    ...records(messages).flatMap(({ content, role }, at) =>
      blocksOf(content).map((block) => ({ place: JSON.stringify([at, role, thinking, tool_choice]), block }))
    )
  ]
  let key = string(model)
  let tokens = 0
  return blocks.map(({ block, place }) => {
    key = createHash("sha256")
      .update(`${key} ${place} ${JSON.stringify(withoutMark(block))}`)
      .digest("hex")
    tokens += wordsIn(block)
    return { key, tokens, mark: block.cache_control === undefined ? undefined : record(block.cache_control) }
  })
}

const ttlOf = ({ ttl = "5m" }: Fields): string => string(ttl)

/** Similar to the vendor's error messages. */
const refusalOf = (body: Fields, marks: ReadonlyArray<Fields>): string | undefined => {
  if (marks.length > mostMarks) {
    return `A maximum of 4 blocks with cache_control may be provided. Found ${marks.length}.`
  }
  for (const { type, ttl, ...extra } of marks) {
    if (type !== "ephemeral") return "cache_control.type: Input should be 'ephemeral'"
    if (ttl !== undefined && lifetimes[string(ttl)] === undefined)
      return "cache_control.ttl: Input should be '5m' or '1h'"
    if (Object.keys(extra).length > 0) return "cache_control: Extra inputs are not permitted"
  }
  const ttls = marks.map(ttlOf)
  if (ttls.lastIndexOf("1h") > ttls.indexOf("5m") && ttls.includes("5m")) {
    return "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."
  }
  const blocks = [...blocksOf(body.system), ...records(body.messages).flatMap(({ content }) => blocksOf(content))]
  const isWrong = blocks.some(
    ({ cache_control, text, type }) =>
      cache_control !== undefined && (type === "thinking" || (type === "text" && string(text).trim() === ""))
  )
  return isWrong ? "cache_control cannot be set for empty text blocks or thinking" : undefined
}

/** Prefixes are written at breakpoints, found by the lookup of later ones, and expire. */
export class PromptCache {
  #now = 0
  readonly #leastTokens: number
  readonly #entries = new Map<string, { readonly lifetime: number; expires: number }>()

  /** Shorter prefixes are not cached. */
  constructor(leastTokens: number) {
    this.#leastTokens = leastTokens
  }

  pass(minutes: number): void {
    this.#now += minutes * minute
  }

  /** Returns the counts, or the vendor's refusal. */
  take(input: unknown): CountedPrompt | string {
    const body = record(input)
    const positions = positionsIn(body)
    const marked = positions.flatMap(({ mark }, at) => (mark === undefined ? [] : [{ at, ttl: ttlOf(mark) }]))
    const refusal = refusalOf(body, list(positions.flatMap(({ mark }) => mark ?? [])).map(record))
    if (refusal !== undefined) return refusal

    const found = Math.max(-1, ...marked.map(({ at }) => this.#find(positions, at)))
    const tokensAt = (at: number) => positions[at]?.tokens ?? 0
    const written = marked.filter(({ at }) => at > found && tokensAt(at) >= this.#leastTokens)
    for (const { at, ttl } of written) {
      const lifetime = lifetimes[ttl] ?? 0
      this.#entries.set(positions[at]?.key ?? "", { lifetime, expires: this.#now + lifetime })
    }
    const cached = tokensAt(found)
    const end = (of: typeof written) => Math.max(cached, ...of.map(({ at }) => tokensAt(at)))
    return {
      prompt: tokensAt(positions.length - 1),
      cached,
      cacheWrite: end(written) - cached,
      cacheWriteHour: end(written.filter(({ ttl }) => ttl === "1h")) - cached
    }
  }

  /** Reading extends the lifetime. */
  #find(positions: ReadonlyArray<Position>, from: number): number {
    for (let at = from; at > from - lookback && at >= 0; at--) {
      const entry = this.#entries.get(positions[at]?.key ?? "")
      if (entry === undefined || entry.expires <= this.#now) continue
      entry.expires = this.#now + entry.lifetime
      return at
    }
    return -1
  }
}
