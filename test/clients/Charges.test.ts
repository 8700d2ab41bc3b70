import { SqlClient } from "@effect/sql"
import { generateText } from "ai"
import { Effect } from "effect"
import { toFile } from "openai"
import { fromUsd, NanoUsd, toUsd } from "../../src/domain/Money.ts"
import { post } from "../harness/client/HttpCalls.ts"
import { assertStates, pollUntilFinished } from "../harness/client/MediaClient.ts"
import * as Messages from "../harness/client/MessagesClient.ts"
import { calling, drained } from "../harness/client/OfficialClients.ts"
import { png } from "../harness/fixtures/TinyMedia.ts"
import { assert, withLayer } from "../harness/It.ts"
import * as AiSdk from "./AiSdk.ts"
import { gateway, model } from "./SandboxChat.ts"

const imageModel = "gpt-image-2"
const videoModel = "veo-3.1-lite-generate-preview"

const header = "x-gateway-charge-usd"
const chargeIn = (headers: { readonly get: (name: string) => string | null }) => fromUsd(headers.get(header) ?? "")
const say = { model, messages: [{ role: "user" as const, content: "How much is this?" }] }
/** No client has a type for it. */
const priced = { ...say, usage: { include: true } }
const costIn = (usage: object | null | undefined): unknown => Reflect.get(usage ?? {}, "cost")

/** The charges of an organization in the ledger, oldest first. */
const charges = Effect.fnUntraced(function* (org: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly amount: string }>`
    SELECT (-amount)::text AS amount FROM ledger_entries WHERE org_id = ${org} AND kind = 'charge' ORDER BY id`
  return rows.map(({ amount }) => NanoUsd(BigInt(amount)))
})

withLayer(gateway)("the charge that clients are told", (it) => {
  it.effect("is the ledger's for chats in each dialect, in one piece", function* () {
    const { anthropic, openai, org } = yield* Messages.customer()
    const message = { ...say, max_tokens: 50 }
    const chat = yield* calling(() => openai.chat.completions.create(priced).withResponse())
    const plain = yield* calling(() => openai.chat.completions.create(say).withResponse())
    const response = yield* calling(() => openai.responses.create({ model, input: "Hi" }).withResponse())
    const answered = yield* calling(() => anthropic.messages.create(message).withResponse())
    const told = [chat, plain, response, answered].map(({ response: { headers } }) => chargeIn(headers))
    const entered = yield* charges(org)
    assert.deepStrictEqual(told, [...entered])
    assert.isTrue(entered.every((charge) => charge > 0n))
    assert.strictEqual(costIn(chat.data.usage), toUsd(entered[0] ?? 0n))
    assert.isUndefined(costIn(plain.data.usage))
  })

  it.effect("is the ledger's in the last chunk of a stream, and in no header", function* () {
    const { openai, org } = yield* AiSdk.customer()
    const { data, response } = yield* calling(() =>
      openai.chat.completions.create({ ...priced, stream: true }).withResponse()
    )
    const { items } = yield* drained(data)
    const [charge = 0n] = yield* charges(org)
    assert.strictEqual(costIn(items.at(-1)?.usage), toUsd(charge))
    assert.isAbove(toUsd(charge), 0)
    assert.isNull(response.headers.get(header))
  })

  it.effect("is the ledger's in the headers that the AI SDK shows", function* () {
    const { model: language, org } = yield* AiSdk.customer()
    const { response } = yield* calling(() => generateText({ model: language, prompt: "Hi" }))
    const [charge] = yield* charges(org)
    assert.strictEqual(fromUsd(response.headers?.[header] ?? ""), charge)
  })

  it.effect("is the ledger's for images, and 0 for a replay", function* () {
    const { openai, org } = yield* AiSdk.customer()
    const idempotent = { headers: { "idempotency-key": "one" } }
    const drawing = { model: imageModel, prompt: "A lighthouse" }
    const draw = () => calling(() => openai.images.generate(drawing, idempotent).withResponse())
    const [drawn, again] = [yield* draw(), yield* draw()]
    const image = yield* Effect.promise(() => toFile(png, "a.png", { type: "image/png" }))
    const edited = yield* calling(() => openai.images.edit({ ...drawing, image }).withResponse())
    const entered = yield* charges(org)
    assert.deepStrictEqual([chargeIn(drawn.response.headers), chargeIn(edited.response.headers)], [...entered])
    assert.strictEqual(again.response.headers.get("idempotency-replayed"), "true")
    assert.strictEqual(again.response.headers.get(header), "0")
  })

  it.effect("is the ledger's of a video once it is completed", function* () {
    const { openai, org } = yield* AiSdk.customer()
    const video = yield* calling(() => openai.videos.create({ model: videoModel, prompt: "Waves" }))
    assert.notProperty(video, "charge_usd")
    const retrieved = calling(() => openai.videos.retrieve(video.id))
    assertStates(yield* pollUntilFinished(retrieved), "completed")
    const [charge = 0n] = yield* charges(org)
    assert.strictEqual(Reflect.get(yield* retrieved, "charge_usd"), toUsd(charge))
    assert.isAbove(toUsd(charge), 0)
  })

  it.effect("is told of no refusal", function* () {
    const customer = yield* AiSdk.customer()
    const { headers, status } = yield* post("/v1/chat/completions")(customer, { ...say, usage: 1 })
    assert.strictEqual(status, 400)
    assert.isNull(headers.get(header))
  })
})
