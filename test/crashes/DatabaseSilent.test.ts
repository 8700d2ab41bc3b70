import { Duration, Effect, Fiber } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { type Answer, ask, attempt, codeOf, get } from "../harness/client/ChatClient.ts"
import { assertCharged, eventually } from "../harness/database/Money.ts"
import { Deployment, deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { charge, completion } from "../harness/upstream/Replies.ts"
import { chatUnderWay } from "./ChatsUnderWay.ts"

/** A gateway behind a door to its database, with what it has logged at INFO and above. */
const behindDoor = Effect.gen(function* () {
  const { door, gateway, upstream } = yield* Deployment
  const { url, ...control } = yield* door
  const { stderr, url: base } = yield* gateway({ env: { DATABASE_URL: url, LOG_FORMAT: "json" } })
  const told = (text: string) =>
    stderr()
      .split("\n")
      .filter((line) => line.includes(text)).length
  return { ...control, upstream, url: base, told, stderr }
})

const post = (url: string, path: string, secret: string, headers: Readonly<Record<string, string>> = {}) =>
  attempt(async (signal): Promise<Answer> => {
    const response = await fetch(`${url}/v1/${path}`, {
      method: "POST",
      signal,
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json", ...headers },
      body: JSON.stringify({ model: "i1", prompt: "x" })
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

/** One request to every endpoint, and two that need no key. */
const everything = (url: string, secret: string) => {
  const headers = { authorization: `Bearer ${secret}` }
  return {
    chat: ask({ url, secret }),
    stream: ask({ url, secret, stream: true }),
    image: post(url, "images/generations", secret),
    "image with a key": post(url, "images/generations", secret, { "idempotency-key": "k" }),
    edit: post(url, "images/edits", secret),
    video: post(url, "videos", secret),
    videos: get(`${url}/v1/videos`, headers),
    "one video": get(`${url}/v1/videos/vid_1`, headers),
    "a video's content": get(`${url}/v1/videos/vid_1/content`, headers),
    models: get(`${url}/v1/models`, headers),
    credits: get(`${url}/v1/credits`, headers),
    "no key": get(`${url}/v1/models`),
    "no endpoint": get(`${url}/v1/nothing`)
  }
}

const assertOut = (name: string, answer: Answer) =>
  assert.deepStrictEqual(
    [answer.status, codeOf(answer), answer.headers.get("retry-after")],
    [500, "internal_error", "5"],
    name
  )

/** Every endpoint's answer, which must come before the deadline. */
const askAll = (url: string, secret: string, within: Duration.DurationInput) =>
  Effect.all(everything(url, secret), { concurrency: "unbounded" }).pipe(Effect.timeout(within))

describe.concurrent("a database that swallows what it is sent", () => {
  deploymentTest("is answered for within 5 s on every endpoint, then at once, and is told of once", function* () {
    const { freeze, thaw, told, upstream, url } = yield* behindDoor
    const { org, secret } = yield* openAccount({})
    yield* upstream.script(completion)
    assert.strictEqual((yield* ask({ url, secret })).status, 200)
    // For a second nothing has to be asked about a key that was in use.
    yield* Effect.sleep("1 second")
    yield* freeze
    const first = yield* askAll(url, secret, "6 seconds")
    for (const [name, answer] of Object.entries(first)) assertOut(name, answer)
    const next = yield* askAll(url, secret, "3 seconds")
    for (const [name, answer] of Object.entries(next)) assertOut(name, answer)
    assert.strictEqual((yield* get(`${url}/healthz`)).status, 200)
    assert.deepStrictEqual([told("ERROR"), told("WARN"), told("unreachable")], [1, 0, 1])

    yield* thaw
    yield* eventually(get(`${url}/v1/models`, { authorization: `Bearer ${secret}` }), ({ status }) => status === 200)
    yield* upstream.script(completion)
    assert.strictEqual((yield* ask({ url, secret })).status, 200)
    yield* assertCharged(org, [charge, charge])
    assert.deepStrictEqual([told("ERROR"), told("WARN"), told("is back after")], [1, 0, 1])
  })

  deploymentTest("for less than 10 s is waited for by what is to be charged", function* () {
    const { freeze, thaw, url } = yield* behindDoor
    const { org, secret } = yield* openAccount({})
    const { answer, chat: asked } = yield* chatUnderWay({ url, secret })
    yield* freeze
    yield* answer
    yield* Effect.sleep("5 seconds")
    assert.isNull(asked.unsafePoll())
    yield* thaw
    assert.strictEqual((yield* Fiber.join(asked)).status, 200)
    yield* assertCharged(org, [charge])
  })
})
