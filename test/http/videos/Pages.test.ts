import { Effect, Schema } from "effect"
import OpenAI from "openai"
import { openAccount } from "../../harness/client/Account.ts"
import { assertRefused, badRequest, callAt, rateOf, refusals } from "../../harness/client/HttpCalls.ts"
import { calling } from "../../harness/client/OfficialClients.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { get, layer, MediaServer, videos as path } from "../MediaServer.ts"

const Page = Schema.parseJson(
  Schema.Struct({
    data: Schema.Array(Schema.Struct({ id: Schema.String })),
    first_id: Schema.NullOr(Schema.String),
    last_id: Schema.NullOr(Schema.String),
    has_more: Schema.Boolean
  })
)

const noCursor = badRequest("`after` must be the id of a video of your organization.", "after")
const noOrder = badRequest("`order` must be asc or desc.", "order")
const done = { status: "completed", completedAt: 1, url: "https://media.test/a.mp4" } as const

withLayer(layer)("the videos of an organization", (it) => {
  const walk = (client: OpenAI, query: OpenAI.VideoListParams, each: (id: string) => Promise<unknown> | void) =>
    calling(async () => {
      const ids: Array<string> = []
      for await (const { id } of client.videos.list(query)) {
        ids.push(id)
        await each(id)
      }
      return ids
    })

  const opened = Effect.fnUntraced(function* (count: number) {
    const server = yield* MediaServer
    const account = yield* openAccount({})
    const ids = Array.from({ length: count }, () => server.videos.put(account.org, done).id)
    const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: account.secret, maxRetries: 0 })
    return { account, ids, openai, server }
  })

  it.effect.each(["asc", "desc"] as const)("are read to the end in pages, %s, while more are made", function* (order) {
    const { account, ids, openai, server } = yield* opened(7)
    let made = 0
    const walked = yield* walk(openai, { limit: 3, order }, () => {
      if (order === "desc" && ++made < 5) server.videos.put(account.org)
    })
    assert.deepStrictEqual(walked, order === "asc" ? ids : ids.toReversed())
  })

  it.effect("say where a page begins and ends, and whether it is the last", function* () {
    const { account, ids } = yield* opened(4)
    const newestFirst = ids.toReversed()
    for (const [query, from, to, has_more] of [
      ["", 0, 4, false],
      ["?limit=4", 0, 4, false],
      ["?limit=3", 0, 3, true],
      [`?limit=3&after=${newestFirst[0]}`, 1, 4, false],
      [`?limit=2&after=${newestFirst[0]}`, 1, 3, true],
      [`?after=${newestFirst[3]}`, 4, 4, false]
    ] as const) {
      const { status, text } = yield* get(account, query)
      assert.strictEqual(status, 200, text)
      const expected = newestFirst.slice(from, to)
      assert.deepStrictEqual<unknown>(Schema.decodeUnknownSync(Page)(text), {
        data: expected.map((id) => ({ id })),
        first_id: expected.at(0) ?? null,
        last_id: expected.at(-1) ?? null,
        has_more
      })
    }
  })

  it.effect("begin after a video of the organization only, and in one of two orders", function* () {
    const { account } = yield* opened(1)
    const foreign = yield* opened(1)
    for (const after of [foreign.ids[0], "vid_nobody", "", "%00", "a", "vid_1&after=vid_2"]) {
      assertRefused(yield* get(account, `?after=${after}`), noCursor)
    }
    for (const order of ["", "ASC", "newest", "asc&order=desc"]) {
      assertRefused(yield* get(account, `?order=${order}`), noOrder)
    }
  })

  it.effect("are deleted by the official client, which then finds them nowhere", function* () {
    const { account, ids, openai } = yield* opened(2)
    const [first = "", second = ""] = ids
    assert.deepStrictEqual<unknown>(yield* calling(() => openai.videos.delete(first)), {
      id: first,
      object: "video.deleted",
      deleted: true
    })
    assert.deepStrictEqual(yield* walk(openai, {}, () => {}), [second])
    for (const below of [`/${first}`, `/${first}/content`]) assertRefused(yield* get(account, below), refusals.noVideo)
  })

  it.effect("are deleted once they are over, by a key that may make videos", function* () {
    const { account, ids, server } = yield* opened(1)
    const foreign = yield* opened(1)
    const reader = yield* openAccount({ scopes: ["chat", "images"] })
    const running = server.videos.put(account.org, { status: "in_progress" }).id
    const remove = (id: string, secret: string) =>
      callAt(`${server.url}${path}/${id}`, { method: "DELETE", headers: { authorization: `Bearer ${secret}` } })
    const refused = yield* remove(running, account.secret)
    assertRefused(refused, refusals.notFinished)
    assert.strictEqual(refused.headers.get("x-should-retry"), "false")
    assertRefused(yield* remove(ids[0] ?? "", "ggw_nobody"), refusals.invalidKey)
    assertRefused(yield* remove("vid_any", reader.secret), refusals.scopeOf("videos"))
    for (const id of [foreign.ids[0] ?? "", "vid_nobody", "%00"]) {
      assertRefused(yield* remove(id, account.secret), refusals.noVideo)
    }
    const answer = yield* remove(ids[0] ?? "", account.secret)
    assert.strictEqual(answer.status, 200)
    assert.isUndefined(rateOf(answer))
    assertRefused(yield* remove(ids[0] ?? "", account.secret), refusals.noVideo)
  })
})
