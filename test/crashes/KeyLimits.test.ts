import { readFile, writeFile } from "node:fs/promises"
import path from "node:path"
import { Duration, Effect, Option } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { ask, codeOf } from "../harness/client/ChatClient.ts"
import { film, pollUntilFinished, see, videoOf } from "../harness/client/MediaClient.ts"
import { ageHeartbeats, eventually, times, waitUntil } from "../harness/database/Money.ts"
import { Deployment, deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { silent } from "../harness/upstream/FakeUpstream.ts"
import * as RenderFarm from "../harness/upstream/RenderFarm.ts"
import { after, completion } from "../harness/upstream/Replies.ts"

/** The models of the deployment and the films of a farm in one catalog. */
const withFilms = Effect.fnUntraced(function* (farm: string) {
  const { directory, env } = yield* Deployment
  const file = path.join(directory, "all.yaml")
  const films = JSON.parse(RenderFarm.videoCatalog(farm))
  const chats = yield* Effect.promise(() => readFile(env["CATALOG_FILE"] ?? "", "utf8"))
  const lines = (value: unknown) => JSON.stringify(value).slice(1, -1)
  const providers = Object.entries(films.providers).map(([name, value]) => `  ${name}: ${JSON.stringify(value)}\n`)
  const models = films.models.map((model: unknown) => `  - {${lines(model)}}\n`)
  const text = chats.replace("providers:\n", `providers:\n${providers.join("")}`) + models.join("")
  yield* Effect.promise(() => writeFile(file, text))
  return { CATALOG_FILE: file, FARM_KEY: "k" }
})

describe("the limit of requests at once", () => {
  deploymentTest("is kept by two gateways at every moment, with videos", function* ({ gateway, upstream }) {
    let isOpen = false
    const farm = yield* RenderFarm.make({
      fate: () => ({ submit: "taken", polls: 1, end: "clip" }),
      isOpen: () => isOpen
    })
    const env = yield* withFilms(farm.url)
    const [left, right] = yield* Effect.all([gateway({ env }), gateway({ env })], { concurrency: "unbounded" })
    const { secret } = yield* openAccount({ concurrency: 5 })
    const made = yield* film({ url: left.url, secret, body: { model: "film", prompt: "a cat runs", seconds: 4 } })
    const { id } = videoOf(made, 202)

    let now = 0
    let most = 0
    const slow = Effect.gen(function* () {
      now += 1
      most = Math.max(most, now)
      yield* Effect.sleep("20 millis")
      now -= 1
    })
    yield* upstream.script(...times(200).map(() => after(slow, completion)))
    const answers = yield* Effect.forEach(
      times(200),
      (index) => ask({ url: index % 2 === 0 ? left.url : right.url, secret }),
      { concurrency: "unbounded" }
    )
    const refused = answers.filter(({ status }) => status !== 200)
    assert.isAtMost(most, 4)
    assert.isAtLeast(answers.length - refused.length, 4)
    for (const answer of refused) {
      assert.strictEqual(answer.status, 429, answer.text)
      assert.strictEqual(codeOf(answer), "concurrency_limit_exceeded")
      assert.strictEqual(answer.headers.get("retry-after"), "1")
    }
    isOpen = true
    yield* pollUntilFinished(Effect.map(see({ url: right.url, secret }, `/${id}`), (answer) => videoOf(answer)))
    most = 0
    yield* upstream.script(...times(20).map(() => after(slow, completion)))
    const later = yield* Effect.forEach(times(20), () => ask({ url: right.url, secret }), { concurrency: "unbounded" })
    assert.isAtMost(most, 5)
    assert.isAtLeast(later.filter(({ status }) => status === 200).length, 5)
  })

  deploymentTest("has the places of a gateway that was killed again", function* ({ gateway, upstream }) {
    const one = gateway({ timings: { sweepEvery: Duration.seconds(1) } })
    const [left, right] = yield* Effect.all([one, one], { concurrency: "unbounded" })
    const { secret } = yield* openAccount({ concurrency: 2 })
    yield* upstream.script(silent, silent)
    yield* Effect.fork(Effect.ignore(ask({ url: left.url, secret })))
    yield* Effect.fork(Effect.ignore(ask({ url: left.url, secret })))
    let reached = 0
    yield* Effect.fork(
      Effect.repeatN(
        Effect.map(upstream.received, () => (reached += 1)),
        1
      )
    )
    yield* waitUntil(() => reached === 2)
    assert.strictEqual(codeOf(yield* ask({ url: right.url, secret })), "concurrency_limit_exceeded")
    yield* left.signal("SIGKILL")
    yield* left.ended
    yield* ageHeartbeats
    yield* upstream.script(completion)
    yield* eventually(
      Effect.option(ask({ url: right.url, secret })),
      (answer) => Option.isSome(answer) && answer.value.status === 200
    )
  })
})
