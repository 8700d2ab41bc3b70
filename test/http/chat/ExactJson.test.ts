import { Predicate } from "effect"
import { record, records } from "../../contracts/ChatHosts.ts"
import { post } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { type Dialect, DialectHosts, dialects, gateway, routeTo } from "../../harness/upstream/Dialects.ts"
import { event, type Reply, sse, steps } from "../../harness/upstream/FakeUpstream.ts"

/** No JavaScript value has these numbers and this order. */
const input = '{"id":12345678901234567891,"b":1.0,"9":[1e5,-0,{"5":2.50,"a":0.10}],"1":"s"}'
const properties = '{"id":{"type":"integer","maximum":12345678901234567891},"2":{"type":"number","minimum":1.0},"1":{}}'
const schema = `{"type":"object","properties":${properties},"required":["id"],"additionalProperties":false}`
const quoted = JSON.stringify(input)

interface Surface {
  readonly name: string
  readonly path: string
  /** Its own wire, which gets the body as the client wrote it. */
  readonly native: string | undefined
  readonly body: (model: string, content: string, more: string) => string
  /** The arguments of the call in an answer, and those in the events of a stream, as text. */
  readonly answered: string
  readonly piece: (event: Record<PropertyKey, unknown>) => unknown
}

const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce((found: unknown, name) => (Predicate.isObject(found) ? Reflect.get(found, name) : undefined), value)

const chat: Surface = {
  name: "chat completions",
  path: "/v1/chat/completions",
  native: undefined,
  body: (model, content, more) => {
    const call = `{"id":"call_1","type":"function","function":{"name":"find","arguments":${quoted}}}`
    return `{"model":"${model}","messages":[{"role":"user","content":${content}},{"role":"assistant","content":null,"tool_calls":[${call}]},{"role":"tool","tool_call_id":"call_1","content":"ok"}],"tools":[{"type":"function","function":{"name":"find","parameters":${schema}}}]${more}}`
  },
  answered: `"arguments":${quoted}`,
  piece: (event) => at(event, "choices", 0, "delta", "tool_calls", 0, "function", "arguments")
}
const messages: Surface = {
  name: "Messages",
  path: "/v1/messages",
  native: "anthropic",
  body: (model, content, more) =>
    `{"model":"${model}","max_tokens":100,"messages":[{"role":"user","content":${content}},{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"find","input":${input}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"ok"}]}],"tools":[{"name":"find","input_schema":${schema}}]${more}}`,
  answered: `"input":${input}`,
  piece: (event) => at(event, "delta", "partial_json")
}
const responses: Surface = {
  name: "Responses",
  path: "/v1/responses",
  native: "openai-responses",
  body: (model, content, more) =>
    `{"model":"${model}","input":[{"role":"user","content":${content}},{"type":"function_call","call_id":"call_1","name":"find","arguments":${quoted}},{"type":"function_call_output","call_id":"call_1","output":"ok"}],"tools":[{"type":"function","name":"find","strict":false,"parameters":${schema}}]${more}}`,
  answered: `"arguments":${quoted}`,
  piece: (event) => (event.type === "response.function_call_arguments.delta" ? event.delta : undefined)
}

const objects = new Map([
  ["anthropic", `"input":${input}`],
  ["gemini", `"args":${input}`]
])
const sentTo = ({ name }: Dialect): string => objects.get(name) ?? `"arguments":${quoted}`

const usage = { prompt: 10, completion: 5, cached: 0, cacheWrite: 0, reasoning: 0 }
/** What a JavaScript host would make of the input. */
const lossy = JSON.stringify(JSON.parse(input))

/** Answers with a call, as a host that is not written in JavaScript. */
const calls = (dialect: Dialect): Reply => {
  const toolCalls = [{ id: "call_2", name: "find", arguments: input }]
  const { body, end, opening, output } = dialect.wire({ toolCalls, finish: "tool_calls", usage })
  const exact = (text: string) => text.replaceAll(lossy, input)
  return (response, received) =>
    (dialect.wantsStream(received)
      ? sse(...[...opening, ...output, ...end].map((step) => (typeof step === "string" ? exact(step) : step)))
      : steps({ type: "application/json" }, exact(JSON.stringify(body))))(response, received)
}

const eventsIn = (text: string): ReadonlyArray<Record<PropertyKey, unknown>> =>
  text
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)))

const pieces = (text: string, { piece }: Surface): string =>
  eventsIn(text)
    .map(piece)
    .filter((found) => typeof found === "string")
    .join("")

const models = dialects.map((dialect) => [dialect.name, [routeTo(dialect)]] as const)

