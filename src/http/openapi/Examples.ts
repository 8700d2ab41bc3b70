import { Either } from "effect"
import type { ChatAnswer, Usage } from "../../domain/Chat.ts"
import type { ListedModel } from "../../domain/ListedModel.ts"
import {
  type ChatModel,
  type ImageModel,
  isChat,
  isImage,
  isVideo,
  type Model,
  type VideoModel
} from "../../domain/Model.ts"
import { NanoUsd, toUsd, zero } from "../../domain/Money.ts"
import { chatCharge, noUsage, quoteChat } from "../../domain/Pricing.ts"
import { ratioOf } from "../../domain/Shape.ts"
import { clipPrice } from "../../domain/VideoRules.ts"
import {
  customerCounts,
  customerSums,
  isOfChat,
  type RequestCount,
  type RequestUsage
} from "../../services/requests/RequestCounts.ts"
import type { JsonObject } from "../body/Guards.ts"
import { decodeChatBody } from "../chat/ChatBody.ts"
import { chatCompletions } from "../chat/ChatCompletionsDialect.ts"
import type { ChatDialect } from "../chat/ChatDialect.ts"
import { messages } from "../messages/MessagesDialect.ts"
import { priceChat, quoteJson } from "../quote/QuoteEndpoint.ts"
import { responses } from "../responses/ResponsesDialect.ts"

export interface Examples {
  readonly request?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly answer: unknown
}

const json = "application/json"
const form = "multipart/form-data"

const picture = "https://example.com/cat.png"
const created = 1_795_247_029
const hello = "Say hello in one sentence."
const id = "c3828b03a9664179aaf5c5abecc6c987"
/** The usage in the responses of the "say hello" example. */
const exampleUsage: Usage = { ...noUsage, prompt: 9, completion: 3 }
const helloThere: ChatAnswer = {
  content: "Hello there!",
  reasoning: undefined,
  toolCalls: [],
  finish: "stop",
  usage: exampleUsage
}

/** Returns a dialect's example requests, and its response to the first of them. */
const dialectExamples = (
  { decode, encodeAnswer, idPrefix }: ChatDialect,
  { text, ...others }: { readonly text: JsonObject & { readonly model: string }; readonly [name: string]: unknown }
): Examples => {
  const answerHead = { id: `${idPrefix}${idPrefix === "chatcmpl" ? "-" : "_"}${id}`, created, model: text.model }
  const answer = encodeAnswer(answerHead, Either.getOrThrow(decode(text, {})), helloThere, exampleUsage, zero)
  return { request: { [json]: { text, ...others } }, answer }
}

const weatherPrompt = "Weather in Oslo?"
const weatherTool = {
  name: "get_weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
}

const chatExamples = ({ capabilities, id: model }: ChatModel): Readonly<Record<string, Examples>> => {
  const bodyOf = (content: unknown) => ({ model, messages: [{ role: "user", content }] })
  const supportsTools = capabilities.has("tools")
  return {
    createChatCompletion: dialectExamples(chatCompletions, {
      text: bodyOf(hello),
      stream: { ...bodyOf("Say hello."), stream: true, stream_options: { include_usage: true } },
      ...(capabilities.has("vision") && {
        picture: bodyOf([
          { type: "text", text: "What is in this picture?" },
          { type: "image_url", image_url: { url: picture } }
        ])
      }),
      ...(supportsTools && {
        tools: { ...bodyOf(weatherPrompt), tools: [{ type: "function", function: weatherTool }] }
      })
    }),
    createResponse: dialectExamples(responses, {
      text: { model, input: hello },
      stream: { model, input: [{ role: "user", content: "Say hello." }], stream: true },
      ...(supportsTools && { tools: { model, input: weatherPrompt, tools: [{ type: "function", ...weatherTool }] } })
    }),
    createMessage: dialectExamples(messages, {
      text: { ...bodyOf(hello), max_tokens: 1024 },
      ...(supportsTools && {
        agent: {
          ...bodyOf([{ type: "text", text: weatherPrompt, cache_control: { type: "ephemeral" } }]),
          max_tokens: 4096,
          stream: true,
          system: "You are brief.",
          thinking: { type: "adaptive" },
          tools: [{ name: weatherTool.name, input_schema: weatherTool.parameters }]
        }
      })
    }),
    countTokens: { request: { [json]: { text: bodyOf(hello) } }, answer: { input_tokens: 12 } }
  }
}

