import { type Refusal, turn } from "../../contracts/ChatHarness.ts"
import { bodyWantsStream, type ChatWire, halves, list, record, records, string } from "../../contracts/ChatHosts.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { make } from "./Plain.ts"

const refusals: Readonly<Record<Refusal, readonly [status: number, code: string]>> = {
  limit: [429, "rate_limit_exceeded"],
  funds: [402, "insufficient_quota"],
  key: [401, "invalid_api_key"],
  request: [400, "context_length_exceeded"],
  image: [400, "invalid_image"],
  moderation: [400, "content_filter"],
  server: [503, "busy"],
  missing: [404, "model_not_found"]
}

const boom = { error: { message: "boom" } }

export const plain: ChatWire = {
  adapter: "plain",
  make,
  model: "plain-1",
  basePath: "",
  has: { features: ["sampling"], stop: true, cached: false, cacheWrites: false, withholding: false },
  wantsStream: bodyWantsStream,
  understand: ({ body: input }) => {
    const body = record(input)
    const turns = records(body.turns).map(({ text, who }) => ({ text: string(text), who }))
    return {
      model: string(body.model),
      stream: body.stream === true,
      system: turns.flatMap(({ text, who }) => (who === "system" ? [text] : [])).join(""),
      turns: turns.flatMap(({ text, who }) => (who === "user" || who === "assistant" ? [turn(who, text)] : [])),
      maxTokens: typeof body.limit === "number" ? body.limit : undefined,
      stop: list(body.stop).map(string),
      tools: [],
      toolChoice: undefined,
      schema: undefined,
      temperature: body.temperature,
      topP: body.top_p
    }
  },
  encode: ({ content = "", finish, usage }) => {
    const spent = usage && { in: usage.prompt, out: usage.completion }
    const end = { end: finish === "length" ? "limit" : "stop", spent }
    return {
      body: { text: content, ...end },
      opening: [],
      output: halves(content).map((text) => Fake.event({ text })),
      end: [Fake.event(end)]
    }
  },
  refuse: (refusal) => {
    const [status, code] = refusals[refusal]
    return { status, body: { error: { code } }, headers: refusal === "limit" ? { "retry-after": "7" } : {} }
  },
  errorInside: { body: boom, event: Fake.event(boom) }
}
