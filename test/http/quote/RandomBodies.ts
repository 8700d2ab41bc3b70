import type { Random } from "../../harness/fixtures/Random.ts"
import { png } from "../../harness/fixtures/TinyMedia.ts"

/** What a test needs of an entry of `GET /models`. */
export interface Listed {
  readonly id: string
  readonly surface: string
  readonly capabilities: ReadonlyArray<string>
  readonly params: ReadonlyArray<{ readonly key: string; readonly options?: ReadonlyArray<string> | undefined }>
}

export interface Asked {
  readonly endpoint: string
  readonly body: Readonly<Record<string, unknown>>
}

const picture = `data:image/png;base64,${png.toString("base64")}`
const words = ["night", "Grüße", "日本", "👋", "\u0000", '"quoted"', " ", "<tag>"] as const

const text = (random: Random): string => {
  // Beyond the threshold of long contexts.
  const length = random.chance(0.01) ? 60_000 : random.integer(1, 60)
  return Array.from({ length }, () => random.pick(words)).join(" ")
}

const schemaOf = (random: Random) => ({
  type: "object",
  properties: { [`field_${random.integer(0, 9)}`]: { type: "string", description: text(random) } }
})

const partsOf = (random: Random, kinds: { readonly text: string; readonly image: object }) => [
  { type: kinds.text, text: text(random) },
  ...Array.from({ length: random.integer(1, 3) }, () => kinds.image)
]

const completion = (random: Random, has: (capability: string) => boolean) => ({
  messages: [
    ...(random.chance(0.3) ? [{ role: "system", content: text(random) }] : []),
    {
      role: "user",
      content:
        has("vision") && random.chance(0.3)
          ? partsOf(random, { text: "text", image: { type: "image_url", image_url: { url: picture } } })
          : text(random)
    }
  ],
  max_tokens: random.integer(1, 40),
  ...(random.chance(0.2) && { usage: { include: true } }),
  ...(has("tools") &&
    random.chance(0.3) && {
      tools: Array.from({ length: random.integer(1, 4) }, (_, index) => ({
        type: "function",
        function: { name: `tool_${index}`, description: text(random), parameters: schemaOf(random) }
      }))
    }),
  ...(has("response_format") &&
    random.chance(0.3) && {
      response_format: { type: "json_schema", json_schema: { name: "answer", schema: schemaOf(random) } }
    }),
  ...(has("web_search") && random.chance(0.3) && { web_search: true })
})

const message = (random: Random, has: (capability: string) => boolean) => ({
  max_tokens: random.integer(1, 40),
  ...(random.chance(0.3) && { system: text(random) }),
  messages: [{ role: "user", content: text(random) }],
  ...(has("tools") &&
    random.chance(0.3) && { tools: [{ name: "look", description: text(random), input_schema: schemaOf(random) }] })
})

const response = (random: Random, has: (capability: string) => boolean) => ({
  max_output_tokens: random.integer(1, 40),
  ...(random.chance(0.3) && { instructions: text(random) }),
  input: text(random),
  ...(has("tools") &&
    random.chance(0.3) && {
      tools: [{ type: "function", name: "look", description: text(random), parameters: schemaOf(random) }]
    })
})

type Way = readonly [
  endpoint: string,
  bodyOf: (random: Random, has: (capability: string) => boolean) => Readonly<Record<string, unknown>>
]
const ways: readonly [Way, ...ReadonlyArray<Way>] = [
  ["/v1/chat/completions", completion],
  ["/v1/chat/completions", completion],
  ["/v1/messages", message],
  ["/v1/responses", response]
]

const chat = (random: Random, { capabilities, id: model }: Listed): Asked => {
  const has = (capability: string) => capabilities.includes(capability)
  const [endpoint, bodyOf] = random.pick(ways)
  return { endpoint, body: { model, ...bodyOf(random, has) } }
}

const image = (random: Random, { capabilities, id: model, params }: Listed): Asked => {
  const option = (key: string) => params.find((param) => param.key === key)?.options ?? []
  const [resolution] = random.shuffle(option("resolution"))
  const isEdit = capabilities.includes("edit") && random.chance(0.3)
  return {
    endpoint: isEdit ? "/v1/images/edits" : "/v1/images/generations",
    body: { model, prompt: "A lighthouse", ...(isEdit && { image: picture }), ...(resolution && { resolution }) }
  }
}

const video = (random: Random, { capabilities, id: model, params }: Listed): Asked => {
  const isRequired = params.some(({ key }) => key === "image") && random.chance(0.5)
  return {
    endpoint: "/v1/videos",
    body: {
      model,
      prompt: "A lighthouse",
      seconds: random.integer(1, 20),
      ...(capabilities.includes("reference_image") && isRequired && { image: picture })
    }
  }
}

/** A request that the model can serve, but for videos that lack a frame or have one too many. */
export const randomRequest = (random: Random, model: Listed): Asked => {
  if (model.surface === "chat") return chat(random, model)
  return model.surface === "image" ? image(random, model) : video(random, model)
}