const lastDayUsage: Usage = { ...noUsage, prompt: 5210, completion: 1840, cached: 4096 }
const topUpAmount = NanoUsd(100_000_000_000n)

const countsOf = (counts: ReadonlyArray<RequestCount>, usage: RequestUsage) =>
  Object.fromEntries(counts.map(({ name, usage: source }) => [name, usage[source] ?? 0]))

const chatCountsOf = (usage: RequestUsage) => ({
  ...Object.fromEntries(customerCounts.map(({ name }) => [name, null])),
  ...countsOf(customerCounts.filter(isOfChat), usage)
})

const accountExamples = (model: ChatModel): Readonly<Record<string, Examples>> => {
  const charge = chatCharge(model.pricing, exampleUsage)
  const body = { model: model.id, messages: [{ role: "user", content: hello }] }
  const quote = quoteChat(model, Either.getOrThrow(decodeChatBody(body)))
  const hold = quote.upTo
  const chargeBefore = chatCharge(model.pricing, lastDayUsage)
  const balance = topUpAmount - chargeBefore - charge
  const sum = (day: string, requests: number, usage: Usage, charged: NanoUsd) => ({
    day,
    requests,
    ...countsOf(customerSums, usage),
    charge_usd: toUsd(charged)
  })
  return {
    createQuote: {
      request: { "application/json": { chat: { endpoint: "/v1/chat/completions", body } } },
      answer: quoteJson(priceChat(model, quote), true)
    },
    getUsage: {
      answer: {
        object: "list",
        data: [sum("2026-11-21", 12, lastDayUsage, chargeBefore), sum("2026-11-22", 1, exampleUsage, charge)]
      }
    },
    getRequest: {
      answer: {
        id: "req_5d0f7c1e9b3a4c6d8e2f1a0b9c8d7e6f",
        object: "request",
        created_at: created,
        surface: "chat",
        model: model.id,
        stream: false,
        status: 200,
        code: null,
        error: null,
        end_user: "user-7",
        tag: "search",
        ...chatCountsOf(exampleUsage),
        hold_usd: toUsd(hold),
        charge_usd: toUsd(charge),
        attempts: [
          { outcome: "retry", ms: 87 },
          { outcome: "ok", ms: 412 }
        ],
        first_byte_ms: 503,
        total_ms: 505
      }
    },
    getStatement: {
      answer: {
        object: "statement",
        number: "1A0B9C8D7E6F-2026-11",
        organization: "org_5d0f7c1e9b3a4c6d8e2f1a0b9c8d7e6f",
        organization_name: "acme",
        month: "2026-11",
        period: "1 to 30 November 2026",
        closed: true,
        seller: { name: "Example Ltd", address: "1 Main Street\nDublin 2\nIreland", tax_id: "IE1234567X" },
        currency: "USD",
        discount_percent: 0,
        discount_changes: [],
        opening_usd: 0,
        closing_usd: toUsd(balance),
        payments: [{ id: "0b07122a76106ff8", at: created, amount_usd: toUsd(topUpAmount), ref: "inv-2026-0042" }],
        reversals: [],
        refunds: [],
        adjustments: [],
        usage: [
          {
            model: model.id,
            surface: "chat",
            requests: 2,
            prompt_tokens: lastDayUsage.prompt + exampleUsage.prompt,
            completion_tokens: lastDayUsage.completion + exampleUsage.completion,
            images: 0,
            seconds: 0,
            charge_usd: toUsd(NanoUsd(chargeBefore + charge))
          }
        ],
        total_charge_usd: toUsd(NanoUsd(chargeBefore + charge))
      }
    },
    getCredits: {
      answer: {
        object: "credits",
        available_usd: toUsd(balance - hold),
        balance_usd: toUsd(balance),
        held_usd: toUsd(hold),
        cap_usd: 250,
        cap_spent_usd: toUsd(NanoUsd(chargeBefore + charge)),
        cap_resets_at: 1_796_083_200
      }
    }
  }
}

