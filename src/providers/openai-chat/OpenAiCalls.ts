import { Predicate } from "effect"
import type { ChatEvent, Tool } from "../../domain/Chat.ts"
import { argumentsText, unreadableArguments } from "../chat/Answer.ts"
import { type StreamedCall, StreamedCalls } from "../chat/CallArguments.ts"
import type { StreamOutcome } from "../chat/ChatStream.ts"
import { asFields, asText } from "../client/Json.ts"

interface Call {
  readonly call: StreamedCall
  /** Fragments without an index find their call by the host's id. */
  hostId: string | undefined
  readonly index: unknown
  /** Another call came with the same id. */
  readonly isRepeated: boolean
  name: string
  hasWholeName: boolean
  /** Arguments that came before the call was announced. */
  readonly early: Array<string>
}

interface Fragment {
  readonly index: unknown
  readonly id: string | undefined
  /** Empty: the call already has a name. */
  readonly name: string
  readonly text: string
}

/** Whether a text begins an object, as the arguments of a call do. */
const beginsObject = (text: string): boolean => /^\s*\{/.test(text)

const isBlank = (text: string): boolean => text.trim() === ""

/** The names of a request's tools, which hosts may send in pieces. */
const makeNames = (tools: ReadonlyArray<Tool>) => {
  const isKnown = (name: string) => tools.some((tool) => tool.function.name === name)
  /** Whether the name is the start of a longer one. */
  const mayGoOn = (name: string) =>
    tools.some(({ function: { name: whole } }) => whole.length > name.length && whole.startsWith(name))
  const fits = (name: string) => isKnown(name) || mayGoOn(name)
  /** Some hosts repeat a name, or its first pieces, with every piece. */
  const join = (name: string, piece: string) => (!fits(name + piece) && piece.startsWith(name) ? piece : name + piece)
  const belongs = (name: string, piece: string) =>
    fits(name + piece) || piece.startsWith(name) || !(isKnown(name) && isKnown(piece))
  return { isKnown, mayGoOn, join, belongs }
}

/** Whether a fragment continues incomplete arguments. */
const goesOn = ({ call }: Call, { text }: Fragment): boolean =>
  !call.isEmpty && !call.isComplete && !isBlank(text) && !beginsObject(text)

/** Whether arguments without a name are of a call, whatever id and index they have: some hosts give each piece new ones. */
const canTake = (found: Call | undefined, { text }: Fragment): found is Call =>
  found !== undefined && text !== "" && (isBlank(text) || !found.call.isComplete)

/**
 * Hosts count calls from 0, repeat one index, or send none: a name with a new id or a new index opens a call. Pieces under
 * an index that no call has belong to the open call.
 */
export const makeCallDecoder = (newId: () => string, tools: ReadonlyArray<Tool>) => {
  const calls = new StreamedCalls()
  const names = makeNames(tools)
  const byHostIndex = new Map<unknown, Call>()
  const byHostId = new Map<string, Call>()
  const waiting = new Set<Call>()
  let last: Call | undefined

  /** Whether a fragment with a name belongs to the call of its index. It has no other id. */
  const isOf = (found: Call, { name, text }: Fragment): boolean => {
    if (!found.call.isOpen) return names.belongs(found.name, name)
    if (name !== found.name && names.isKnown(name)) return false
    return !found.call.isComplete || isBlank(text) || found.call.repeats(text)
  }

  const findNamed = (indexed: Call | undefined, fragment: Fragment): Call | undefined => {
    if (indexed !== undefined) return isOf(indexed, fragment) ? indexed : undefined
    if (fragment.index !== undefined || last === undefined) return undefined
    const isInPieces = !last.call.isOpen && !names.isKnown(last.name) && names.belongs(last.name, fragment.name)
    return isInPieces || (last.name === fragment.name && goesOn(last, fragment)) ? last : undefined
  }

  const findUnnamed = (indexed: Call | undefined, fragment: Fragment): Call | undefined => {
    if (fragment.index === undefined) return last
    const { text } = fragment
    if (indexed !== undefined)
      return last !== undefined && indexed.call.isComplete && goesOn(last, fragment) ? last : indexed
    if (last === undefined) return undefined
    return !last.call.isComplete || isBlank(text) || last.call.repeats(text) ? last : undefined
  }

  const findById = (id: string, indexed: Call | undefined, fragment: Fragment): Call | undefined => {
    const isNamed = fragment.name !== ""
    if (indexed?.hostId === id) return indexed
    const known = byHostId.get(id)
    if (known !== undefined) {
      const isNext = isNamed && indexed === undefined && fragment.index !== undefined && known.index !== undefined
      return isNext && !goesOn(known, fragment) ? undefined : known
    }
    if (!isNamed) return indexed ?? (canTake(last, fragment) ? last : undefined)
    if (indexed === undefined) return undefined
    const isLate = indexed.hostId === undefined && isOf(indexed, fragment)
    return isLate || (indexed.name === fragment.name && goesOn(indexed, fragment)) ? indexed : undefined
  }

  const find = (fragment: Fragment): Call | undefined => {
    const { id, index, name } = fragment
    const indexed = index === undefined ? undefined : byHostIndex.get(index)
    if (id !== undefined) return findById(id, indexed, fragment)
    return name === "" ? findUnnamed(indexed, fragment) : findNamed(indexed, fragment)
  }

  const announce = (found: Call, out: Array<ChatEvent>): StreamOutcome => {
    waiting.delete(found)
    const id = (found.isRepeated ? undefined : found.hostId) ?? newId()
    const [first = "", ...more] = found.early
    let broken = calls.open(found.call, id, found.name, first, out)
    for (const piece of more) broken ??= calls.append(found.call, piece, out)
    return broken
  }

  /** Calls are announced in their order. */
  const announceWhole = (out: Array<ChatEvent>): StreamOutcome => {
    for (const found of waiting) {
      if (!found.hasWholeName) return undefined
      const broken = announce(found, out)
      if (broken !== undefined) return broken
    }
    return undefined
  }

  const begin = ({ id, index }: Fragment): Call => {
    for (const found of waiting) found.hasWholeName ||= names.isKnown(found.name)
    last = {
      call: calls.begin(),
      hostId: id,
      index,
      isRepeated: byHostId.has(id ?? ""),
      name: "",
      hasWholeName: false,
      early: []
    }
    if (index !== undefined) byHostIndex.set(index, last)
    if (id !== undefined) byHostId.set(id, last)
    waiting.add(last)
    return last
  }

  /** A name that may continue is complete once arguments come. */
  const isWholeName = ({ early, name }: Call, isNamed: boolean): boolean =>
    name !== "" && (!names.mayGoOn(name) || (early.length > 0 && (!isNamed || names.isKnown(name))))

  const takeFragment = (fragment: Fragment, out: Array<ChatEvent>): StreamOutcome => {
    const { id, name, text } = fragment
    const found = find(fragment) ?? begin(fragment)
    if (found.call.isOpen) return calls.append(found.call, text, out)
    if (found.hostId === undefined && id !== undefined) {
      found.hostId = id
      byHostId.set(id, found)
    }
    if (name !== "" && !found.hasWholeName) found.name = names.join(found.name, name)
    if (!isBlank(text)) found.early.push(text)
    found.hasWholeName ||= isWholeName(found, name !== "")
    return announceWhole(out)
  }

  const take = (given: unknown, out: Array<ChatEvent>): StreamOutcome => {
    if (!Predicate.isRecord(given)) return undefined
    const part = asFields(given.function)
    const text = argumentsText(part.arguments)
    if (text === undefined) return unreadableArguments
    const index = given.index ?? undefined
    return takeFragment({ index, id: asText(given.id) || undefined, name: asText(part.name), text }, out)
  }

  const close = (out: Array<ChatEvent>): StreamOutcome => {
    for (const found of waiting) found.hasWholeName = found.name !== ""
    return announceWhole(out) ?? calls.close(out)
  }

  return { take, close, ended: () => calls.ended }
}
