/** What vendors refuse of turns, ids, cache marks and sampling, as public reports quote it. */

import { Predicate } from "effect"
import { list, record, records, string } from "../contracts/ChatHosts.ts"
import type { ChatWireName as Wire } from "./Case.ts"

type Fields = Record<PropertyKey, unknown>
type Rule = (body: Fields) => ReadonlyArray<string>
type Rules = Readonly<Record<string, Partial<Record<Wire, Rule>>>>

const isBlank = (text: unknown): boolean => typeof text === "string" && text.trim() === ""

const isObjectText = (text: unknown): boolean => {
  try {
    return Predicate.isRecord(JSON.parse(string(text)))
  } catch {
    return false
  }
}

const none = (problem: string, isFound: boolean): ReadonlyArray<string> => (isFound ? [problem] : [])

/** The calls of a chat's history, and the results that directly follow each of their messages. */
const chatCalls = (messages: ReadonlyArray<Fields>) =>
  messages.flatMap(({ tool_calls }, at) => {
    const calls = records(tool_calls)
    if (calls.length === 0) return []
    const after = messages.slice(at + 1)
    const end = after.findIndex(({ role }) => role !== "tool")
    const results = (end === -1 ? after : after.slice(0, end)).map(({ tool_call_id }) => string(tool_call_id))
    return [{ calls, results }]
  })

const chatResults: Rule = ({ messages: given }) => {
  const messages = records(given)
  const turns = chatCalls(messages)
  const known = turns.flatMap(({ calls, results }) => {
    const ids = calls.map(({ id }) => string(id))
    return results.filter((id) => ids.includes(id))
  })
  const results = messages.filter(({ role }) => role === "tool").length
  return [
    ...turns.flatMap(({ calls, results: found }) =>
      calls
        .filter(({ id }) => !found.includes(string(id)))
        .map(({ id }) => `'tool_calls' must be followed by tool messages: no response for ${string(id)}`)
    ),
    ...none(
      "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
      known.length < results
    )
  ]
}

const isMarked = (part: Fields) => part.cache_control !== undefined || part.prompt_cache_breakpoint !== undefined

const chatContent: Rule = ({ messages }) =>
  records(messages)
    .filter(({ role }) => role !== "user")
    .filter(({ content }) => Array.isArray(content) && !records(content).some(isMarked))
    .map(
      ({ role }) =>
        `messages: data did not match any variant of untagged enum: ${string(role)} content, expected a string`
    )

const chatEmpty: Rule = ({ messages }) =>
  records(messages)
    .filter(({ role, tool_calls }) => role === "assistant" && records(tool_calls).length === 0)
    .filter(
      ({ content }) =>
        content === null ||
        content === undefined ||
        isBlank(content) ||
        (list(content).length === 0 && Array.isArray(content))
    )
    .map(() => "the message with role 'assistant' must not be empty")

const chatSystem: Rule = ({ messages }) => {
  const roles = records(messages).map(({ role }) => role)
  const leading = roles.findIndex((role) => role !== "system")
  return none(
    "Only one system message is allowed at the beginning.",
    leading > 1 || (leading === -1 && roles.length > 1)
  )
}

const chatArguments: Rule = ({ messages }) =>
  records(messages).flatMap(({ tool_calls }) =>
    records(tool_calls).flatMap(({ function: called }) =>
      isObjectText(record(called).arguments)
        ? []
        : [`invalid function arguments json: ${string(record(called).arguments)}`]
    )
  )

const responsesItems = (body: Fields, type: string) => records(body.input).filter((item) => item.type === type)

const responsesResults: Rule = (body) => {
  const outputs = responsesItems(body, "function_call_output").map(({ call_id }) => string(call_id))
  const calls = responsesItems(body, "function_call").map(({ call_id }) => string(call_id))
  return [
    ...calls.filter((id) => !outputs.includes(id)).map((id) => `No tool output found for function call ${id}.`),
    ...outputs
      .filter((id) => !calls.includes(id))
      .map((id) => `No tool call found for function call output with call_id ${id}.`)
  ]
}

const responsesParts: Rule = ({ input }) =>
  records(input).flatMap(({ content, role }) =>
    records(content)
      .filter(({ type }) => (role === "assistant") !== (type === "output_text" || type === "refusal"))
      .map(({ type }) => `Invalid value: '${string(type)}' in a message of ${string(role)}.`)
  )

const responsesIds: Rule = ({ input }) =>
  records(input)
    .filter(({ call_id }) => typeof call_id === "string" && call_id.length > 64)
    .map(
      ({ call_id }) => `Invalid 'input[].call_id': string too long, got a string with length ${string(call_id).length}.`
    )