withLayer(gateway(Object.fromEntries(models)))("numbers and the order of names", (it) => {
  const cases = [chat, messages, responses].flatMap((surface) =>
    dialects.map((host) => ({ surface, host, from: surface.name, to: host.name }))
  )

  it.effect.each(cases)("of $from are the same at $to and back, whatever the size", function* ({ host, surface }) {
    const fake = (yield* DialectHosts).of(host)
    const customer = yield* Served.customer()
    for (const size of [2, 70_000, 300_000]) {
      const body = surface.body(host.name, JSON.stringify("hi ".repeat(size / 3)), "")
      yield* fake.script(calls(host))
      const { status, text } = yield* post(surface.path)(customer, body)
      assert.strictEqual(status, 200, text)
      const sent = (yield* fake.received).bytes.toString()
      assert.include(sent, sentTo(host))
      assert.include(sent, properties)
      assert.include(text, surface.answered)
      // The gateway's own answers of this dialect repeat the tools of a small request.
      if (surface === responses && host.name !== surface.native && size === 2) assert.include(text, properties)
    }
  })

  it.effect.each(cases)("of $from are the same in a stream of $to", function* ({ host, surface }) {
    const fake = (yield* DialectHosts).of(host)
    const customer = yield* Served.customer()
    yield* fake.script(calls(host))
    const { text } = yield* post(surface.path)(customer, surface.body(host.name, '"hi"', ',"stream":true'))
    assert.strictEqual(pieces(text, surface), input, text)
    assert.include((yield* fake.received).bytes.toString(), sentTo(host))
  })

  for (const surface of [messages, responses]) {
    const host = dialects.find(({ name }) => name === surface.native) ?? assert.fail(surface.name)

    it.effect(`of ${surface.name} are the same in a native body, at any depth`, function* () {
      const fake = (yield* DialectHosts).of(host)
      const customer = yield* Served.customer()
      const own = `,"of_number":1.0,"user":"u_1","metadata":{"user_id":"u_1"},"of_tomorrow":${input},"seed":12345678901234567891`
      for (const size of [2, 70_000, 300_000]) {
        yield* fake.script(calls(host))
        const content = JSON.stringify("hi ".repeat(size / 3))
        const { status, text } = yield* post(surface.path)(customer, surface.body(host.name, content, own))
        assert.strictEqual(status, 200, text)
        const sent = (yield* fake.received).bytes.toString()
        for (const part of ['"of_number":1.0', '"seed":12345678901234567891', `"of_tomorrow":${input}`]) {
          assert.include(sent, part)
        }
      }
    })
  }

  it.effect("of a native body's cap are the gateway's own", function* () {
    const customer = yield* Served.customer()
    for (const [surface, cap] of [
      [messages, "max_tokens"],
      [responses, "max_output_tokens"]
    ] as const) {
      const host = dialects.find(({ name }) => name === surface.native) ?? assert.fail(surface.name)
      const fake = (yield* DialectHosts).of(host)
      yield* fake.script(calls(host))
      const body = surface.body(host.name, '"hi"', `,"${cap}":100.0`)
      const { status, text } = yield* post(surface.path)(customer, body)
      assert.strictEqual(status, 200, text)
      assert.include((yield* fake.received).bytes.toString(), `"${cap}":100,`)
    }
  })

  for (const surface of [messages, responses]) {
    const host = dialects.find(({ name }) => name === surface.native) ?? assert.fail(surface.name)

    it.effect(`of a host's own answer reach a client of ${surface.name}, in one piece and in events`, function* () {
      const fake = (yield* DialectHosts).of(host)
      const customer = yield* Served.customer()
      const { body, end, opening } = host.wire({ content: "Yes.", finish: "stop", usage })
      const unknown = { type: "of_tomorrow", input: "mark" }
      const known = surface === messages ? "content" : "output"
      const items = [...records(record(body)[known]), unknown]
      const whole = JSON.stringify({ ...record(body), [known]: items, of_today: unknown, of_number: "number" })
      const exact = (text: string) => text.replaceAll('"mark"', input).replaceAll('"number"', "1.0")
      const begun =
        surface === messages
          ? { type: "content_block_start", index: 0, content_block: { type: "server_tool_use", input: "mark" } }
          : { type: "response.output_item.added", output_index: 0, item: { id: "i", ...unknown } }
      yield* fake.script(
        steps({ type: "application/json" }, exact(whole)),
        sse(...opening, exact(event({ ...begun, of_number: "number" })), ...end)
      )
      const asPiece = (yield* post(surface.path)(customer, surface.body(host.name, '"hi"', ""))).text
      assert.strictEqual(asPiece.split(`"input":${input}`).length, 3, asPiece)
      assert.include(asPiece, '"of_number":1.0')
      const asStream = (yield* post(surface.path)(customer, surface.body(host.name, '"hi"', ',"stream":true'))).text
      assert.include(asStream, `"input":${input}`)
    })
  }

  it.effect("of arguments that a host sends as an object are the same", function* () {
    const host = dialects.find(({ name }) => name === "openai-chat") ?? assert.fail()
    const fake = (yield* DialectHosts).of(host)
    const customer = yield* Served.customer()
    for (const [surface, more] of [
      [chat, ""],
      [messages, ""],
      [chat, ',"stream":true']
    ] as const) {
      const toolCalls = [{ id: "call_2", name: "find", arguments: "mark" }]
      const { body, end, opening, output } = host.wire({ toolCalls, finish: "tool_calls", usage })
      const call = output.find((step) => typeof step === "string" && step.includes('"find"'))
      const unquote = (text: string) => text.replace(/"arguments":"[^"]*"/, `"arguments":${input}`)
      yield* fake.script(
        more === ""
          ? steps({ type: "application/json" }, unquote(JSON.stringify(body)))
          : sse(...opening, unquote(String(call)), ...end)
      )
      const { text } = yield* post(surface.path)(customer, surface.body("openai-chat", '"hi"', more))
      if (more === "") assert.include(text, surface.answered)
      else assert.strictEqual(pieces(text, surface), input, text)
      yield* fake.received
    }
  })
})