const sizesOf = ({ variants }: ImageModel): ReadonlyArray<string> => variants.flatMap(({ shape }) => shape?.size ?? [])

const imageAnswer = (size = "1024x1024") => ({ created, size, data: [{ url: "https://media.example/Zr0v.png" }] })

const imageExamples = (model: ImageModel): Readonly<Record<string, Examples>> => {
  const size = sizesOf(model).find((one) => ratioOf(one) > 1)
  const edit = { model: model.id, prompt: "Put a hat on the cat" }
  return {
    createImage: {
      request: {
        [json]: {
          generation: { model: model.id, prompt: "A lighthouse in fog", ...(size === undefined ? {} : { size }) },
          ...(model.edit && { edit: { ...edit, image: picture, response_format: "b64_json" } })
        }
      },
      answer: imageAnswer(size)
    },
    ...(model.edit && {
      createImageEdit: {
        request: { [json]: { edit: { ...edit, image: [picture] } }, [form]: { edit: { ...edit, image: picture } } },
        answer: imageAnswer(sizesOf(model)[0])
      }
    })
  }
}

const videoExamples = (model: VideoModel): Readonly<Record<string, Examples>> => {
  const { id, referenceImage } = model
  const seconds = model.seconds.default
  const clip = { prompt: "The cat jumps", seconds: String(seconds) }
  const video = {
    id: "vid_9c2d6a4c1f0b4d5e8a7f3b2c1d0e9f8a",
    object: "video",
    model: id,
    progress: 0,
    created_at: created,
    seconds
  }
  const url = "https://media.example/q3Fh.mp4"
  return {
    createVideo: {
      request: {
        [json]: {
          ...(referenceImage !== "required" && {
            text: { model: id, prompt: "A lighthouse in fog, waves below", seconds }
          }),
          ...(referenceImage !== "none" && { frame: { model: id, prompt: clip.prompt, image: picture } })
        },
        [form]:
          referenceImage === "none"
            ? { text: { model: id, ...clip } }
            : { frame: { model: id, ...clip, input_reference: picture } }
      },
      answer: { ...video, status: "queued" }
    },
    getVideo: {
      answer: {
        ...video,
        status: "completed",
        progress: 100,
        completed_at: created + 84,
        charge_usd: toUsd(clipPrice(model.pricing, seconds)),
        url,
        data: [{ url }]
      }
    },
    listVideos: {
      answer: {
        object: "list",
        data: [{ ...video, status: "in_progress", progress: 40 }],
        first_id: video.id,
        last_id: video.id,
        has_more: false
      }
    },
    deleteVideo: { answer: { id: video.id, object: "video.deleted", deleted: true } }
  }
}

/** Returns examples by operation, with the first chat, image and video model. Without such a model there is no example. */
export const examplesOf = (
  models: ReadonlyArray<Model>,
  listModel: (model: Model) => ListedModel
): Readonly<Record<string, Examples>> => {
  const chat = models.find(isChat)
  const image = models.find((model): model is ImageModel => isImage(model) && model.edit) ?? models.find(isImage)
  const video = models.find(isVideo)
  const exampleModels = [chat, image, video].filter((model) => model !== undefined)
  const [firstModel] = exampleModels
  return {
    ...(chat && { ...chatExamples(chat), ...accountExamples(chat) }),
    ...(image && imageExamples(image)),
    ...(video && videoExamples(video)),
    ...(firstModel && {
      listModels: { answer: { object: "list", data: exampleModels.map(listModel) } },
      getModel: { answer: listModel(firstModel) }
    })
  }
}