const blocksOf = ({ content }: Fields): ReadonlyArray<Fields> =>
  typeof content === "string" ? [{ type: "text", text: content }] : records(content)

const anthropicResults: Rule = ({ messages: given }) => {
  const messages = records(given)
  const uses = messages.map((message) => blocksOf(message).filter(({ type }) => type === "tool_use"))
  const results = messages.map((message) => blocksOf(message).filter(({ type }) => type === "tool_result"))
  const ids = uses.flat().map(({ id }) => string(id))
  return [
    ...ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `\`tool_use\` ids must be unique: ${id}`),
    ...ids.filter((id) => !/^[a-zA-Z0-9_-]+$/.test(id)).map((id) => `tool_use.id: String should match pattern: ${id}`),
    ...messages.flatMap((message, at) => {
      const called = (uses[at - 1] ?? []).map(({ id }) => string(id))
      const answered = (results[at] ?? []).map(({ tool_use_id }) => string(tool_use_id))
      const first = blocksOf(message).findIndex(({ type }) => type !== "tool_result")
      return [
        ...called
          .filter((id) => !answered.includes(id))
          .map((id) => `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${id}.`),
        ...answered
          .filter((id) => !called.includes(id))
          .map((id) => `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}.`),
        ...answered
          .filter((id, index) => answered.indexOf(id) !== index)
          .map((id) => `each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`),
        ...none("tool_result blocks must come first", first !== -1 && first < answered.length)
      ]
    }),
    ...none("`tool_use` ids were found without `tool_result` blocks", (uses.at(-1) ?? []).length > 0)
  ]
}

const anthropicTurns: Rule = ({ messages: given }) => {
  const messages = records(given)
  const last = messages.at(-1)
  const ending = last?.role === "assistant" ? blocksOf(last).at(-1) : undefined
  return [
    ...none("messages: at least one message is required", messages.length === 0),
    ...none('messages: first message must use the "user" role', messages.length > 0 && messages[0]?.role !== "user"),
    ...none(
      "messages: Unexpected role",
      messages.some(({ role }) => role !== "user" && role !== "assistant")
    ),
    ...none(
      "messages: all messages must have non-empty content",
      messages.some((message) => blocksOf(message).length === 0)
    ),
    ...none(
      "messages: text content blocks must contain non-whitespace text",
      messages.some((message) => blocksOf(message).some(({ text, type }) => type === "text" && isBlank(text)))
    ),
    ...none("final assistant content cannot end with trailing whitespace", /\s$/.test(string(ending?.text)))
  ]
}

const anthropicMarks: Rule = ({ messages, system, tools }) => {
  const nested = records(messages).flatMap(blocksOf)
  const all = [...records(tools), ...records(system), ...nested, ...nested.flatMap(({ content }) => records(content))]
  const marked = all.filter(isMarked)
  return [
    ...none(`A maximum of 4 blocks with cache_control may be provided. Found ${marked.length}.`, marked.length > 4),
    ...none(
      "cache_control cannot be set for empty text blocks",
      marked.some(({ text }) => isBlank(text))
    )
  ]
}

const anthropicThinking: Rule = ({ max_tokens, messages, thinking, tool_choice }) => {
  const { budget_tokens, type } = record(thinking)
  if (type !== "enabled" && type !== "adaptive") return []
  const forced = ["any", "tool"].includes(string(record(tool_choice).type))
  const turns = records(messages)
  const lastUser = turns.findLastIndex(
    (turn) => turn.role === "user" && !blocksOf(turn).some(({ type: kind }) => kind === "tool_result")
  )
  const [current] = turns.slice(lastUser + 1).filter(({ role }) => role === "assistant")
  const first = current === undefined ? undefined : blocksOf(current)[0]
  const begins = ["thinking", "redacted_thinking"].includes(string(first?.type))
  return [
    ...none("Thinking may not be enabled when tool_choice forces tool use.", forced),
    ...none("`max_tokens` must be greater than `thinking.budget_tokens`", Number(budget_tokens) >= Number(max_tokens)),
    ...none("thinking.budget_tokens: Input should be greater than or equal to 1024", Number(budget_tokens) < 1024),
    ...none(
      "Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
      type === "enabled" && first !== undefined && !begins
    )
  ]
}

const anthropicSampling: Rule = ({ stop_sequences, temperature, top_p }) => [
  ...none(
    "`temperature` and `top_p` cannot both be specified for this model.",
    temperature !== undefined && top_p !== undefined
  ),
  ...none("temperature: range: 0..1", Number(temperature) > 1),
  ...none("stop_sequences: each stop sequence must contain non-whitespace", list(stop_sequences).some(isBlank))
]

