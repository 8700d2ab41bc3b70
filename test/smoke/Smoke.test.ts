/** The built program as its users meet it, once each: the slow tier has every other case. */

import { Effect, Fiber } from "effect"
import OpenAI from "openai"
import { openAccount } from "../harness/client/Account.ts"
import { openPage, isSkipped as withoutBrowser } from "../harness/client/Browser.ts"
import { ask, openStream } from "../harness/client/ChatClient.ts"
import { ageHeartbeats, assertCharged, eventually, moneyOf } from "../harness/database/Money.ts"
import { Deployment, deploymentTest } from "../harness/gateway/Deployment.ts"
import * as GatewayProcess from "../harness/gateway/GatewayProcess.ts"
import { assert, describe, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { silent } from "../harness/upstream/FakeUpstream.ts"
import { charge, either } from "../harness/upstream/Replies.ts"

describe("the built gateway", () => {
  it.scopedLive("starts in an empty directory, answers an official client, shows its console, stops", function* () {
    const directory = yield* temporaryDirectory
    const env = { DATABASE_URL: "", DATA_DIR: directory, SANDBOX: "true" }
    const { ended, signal, stdout, url } = yield* GatewayProcess.start({ env })
    const [key = ""] = /ggw_\S+/.exec(stdout()) ?? []
    const [, link = ""] = /(http\S+\/console#link=\S+)/.exec(stdout()) ?? []

    const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 })
    const [model] = (yield* Effect.promise(() => openai.models.list())).data
    const asked = { model: model?.id ?? "", messages: [{ role: "user" as const, content: "Say hello." }] }
    const whole = yield* Effect.promise(() => openai.chat.completions.create(asked))
    const streamed = yield* Effect.promise(async () => {
      let text = ""
      for await (const chunk of await openai.chat.completions.create({ ...asked, stream: true })) {
        text += chunk.choices[0]?.delta.content ?? ""
      }
      return text
    })
    assert.isNotEmpty(streamed)
    assert.strictEqual(whole.choices[0]?.message.content, streamed)

    if (!withoutBrowser) {
      const { page, problems } = yield* openPage([url])
      yield* Effect.promise(async () => {
        await page.goto(link)
        await page.locator("h1").waitFor()
      })
      assert.deepStrictEqual(problems, [])
    }
    yield* signal("SIGTERM")
    assert.deepStrictEqual(yield* ended, { code: 0, signal: null })
  })

  deploymentTest("killed with open holds, it releases them when it runs again and charges nothing", function* () {
    const { gateway, upstream } = yield* Deployment
    const customers = yield* Effect.all([openAccount({}), openAccount({}), openAccount({})])
    const [first, second, third] = customers
    yield* Effect.scoped(
      Effect.gen(function* () {
        const { ended, signal, url } = yield* gateway()
        yield* upstream.script(either, silent, silent)
        const served = yield* ask({ url, secret: third.secret })
        assert.strictEqual(served.status, 200)
        const whole = yield* Effect.fork(Effect.flip(ask({ url, secret: first.secret })))
        const stream = yield* Effect.fork(Effect.flip(Effect.scoped(openStream({ url, secret: second.secret }))))
        yield* upstream.received
        yield* upstream.received
        yield* upstream.received
        for (const { org } of [first, second]) assert.strictEqual((yield* moneyOf(org)).openHolds, 1)
        yield* signal("SIGKILL")
        yield* ended
        yield* Fiber.join(Fiber.zip(whole, stream))
      })
    )
    yield* ageHeartbeats
    const { url } = yield* gateway()
    for (const { org } of [first, second]) {
      yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0)
      yield* assertCharged(org, [])
    }
    yield* assertCharged(third.org, [charge])
    yield* upstream.script(either)
    assert.strictEqual((yield* ask({ url, secret: first.secret })).status, 200)
    yield* assertCharged(first.org, [charge])
  })
})
