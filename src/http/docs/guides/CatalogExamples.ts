import { Predicate } from "effect"
import type { ChatModel, Model, Surface, VideoModel } from "../../../domain/Model.ts"
import { toUsd } from "../../../domain/Money.ts"
import { clipPrice } from "../../../domain/Video.ts"

/** The models of the texts' examples. */
const shown: Readonly<Record<string, Surface>> = {
  "gpt-5.5": "chat",
  "claude-opus-5": "chat",
  "claude-sonnet-5": "chat",
  "claude-haiku-4-5": "chat",
  "gemini-3.6-flash": "chat",
  "gemini-3-pro-image": "image",
  "veo-3.1-fast-generate-001": "video"
}

const shownId = new RegExp(
  `(?<![\\w.-])(?:${Object.keys(shown)
    .map((id) => id.replaceAll(".", "\\."))
    .join("|")})(?![\\w-]|\\.\\w)`,
  "g"
)

const vendorOf = (id: string): string | undefined => id.split("-")[0]

/** The model itself, else one of its vendor's, else any of its surface. */
const replacementOf = (id: string, models: ReadonlyArray<Model>): string => {
  const alike = models.filter(({ surface }) => surface === shown[id])
  const found =
    alike.find((model) => model.id === id) ?? alike.find((model) => vendorOf(model.id) === vendorOf(id)) ?? alike[0]
  return found?.id ?? "<model>"
}

const longestAnswer = 64_000

const limitOf = ({ contextLength, maxOutput, ownMaxOutput = maxOutput }: ChatModel) => ({
  context: contextLength,
  output: Math.min(longestAnswer, ownMaxOutput)
})

const isChat = (model: Model): model is ChatModel => model.surface === "chat"
const isVideo = (model: Model): model is VideoModel => model.surface === "video"

/** Corrects what an example in JSON says of a model. */
const correct = (value: unknown, models: ReadonlyArray<Model>): unknown => {
  if (Array.isArray(value)) return value.map((item) => correct(item, models))
  if (!Predicate.isRecord(value)) return value
  const entries = Object.entries(value).map(([key, item]) => {
    const model = models.find(({ id }) => id === key)
    return model !== undefined && isChat(model) && Predicate.isRecord(item)
      ? [key, { ...item, limit: limitOf(model) }]
      : [key, correct(item, models)]
  })
  const video = models.filter(isVideo).find(({ id }) => id === value.model)
  const seconds = video?.seconds.default
  return {
    ...Object.fromEntries(entries),
    ...(video !== undefined &&
      seconds !== undefined && { seconds, charge_usd: toUsd(clipPrice(video.pricing, seconds)) })
  }
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const exampleHosts = /https:\/\/gateway\.example|http:\/\/127\.0\.0\.1:8787/g
const jsonBlock = /^```json\n(.*?)^```$/gms

/** Makes the examples of a text those of this gateway: its address, its models, and what they are. */
export const adaptExamples = (text: string, models: ReadonlyArray<Model>, publicUrl: string): string =>
  text
    .replaceAll(exampleHosts, () => publicUrl)
    .replaceAll(shownId, (id) => replacementOf(id, models))
    .replaceAll(jsonBlock, (block, json: string) => {
      const value = parse(json)
      const corrected = correct(value, models)
      return value === undefined || JSON.stringify(value) === JSON.stringify(corrected)
        ? block
        : `\`\`\`json\n${JSON.stringify(corrected, null, 2)}\n\`\`\``
    })