const partsOf = ({ parts }: Fields, kind: string) => records(parts).filter((part) => part[kind] !== undefined)

const geminiTurns: Rule = ({ contents: given }) => {
  const contents = records(given)
  return [
    ...none("contents is not specified", contents.length === 0),
    ...none(
      "contents.parts must not be empty",
      contents.some(({ parts }) => records(parts).length === 0)
    ),
    ...none(
      "Unable to submit request because it has an empty text parameter.",
      contents.some((content) => partsOf(content, "text").some(({ text }) => text === ""))
    ),
    ...none(
      "Please ensure that multiturn requests alternate and begin with a user role",
      contents[0]?.role === "model"
    ),
    ...none("Please ensure that the last turn is of the user", contents.at(-1)?.role === "model"),
    ...contents.flatMap((content, at) => {
      const before = contents[at - 1] ?? {}
      const calls = partsOf(content, "functionCall").length
      const called = partsOf(before, "functionCall").length
      const answered = partsOf(content, "functionResponse").length
      return [
        ...none(
          "a function call turn comes immediately after a user turn or a function response turn",
          calls > 0 && before.role === "model"
        ),
        ...none(
          "the number of function response parts is not equal to the number of function call parts",
          called !== answered
        )
      ]
    }),
    ...none(
      "the number of function response parts is not equal",
      partsOf(contents.at(-1) ?? {}, "functionCall").length > 0
    )
  ]
}

/** Rules that every host of a wire has. */
export const turnRules: Rules = {
  results: { "openai-chat": chatResults, "openai-responses": responsesResults, anthropic: anthropicResults },
  arguments: {
    "openai-chat": chatArguments,
    "openai-responses": (body) =>
      responsesItems(body, "function_call")
        .filter((call) => !isObjectText(call["arguments"]))
        .map((call) => `invalid function arguments json: ${string(call["arguments"])}`)
  },
  content: { "openai-chat": chatContent },
  empty: { "openai-chat": chatEmpty },
  system: { "openai-chat": chatSystem },
  parts: { "openai-responses": responsesParts },
  ids: { "openai-responses": responsesIds },
  least: {
    "openai-responses": ({ max_output_tokens: most }) =>
      none("Invalid 'max_output_tokens': integer below minimum value 16.", Number(most) < 16)
  },
  tools: {
    "openai-chat": ({ parallel_tool_calls, tool_choice, tools }) => [
      ...none("[] is too short - 'tools'", Array.isArray(tools) && tools.length === 0),
      ...none(
        "'tool_choice' is only allowed when 'tools' are specified",
        tools === undefined && tool_choice !== undefined
      ),
      ...none(
        "'parallel_tool_calls' is only allowed when 'tools' are specified",
        tools === undefined && parallel_tool_calls !== undefined
      )
    ]
  },
  turns: { anthropic: anthropicTurns, gemini: geminiTurns },
  marks: { anthropic: anthropicMarks },
  thinking: { anthropic: anthropicThinking },
  sampling: { anthropic: anthropicSampling }
}

/** Rules of some models and hosts, which a case demands. */
export const turnDemands: Rules = {
  "system first": {
    "openai-chat": ({ messages }) =>
      none(
        "System message must be at the beginning.",
        records(messages).some(({ role }, at) => role === "system" && at > 0)
      )
  },
  "ids of nine": {
    "openai-chat": ({ messages }) =>
      records(messages)
        .flatMap(({ tool_call_id, tool_calls }) => [
          ...(tool_call_id === undefined ? [] : [tool_call_id]),
          ...records(tool_calls).map(({ id }) => id)
        ])
        .filter((id) => !/^[a-zA-Z0-9]{9}$/.test(string(id)))
        .map((id) => `Tool call id was ${string(id)} but must be a-z, A-Z, 0-9, with a length of 9.`)
  },
  reasoning: {
    "openai-chat": ({ messages }) =>
      records(messages)
        .filter(
          ({ reasoning_content, tool_calls }) => records(tool_calls).length > 0 && typeof reasoning_content !== "string"
        )
        .map(() => "Missing `reasoning_content` field in the assistant message")
  },
  signatures: {
    gemini: ({ contents }) =>
      records(contents)
        .map((content) => partsOf(content, "functionCall"))
        .filter(([first]) => first !== undefined && typeof first.thoughtSignature !== "string")
        .map(() => "Function call is missing a thought_signature in functionCall parts.")
  }
}

export const rulesOn = (wire: Wire, rules: Rules): ReadonlyArray<readonly [name: string, rule: Rule]> =>
  Object.entries(rules).flatMap(([name, of]) => {
    const rule = of[wire]
    return rule === undefined ? [] : [[name, rule] as const]
  })
