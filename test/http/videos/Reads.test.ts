import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import OpenAI from "openai"
import { NanoUsd } from "../../../src/domain/Money.ts"
import type { Video } from "../../../src/services/videos/VideoJobs.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { type Answer, assertRefused, badRequest, callAt, rateOf, refusals } from "../../harness/client/HttpCalls.ts"
import { calling } from "../../harness/client/OfficialClients.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { get, layer, MediaServer, videos as path, post } from "../MediaServer.ts"

const notCompleted = badRequest("The video is not completed.")

const List = Schema.parseJson(
  Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(Schema.Struct({ id: Schema.String })) })
)
/** Ids of a list, in its order. */
const idsIn = ({ status, text }: Answer) => {
  assert.strictEqual(status, 200, text)
  return Schema.decodeUnknownSync(List)(text).data.map(({ id }) => id)
}

const url = "https://media.test/a.mp4"
const error = { code: "timeout", message: "The request exceeded the allowed time." }

/** Renders as far as they may be, and what the customer sees beside what is always there. */
const states: ReadonlyArray<readonly [state: string, video: Partial<Video>, fields: object]> = [
  ["queued", {}, { status: "queued", seconds: 8 }],
  [
    "in_progress",
    { status: "in_progress", progress: 40, seconds: 4 },
    { status: "in_progress", progress: 40, seconds: 4 }
  ],
  [
    "completed",
    { status: "completed", progress: 100, completedAt: 1_700_000_100, charge: NanoUsd(800_000_001n), url },
    {
      status: "completed",
      progress: 100,
      completed_at: 1_700_000_100,
      seconds: 8,
      charge_usd: 0.800000001,
      url,
      data: [{ url }]
    }
  ],
  [
    "failed",
    { status: "failed", completedAt: 1_700_000_100, error },
    { status: "failed", completed_at: 1_700_000_100, seconds: 8, error }
  ]
]