/** Each string and name in a value, and in the JSON that its strings are. */
function* stringsIn(value: unknown): Generator<string> {
  if (typeof value === "string") {
    yield value
    if (/^[[{"]/.test(value)) yield* stringsIn(JSON.parse(value))
  } else if (Predicate.isObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      yield name
      yield* stringsIn(member)
    }
  }
}

withLayer(gateway(Object.fromEntries(models)))("a lone surrogate", (it) => {
  const cases = [chat, messages, responses].flatMap((surface) =>
    dialects.map((host) => ({ surface, host, from: surface.name, to: host.name }))
  )
  const half = String.raw`cut \ud83d`
  const whole = String.raw`\ud83d\ude00`

  it.effect.each(cases)("of $from reaches $to as U+FFFD, wherever it is", function* ({ host, surface }) {
    const fake = (yield* DialectHosts).of(host)
    const customer = yield* Served.customer()
    for (const padding of ["", " ".repeat(70_000)]) {
      // In arguments, keys, descriptions, contents and results; in what is text of JSON, the escape is escaped.
      const spoilt = surface
        .body(host.name, `"${half} ${whole}"`, padding)
        .replaceAll('"ok"', `"${half} ${whole}"`)
        .replaceAll('"s"}', `"${half} ${whole}"}`)
        .replaceAll(String.raw`\"s\"}`, String.raw`\"cut \\ud83d \\ud83d\\ude00\"}`)
        .replaceAll('"1":{}', `"${half}":{"description":"${half} ${whole}"}`)
      assert.isAtLeast(spoilt.split("cut ").length, 6)
      yield* fake.script(calls(host))
      const { status, text } = yield* post(surface.path)(customer, spoilt)
      assert.strictEqual(status, 200, text)
      const strings = [...stringsIn(JSON.parse((yield* fake.received).bytes.toString()))]
      for (const one of strings) assert.isTrue(one.isWellFormed(), one)
      assert.isAtLeast(strings.filter((one) => one.includes("cut \ufffd 😀")).length, 4)
      assert.isTrue(strings.includes("cut \ufffd"))
    }
  })

  it.effect("that a host sends in two events reaches the client as a pair", function* () {
    const host = dialects.find(({ name }) => name === "openai-chat") ?? assert.fail()
    const fake = (yield* DialectHosts).of(host)
    const customer = yield* Served.customer()
    const { end, opening, output } = host.wire({ content: "one__two", finish: "stop", usage })
    const spoilt = output.map((step) =>
      step.replace('"one__"', String.raw`"\ud83d"`).replace('"two"', String.raw`"\ude00"`)
    )
    for (const surface of [chat, messages, responses]) {
      yield* fake.script(sse(...opening, ...spoilt, ...end))
      const { text } = yield* post(surface.path)(customer, surface.body("openai-chat", '"hi"', ',"stream":true'))
      assert.include(text, String.raw`"\ud83d"`)
      assert.include(text, String.raw`"\ude00"`)
      yield* fake.received
    }
  })
})
