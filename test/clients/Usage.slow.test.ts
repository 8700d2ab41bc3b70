import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import type OpenAI from "openai"
import { pollUntilFinished } from "../harness/client/MediaClient.ts"
import { calling, drained, thrownBy } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { earlyPolls } from "../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"

const gateway = Served.layer(
  Effect.map(freePort, (port) => ({ env: { SANDBOX: "true", PORT: String(port) }, timings: earlyPolls }))
)

const model = "gpt-5.2"
const messages = [{ role: "user", content: "Say hello." }] as const

const Sums = Schema.Struct({
  data: Schema.Array(
    Schema.Struct({
      model: Schema.optional(Schema.NullOr(Schema.String)),
      tag: Schema.optional(Schema.NullOr(Schema.String)),
      requests: Schema.Int,
      prompt_tokens: Schema.Int,
      completion_tokens: Schema.Int,
      charge_usd: Schema.Number
    })
  )
})

const Found = Schema.Struct({
  status: Schema.Int,
  code: Schema.NullOr(Schema.String),
  end_user: Schema.NullOr(Schema.String),
  tag: Schema.NullOr(Schema.String),
  stream: Schema.Boolean,
  completion_tokens: Schema.NullOr(Schema.Int),
  hold_usd: Schema.NullOr(Schema.Number),
  charge_usd: Schema.Number,
  attempts: Schema.Array(Schema.Struct({ outcome: Schema.String, ms: Schema.Int }))
})

const read = <A, I>(openai: OpenAI, path: string, schema: Schema.Schema<A, I>) =>
  Effect.flatMap(
    calling(() => openai.get(path)),
    Schema.decodeUnknown(schema)
  )

withLayer(gateway)("the usage of what the official client asked for", (it) => {
  it.effect("is what the ledger says, and each request is found by its id", function* () {
    const sql = yield* SqlClient.SqlClient
    const { openai, org, spent } = yield* Served.customer()
    const tagged = (tag: string) => ({ headers: { "x-gateway-tag": tag } })
    const talk = { model, messages: [...messages], user: "ann" }
    const chat = yield* calling(() => openai.chat.completions.create(talk, tagged("words")).withResponse())
    const streamed = yield* calling(() =>
      openai.chat.completions.create({ model, messages: [...messages], stream: true }).withResponse()
    )
    yield* drained(streamed.data)
    const broken = yield* calling(() =>
      openai.chat.completions
        .create({ model, messages: [{ role: "user", content: "Hello there [sandbox cut=2]" }], stream: true })
        .withResponse()
    )
    yield* drained(broken.data)
    yield* calling(() => openai.images.generate({ model: "gpt-image-1.5", prompt: "A cat" }, tagged("cats")))
    const failed = yield* Effect.promise(() =>
      openai.images
        .generate({ model: "gpt-image-1.5", prompt: "[sandbox status=503]" })
        .asResponse()
        .catch(() => undefined)
    )
    assert.isUndefined(failed)
    yield* thrownBy(() => openai.chat.completions.create({ model: "nope", messages: [...messages] }))
    const video = { model: "veo-3.1-lite-generate-preview", prompt: "A cat", seconds: "4" } as const
    const ended = yield* Effect.forEach(["", " [sandbox fail]"], (fault) =>
      Effect.gen(function* () {
        const { data, response } = yield* calling(() =>
          openai.videos.create({ ...video, prompt: video.prompt + fault }, tagged("cats")).withResponse()
        )
        yield* pollUntilFinished(calling(() => openai.videos.retrieve(data.id)))
        return response.headers.get("x-request-id")
      })
    )
    const charged = yield* spent
    const [entered] = yield* sql<{ readonly sum: string }>`
        SELECT -sum(amount) AS sum FROM ledger_entries WHERE org_id = ${org} AND kind <> 'top_up'`
    assert.strictEqual(entered?.sum, charged.toString())
    const count = 8
    for (const by of ["day", "model", "key", "tag"]) {
      const sums = yield* read(openai, `/usage?by=${by}`, Sums).pipe(
        // A row may follow its answer.
        Effect.repeat({ until: ({ data }) => data.reduce((all, { requests }) => all + requests, 0) === count })
      )
      const nano = sums.data.reduce((all, { charge_usd }) => all + Math.round(charge_usd * 1e9), 0)
      assert.strictEqual(BigInt(nano), charged, by)
    }
    const entries = yield* sql<{ readonly tag: string | null; readonly charge: string }>`
      SELECT tag, -sum(amount) AS charge FROM ledger_entries AS entry JOIN request_log AS log USING (hold_id)
      WHERE entry.org_id = ${org} GROUP BY tag ORDER BY 2 DESC, 1`
    const { data: byTag } = yield* read(openai, "/usage?by=tag", Sums)
    assert.deepStrictEqual(
      byTag.map(({ charge_usd, tag }) => ({ tag, charge: String(Math.round(charge_usd * 1e9)) })),
      entries.map(({ charge, tag }) => ({ tag, charge }))
    )
    const found = (id: string | null) => read(openai, `/usage/requests/${id}`, Found)
    const whole = yield* found(chat.response.headers.get("x-request-id"))
    assert.deepStrictEqual(
      [whole.status, whole.stream, whole.attempts.map(({ outcome }) => outcome), whole.end_user, whole.tag],
      [200, false, ["ok"], "ann", "words"]
    )
    assert.strictEqual(whole.completion_tokens, chat.data.usage?.completion_tokens)
    assert.isAbove(whole.hold_usd ?? 0, whole.charge_usd)
    const stream = yield* found(streamed.response.headers.get("x-request-id"))
    assert.deepStrictEqual([stream.stream, stream.charge_usd], [true, whole.charge_usd])
    const cut = yield* found(broken.response.headers.get("x-request-id"))
    assert.deepStrictEqual([cut.status, cut.code, cut.charge_usd], [200, "stream_error", 0])
    const videos = yield* Effect.forEach(ended, found)
    assert.deepStrictEqual(
      videos.map(({ charge_usd, hold_usd, status }) => [status, hold_usd, charge_usd]),
      [
        [202, 0.2, 0.2],
        [202, 0.2, 0]
      ]
    )
  })
})
