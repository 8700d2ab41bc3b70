import { list, record } from "../contracts/ChatHosts.ts"
import type { Dialect } from "../harness/upstream/Dialects.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"

type Fields = Record<PropertyKey, unknown>

/** Calls and results of a request in their order. */
interface Tools {
  readonly calls: ReadonlyArray<string>
  readonly results: ReadonlyArray<string>
  /** What the vendor would not take of them. */
  readonly wrong: ReadonlyArray<string>
}

const text = (value: unknown) => (typeof value === "string" ? value : "")
const ids = (fields: ReadonlyArray<unknown>, key: string) => fields.map((one) => text(record(one)[key]))
const repeated = (all: ReadonlyArray<string>) => all.filter((id, index) => all.indexOf(id) !== index)

/** Every call has to be answered in the turn that follows it, and nothing else may be answered there. */
const unanswered = (calls: ReadonlyArray<string>, results: ReadonlyArray<string>) =>
  calls.toSorted().join() === results.toSorted().join() ? [] : [`${calls.join()} answered by ${results.join()}`]

const tooLong = (all: ReadonlyArray<string>, most: number) =>
  all.filter((id) => id.length > most || id === "").map((id) => `an id of ${id.length} characters`)

const anthropic = (body: Fields): Tools => {
  const turns = list(body.messages).map(record)
  const blocks = (turn: unknown, type: string) =>
    list(record(turn).content).filter((block) => record(block).type === type)
  const calls = turns.flatMap((turn) => ids(blocks(turn, "tool_use"), "id"))
  const results = turns.flatMap((turn) => ids(blocks(turn, "tool_result"), "tool_use_id"))
  return {
    calls,
    results,
    wrong: [
      ...[...calls, ...results].filter((id) => !/^[a-zA-Z0-9_-]{1,64}$/.test(id)).map((id) => `the id ${id}`),
      ...repeated(calls).map((id) => `the id ${id} twice`),
      ...turns.flatMap((turn, at) => {
        const made = ids(blocks(turn, "tool_use"), "id")
        return made.length === 0 ? [] : unanswered(made, ids(blocks(turns[at + 1], "tool_result"), "tool_use_id"))
      }),
      ...turns.flatMap(({ role }, at) => (role === turns[at + 1]?.role ? [`two turns of the ${text(role)}`] : []))
    ]
  }
}

const responses = (body: Fields): Tools => {
  const items = list(body.input).map(record)
  const calls = items.filter(({ type }) => type === "function_call")
  const results = items.filter(({ type }) => type === "function_call_output")
  const [made, answered] = [ids(calls, "call_id"), ids(results, "call_id")]
  const foreign = calls.filter(({ id }) => id !== undefined).map(() => "a call with an item's id")
  return {
    calls: made,
    results: answered,
    wrong: [...tooLong([...made, ...answered], 64), ...unanswered(made, answered), ...foreign]
  }
}

const chat = (body: Fields): Tools => {
  const messages = list(body.messages).map(record)
  const calls = messages.flatMap(({ tool_calls: made }) => ids(list(made), "id"))
  const results = ids(
    messages.filter(({ role }) => role === "tool"),
    "tool_call_id"
  )
  const wrong = messages.flatMap(({ tool_calls: made }, at) => {
    const rest = messages.slice(at + 1)
    const end = rest.findIndex(({ role }) => role !== "tool")
    const answers = ids(end < 0 ? rest : rest.slice(0, end), "tool_call_id")
    return list(made).length === 0 ? [] : unanswered(ids(list(made), "id"), answers)
  })
  return { calls, results, wrong: [...tooLong([...calls, ...results], 40), ...wrong] }
}

const gemini = (body: Fields): Tools => {
  const contents = list(body.contents).map((content) => list(record(content).parts).map(record))
  const of = (parts: ReadonlyArray<Fields> = [], kind: "functionCall" | "functionResponse") =>
    parts.flatMap((part) => (part[kind] === undefined ? [] : [record(part[kind])]))
  const lastSaid = contents.findLastIndex((parts) => parts.some(({ text }) => text !== undefined))
  const named = (one: Fields) => `${text(one.id)} ${text(one.name)}`
  return {
    calls: contents.flatMap((parts) => ids(of(parts, "functionCall"), "id")),
    results: contents.flatMap((parts) => ids(of(parts, "functionResponse"), "id")),
    wrong: contents.flatMap((parts, at) => {
      const calls = of(parts, "functionCall")
      if (calls.length === 0) return []
      const first = parts.find(({ functionCall }) => functionCall !== undefined)
      const unsigned =
        at > lastSaid && typeof first?.thoughtSignature !== "string" ? ["a call without a signature"] : []
      return [...unanswered(calls.map(named), of(contents[at + 1], "functionResponse").map(named)), ...unsigned]
    })
  }
}

const rules: Readonly<Record<string, (body: Fields) => Tools>> = {
  anthropic,
  gemini,
  "openai-responses": responses,
  "openai-chat": chat
}

export const toolsIn = ({ name }: Dialect, body: unknown): Tools =>
  rules[name]?.(record(body)) ?? { calls: [], results: [], wrong: ["an unknown dialect"] }

/** Meets a request as its vendor would: what breaks the rules for calls and results is refused. */
export const strict =
  (dialect: Dialect, reply: Fake.Reply): Fake.Reply =>
  (response, received) => {
    const { wrong } = toolsIn(dialect, received.body)
    const refused = Fake.json(400, { error: { type: "invalid_request_error", message: wrong.join("; ") } })
    return (wrong.length === 0 ? reply : refused)(response, received)
  }