withLayer(layer)("a video of the organization", (it) => {
  it.effect.each(states)("that is %s is shown, alone and in the list", function* ([, more, fields]) {
    const { videos } = yield* MediaServer
    const account = yield* openAccount({})
    const { createdAt, id } = videos.put(account.org, more)
    const expected = { id, object: "video", model: "film", progress: 0, created_at: createdAt, ...fields }
    const alone = yield* get(account, `/${id}`)
    assert.deepStrictEqual([alone.status, JSON.parse(alone.text)], [200, expected])
    const list = yield* get(account)
    const page = { object: "list", data: [expected], first_id: id, last_id: id, has_more: false }
    assert.deepStrictEqual([list.status, JSON.parse(list.text)], [200, page])
    for (const answer of [alone, list]) {
      assert.strictEqual(answer.headers.get("content-type"), "application/json; charset=utf-8")
    }
  })

  it.effect.each(states)("that is %s has content only once it is completed", function* ([state, more]) {
    const { videos } = yield* MediaServer
    const account = yield* openAccount({})
    const { id } = videos.put(account.org, more)
    const answer = yield* get(account, `/${id}/content`)
    if (state !== "completed") return assertRefused(answer, notCompleted)
    const { headers, status, text } = answer
    assert.deepStrictEqual([status, headers.get("location"), text], [302, url, ""])
    assert.match(headers.get("x-request-id") ?? "", /^req_/)
  })

  it.effect("has the mp4 for content, and no thumbnail and no spritesheet", function* () {
    const { videos } = yield* MediaServer
    const account = yield* openAccount({})
    const [[, more] = assert.fail("no state")] = states.filter(([state]) => state === "completed")
    const { id } = videos.put(account.org, more)
    const video = yield* get(account, `/${id}/content?variant=video`)
    assert.deepStrictEqual([video.status, video.headers.get("location")], [302, url])
    for (const variant of ["thumbnail", "spritesheet", "", "video&variant=video"]) {
      const message = "`variant` must be video: there are no thumbnails and no spritesheets."
      assertRefused(yield* get(account, `/${id}/content?variant=${variant}`), badRequest(message, "variant"))
    }
  })

  it.effect("is marked where the sandbox made it", function* () {
    const { videos } = yield* MediaServer
    const account = yield* openAccount({})
    const made = { status: "completed", completedAt: 1, url } as const
    for (const sandbox of [false, true]) {
      const { id } = videos.put(account.org, { ...made, sandbox })
      for (const below of [`/${id}`, `/${id}/content`]) {
        const { headers } = yield* get(account, below)
        assert.strictEqual(headers.get("x-gateway-sandbox"), sandbox ? "true" : null)
      }
    }
  })

  it.effect("is unknown to other organizations", function* () {
    const { videos } = yield* MediaServer
    const [owner, other] = [yield* openAccount({}), yield* openAccount({})]
    const { id } = videos.put(owner.org, { status: "completed", completedAt: 1, url })
    for (const below of [`/${id}`, `/${id}/content`]) assertRefused(yield* get(other, below), refusals.noVideo)
    assert.deepStrictEqual(idsIn(yield* get(other)), [])
    assert.deepStrictEqual(idsIn(yield* get(owner)), [id])
  })

  it.effect.each([
    "vid_",
    "nothing",
    `vid_${"0".repeat(32)}x`,
    "%00",
    "vid_%00",
    `vid_${"0".repeat(31)}%00`,
    "vid_%E2%98%83",
    "vid_%F0%9F%98%80",
    "vid_%20",
    "vid_%27%3B--",
    "..%2F..%2Fmodels",
    "vid_%2F",
    "vid_%3F",
    "content",
    "a".repeat(100),
    `vid_${"a".repeat(8_000)}`
  ])("is unknown by the id %s", function* (id) {
    const account = yield* openAccount({})
    for (const below of [`/${id}`, `/${id}/content`]) assertRefused(yield* get(account, below), refusals.noVideo)
  })

  it.effect.each(["%zz", "%", "vid_%ff", "vid_1/contents", "vid_1/content/x"])("is unknown at %s", function* (below) {
    const refusal = below === "vid_1/contents" ? refusals.meantPath("/v1/videos/{id}/content") : refusals.noEndpoint
    assertRefused(yield* get(yield* openAccount({}), `/${below}`), refusal)
  })

  it.effect.each<readonly [query: string, count: number]>([
    ["", 20],
    ["?limit=1", 1],
    ["?limit=2", 2],
    ["?limit=100", 100],
    ["?limit=101", 100],
    ["?limit=99999999999999999999999", 100],
    ["?limit=1e400", 100],
    ["?limit=0", 1],
    ["?limit=-5", 1],
    ["?limit=3.9", 3],
    ["?limit=0.5", 1],
    ["?limit=", 20],
    ["?limit", 20],
    ["?limit=+", 20],
    ["?limit=ten", 20],
    ["?limit=5s", 20],
    ["?limit=NaN", 20],
    ["?limit=null", 20],
    ["?limit=%00", 20],
    ["?limit=%zz", 20],
    ["?limit=2&limit=3", 20],
    ["?limit[]=2", 20],
    ["?limits=2&order=desc", 20]
  ])("is listed newest first: %s gives %i", function* ([query, count]) {
    const { videos } = yield* MediaServer
    const account = yield* openAccount({})
    const ids = Array.from({ length: 102 }, () => videos.put(account.org).id).toReversed()
    assert.deepStrictEqual(idsIn(yield* get(account, query)), ids.slice(0, count))
  })

  it.effect("is shown, listed and fetched by the official client", function* () {
    const server = yield* MediaServer
    const account = yield* openAccount({})
    const ids = Array.from({ length: 3 }, () => server.videos.put(account.org).id).toReversed()
    const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: account.secret, maxRetries: 0 })
    const listed = yield* calling(async () => {
      const all: Array<string> = []
      for await (const { id } of openai.videos.list({ limit: 2 })) all.push(id)
      return all
    })
    assert.deepStrictEqual(listed, ids)
    const done = { status: "completed", completedAt: 1, url: `${server.url}/healthz` } as const
    const { id } = server.videos.put(account.org, done)
    const video = yield* calling(() => openai.videos.retrieve(id))
    assert.deepStrictEqual([video.id, video.status, video.completed_at], [id, "completed", 1])
    const content = yield* calling(() => openai.videos.downloadContent(id))
    assert.strictEqual(yield* Effect.promise(() => content.text()), '{"status":"ok"}')
  })

  it.effect("is read with a key of any scopes, and without the rate", function* () {
    const server = yield* MediaServer
    const sql = yield* SqlClient.SqlClient
    const account = yield* openAccount({ rpm: 1, scopes: ["chat"], nanoUsd: 0n })
    const { id } = server.videos.put(account.org, { status: "completed", completedAt: 1, url })
    for (const [below, status] of [
      ["", 200],
      [`/${id}`, 200],
      [`/${id}/content`, 302],
      ["/vid_nobody", 404]
    ] as const) {
      for (const [headers, refusal] of [
        [{}, refusals.missingKey],
        [{ authorization: "Bearer ggw_nobody" }, refusals.invalidKey]
      ] as const) {
        const refused = yield* callAt(`${server.url}${path}${below}`, { headers })
        assertRefused(refused, refusal)
        assert.isUndefined(rateOf(refused))
      }
      for (let times = 0; times < 3; times++) {
        const answer = yield* get(account, below)
        assert.strictEqual(answer.status, status)
        assert.isUndefined(rateOf(answer))
      }
    }
    const last = yield* post(account, path, {})
    assertRefused(last, refusals.scopeOf("videos"))
    assert.deepStrictEqual(rateOf(last), { limit: 1, remaining: 0 })
    const rows = sql`SELECT status FROM request_log WHERE key_id = ${account.key}`
    yield* Effect.repeat(rows, { until: (all) => all.length > 0 })
    assert.deepStrictEqual(yield* rows, [{ status: 403 }])
  })
})
