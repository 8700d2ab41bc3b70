import { Either } from "effect"
import type { Usage } from "../../domain/Chat.ts"
import type { ChatModel } from "../../domain/Model.ts"
import { NanoUsd, toUsd } from "../../domain/Money.ts"
import { chatCharge, noUsage, quoteChat } from "../../domain/Pricing.ts"
import {
  customerCounts,
  customerSums,
  isOfChat,
  type RequestCount,
  type RequestUsage
} from "../../services/requests/RequestCounts.ts"
import { decodeChatBody } from "../chat/ChatBody.ts"
import { chatOffer, quoteJson } from "../quote/QuoteJson.ts"
import { created, type Examples, exampleUsage, hello } from "./Example.ts"

const lastDay: Usage = { ...noUsage, prompt: 5210, completion: 1840, cached: 4096 }
const toppedUp = NanoUsd(100_000_000_000n)

const countsOf = (counts: ReadonlyArray<RequestCount>, usage: RequestUsage) =>
  Object.fromEntries(counts.map(({ name, usage: source }) => [name, usage[source] ?? 0]))

const chatCountsOf = (usage: RequestUsage) => ({
  ...Object.fromEntries(customerCounts.map(({ name }) => [name, null])),
  ...countsOf(customerCounts.filter(isOfChat), usage)
})

export const accountExamples = (model: ChatModel): Readonly<Record<string, Examples>> => {
  const charge = chatCharge(model.pricing, exampleUsage)
  const body = { model: model.id, messages: [{ role: "user", content: hello }] }
  const quote = quoteChat(model, Either.getOrThrow(decodeChatBody(body)))
  const hold = quote.upTo
  const chargeBefore = chatCharge(model.pricing, lastDay)
  const balance = toppedUp - chargeBefore - charge
  const sum = (day: string, requests: number, usage: Usage, charged: NanoUsd) => ({
    day,
    requests,
    ...countsOf(customerSums, usage),
    charge_usd: toUsd(charged)
  })
  return {
    createQuote: {
      request: { "application/json": { chat: { endpoint: "/v1/chat/completions", body } } },
      answer: quoteJson(chatOffer(model, quote), true)
    },
    getUsage: {
      answer: {
        object: "list",
        data: [sum("2026-11-21", 12, lastDay, chargeBefore), sum("2026-11-22", 1, exampleUsage, charge)]
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
        organization: "org_5d0f7c1e9b3a4c6d8e2f1a0b9c8d7e6f",
        month: "2026-11",
        opening_usd: 0,
        closing_usd: toUsd(balance),
        payments: [{ id: "0b07122a76106ff8", at: created, amount_usd: toUsd(toppedUp), ref: "inv-2026-0042" }],
        reversals: [],
        refunds: [],
        adjustments: [],
        usage: [
          {
            model: model.id,
            surface: "chat",
            requests: 2,
            prompt_tokens: lastDay.prompt + exampleUsage.prompt,
            completion_tokens: lastDay.completion + exampleUsage.completion,
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
