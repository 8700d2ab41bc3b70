import { Predicate } from "effect"
import type { ChatEvent, Tool } from "../../domain/Chat.ts"
import { argumentsText, unreadableArguments } from "../chat/AnswerReaders.ts"
import { type StreamedCall, StreamedCalls } from "../chat/CallArguments.ts"
import type { StreamOutcome } from "../chat/WireStream.ts"
import { asFields, asText } from "../client/JsonFields.ts"

interface Call {
  readonly call: StreamedCall
  /** Fragments without an index refer to their call by this id. */
  sentId: string | undefined
  readonly index: unknown
  /** Whether an earlier call has the same id. */
  readonly isRepeated: boolean
  name: string
  hasFullName: boolean
  /** Arguments received before the call was announced. */
  readonly pendingArguments: Array<string>
}

interface Fragment {
  readonly index: unknown
  readonly id: string | undefined
  /** Empty if the fragment has none. */
  readonly name: string
  readonly text: string
}

const beginsObject = (text: string): boolean => /^\s*\{/.test(text)

const isBlank = (text: string): boolean => text.trim() === ""

/** Matches tool names, which providers may send in pieces. */
const makeNames = (tools: ReadonlyArray<Tool>) => {
  const isKnown = (name: string) => tools.some((tool) => tool.function.name === name)
  /** Whether a longer tool name starts with this one. */
  const canContinue = (name: string) =>
    tools.some(({ function: { name: fullName } }) => fullName.length > name.length && fullName.startsWith(name))
  const isPrefixOfKnown = (name: string) => isKnown(name) || canContinue(name)
  /** Appends a piece. Some providers repeat the name, or its first pieces, with every piece. */
  const append = (name: string, piece: string) =>
    !isPrefixOfKnown(name + piece) && piece.startsWith(name) ? piece : name + piece
  /** Whether the piece may belong to the name, instead of being the name of another call. */
  const canBelong = (name: string, piece: string) =>
    isPrefixOfKnown(name + piece) || piece.startsWith(name) || !(isKnown(name) && isKnown(piece))
  return { isKnown, canContinue, append, canBelong }
}

const continuesCall = ({ call }: Call, { text }: Fragment): boolean =>
  !call.isEmpty && !call.isComplete && !isBlank(text) && !beginsObject(text)

/**
 * Whether arguments without a name belong to the call. Their id and index don't count, as some providers change them
 * per piece.
 */
const canAppend = (call: Call | undefined, { text }: Fragment): call is Call =>
  call !== undefined && text !== "" && (isBlank(text) || !call.call.isComplete)

/**
 * Providers count calls from 0, repeat one index, or send none. A name with a new id or a new index opens a call.
 * Pieces with an unknown index belong to the open call.
 */
export const makeCallDecoder = (newId: () => string, tools: ReadonlyArray<Tool>) => {
  const calls = new StreamedCalls()
  const names = makeNames(tools)
  const callsBySentIndex = new Map<unknown, Call>()
  const callsBySentId = new Map<string, Call>()
  const unannouncedCalls = new Set<Call>()
  let lastCall: Call | undefined

  /** Whether a named fragment, without another id, belongs to the call at its index. */
  const belongsToCall = (current: Call, { name, text }: Fragment): boolean => {
    if (!current.call.isOpen) return names.canBelong(current.name, name)
    if (name !== current.name && names.isKnown(name)) return false
    return !current.call.isComplete || isBlank(text) || current.call.hasArguments(text)
  }

  const findNamed = (indexedCall: Call | undefined, fragment: Fragment): Call | undefined => {
    if (indexedCall !== undefined) return belongsToCall(indexedCall, fragment) ? indexedCall : undefined
    if (fragment.index !== undefined || lastCall === undefined) return undefined
    const isInPieces =
      !lastCall.call.isOpen && !names.isKnown(lastCall.name) && names.canBelong(lastCall.name, fragment.name)
    return isInPieces || (lastCall.name === fragment.name && continuesCall(lastCall, fragment)) ? lastCall : undefined
  }

  const findUnnamed = (indexedCall: Call | undefined, fragment: Fragment): Call | undefined => {
    if (fragment.index === undefined) return lastCall
    const { text } = fragment
    if (indexedCall !== undefined)
      return lastCall !== undefined && indexedCall.call.isComplete && continuesCall(lastCall, fragment)
        ? lastCall
        : indexedCall
    if (lastCall === undefined) return undefined
    return !lastCall.call.isComplete || isBlank(text) || lastCall.call.hasArguments(text) ? lastCall : undefined
  }

  const findById = (id: string, indexedCall: Call | undefined, fragment: Fragment): Call | undefined => {
    const isNamed = fragment.name !== ""
    if (indexedCall?.sentId === id) return indexedCall
    const callWithId = callsBySentId.get(id)
    if (callWithId !== undefined) {
      const isNext =
        isNamed && indexedCall === undefined && fragment.index !== undefined && callWithId.index !== undefined
      return isNext && !continuesCall(callWithId, fragment) ? undefined : callWithId
    }
    if (!isNamed) return indexedCall ?? (canAppend(lastCall, fragment) ? lastCall : undefined)
    if (indexedCall === undefined) return undefined
    const isLate = indexedCall.sentId === undefined && belongsToCall(indexedCall, fragment)
    return isLate || (indexedCall.name === fragment.name && continuesCall(indexedCall, fragment))
      ? indexedCall
      : undefined
  }

  const findCall = (fragment: Fragment): Call | undefined => {
    const { id, index, name } = fragment
    const indexedCall = index === undefined ? undefined : callsBySentIndex.get(index)
    if (id !== undefined) return findById(id, indexedCall, fragment)
    return name === "" ? findUnnamed(indexedCall, fragment) : findNamed(indexedCall, fragment)
  }

  const announce = (current: Call, out: Array<ChatEvent>): StreamOutcome => {
    unannouncedCalls.delete(current)
    const id = (current.isRepeated ? undefined : current.sentId) ?? newId()
    const [first = "", ...more] = current.pendingArguments
    let error = calls.open(current.call, id, current.name, first, out)
    for (const piece of more) error ??= calls.append(current.call, piece, out)
    return error
  }

  /** Announces calls in order, as far as their names are complete. */
  const announceReady = (out: Array<ChatEvent>): StreamOutcome => {
    for (const waitingCall of unannouncedCalls) {
      if (!waitingCall.hasFullName) return undefined
      const error = announce(waitingCall, out)
      if (error !== undefined) return error
    }
    return undefined
  }

  const begin = ({ id, index }: Fragment): Call => {
    for (const waitingCall of unannouncedCalls) waitingCall.hasFullName ||= names.isKnown(waitingCall.name)
    lastCall = {
      call: calls.begin(),
      sentId: id,
      index,
      isRepeated: callsBySentId.has(id ?? ""),
      name: "",
      hasFullName: false,
      pendingArguments: []
    }
    if (index !== undefined) callsBySentIndex.set(index, lastCall)
    if (id !== undefined) callsBySentId.set(id, lastCall)
    unannouncedCalls.add(lastCall)
    return lastCall
  }

  /** A name that may continue is complete once arguments arrive. */
  const isFullName = ({ pendingArguments, name }: Call, isNamed: boolean): boolean =>
    name !== "" && (!names.canContinue(name) || (pendingArguments.length > 0 && (!isNamed || names.isKnown(name))))

  const takeFragment = (fragment: Fragment, out: Array<ChatEvent>): StreamOutcome => {
    const { id, name, text } = fragment
    const current = findCall(fragment) ?? begin(fragment)
    if (current.call.isOpen) return calls.append(current.call, text, out)
    if (current.sentId === undefined && id !== undefined) {
      current.sentId = id
      callsBySentId.set(id, current)
    }
    if (name !== "" && !current.hasFullName) current.name = names.append(current.name, name)
    if (!isBlank(text)) current.pendingArguments.push(text)
    current.hasFullName ||= isFullName(current, name !== "")
    return announceReady(out)
  }

  const take = (delta: unknown, out: Array<ChatEvent>): StreamOutcome => {
    if (!Predicate.isRecord(delta)) return undefined
    const part = asFields(delta.function)
    const text = argumentsText(part.arguments)
    if (text === undefined) return unreadableArguments
    const index = delta.index ?? undefined
    return takeFragment({ index, id: asText(delta.id) || undefined, name: asText(part.name), text }, out)
  }

  const close = (out: Array<ChatEvent>): StreamOutcome => {
    for (const waitingCall of unannouncedCalls) waitingCall.hasFullName = waitingCall.name !== ""
    return announceReady(out) ?? calls.close(out)
  }

  return { take, close, endState: () => calls.endState }
}
