import { mkdir, rm, writeFile } from "node:fs/promises"
import path from "node:path"
import { Duration, Effect } from "effect"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { RequestLog } from "../../src/services/telemetry/RequestLog.ts"
import { openAccount } from "../harness/client/Account.ts"
import { ask, codeOf, get } from "../harness/client/ChatClient.ts"
import { draw, imageOf, mediaIn, price } from "../harness/client/MediaClient.ts"
import { assertCharged, eventually } from "../harness/database/Money.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { charge, either, paints } from "../harness/upstream/Replies.ts"

describe("a media store that cannot be written", () => {
  deploymentTest(
    "makes the instance unready, and images are refused before a provider is asked, until it is mended",
    function* ({ env, gateway, upstream }) {
      const { stderr, url } = yield* gateway({
        timings: { checkMediaEvery: Duration.seconds(1) },
        env: { LOG_FORMAT: "json" }
      })
      const { org, secret } = yield* openAccount({})
      const readiness = Effect.map(get(`${url}/readyz`), ({ status, text }) => `${status} ${text}`)
      assert.strictEqual(yield* readiness, `200 {"status":"ready"}`)

      const media = path.join(env["DATA_DIR"] ?? "", "media")
      yield* Effect.promise(async () => {
        await rm(media, { recursive: true, force: true })
        await mkdir(path.dirname(media), { recursive: true })
        await writeFile(media, "")
      })
      yield* eventually(readiness, (text) => text.startsWith("503"))
      assert.strictEqual(yield* readiness, `503 {"status":"unready","reason":"the media store cannot be written"}`)

      const lost = yield* draw({ url, secret })
      assert.deepStrictEqual([lost.status, codeOf(lost)], [500, "internal_error"])
      const requestId = lost.headers.get("x-request-id") ?? assert.fail("no request id")
      const line = stderr()
        .split("\n")
        .find((one) => one.includes("images cannot be stored"))
      assert.include(line, `"request_id":"${requestId}"`)
      const rows = yield* eventually(
        Effect.flatMap(RequestLog, (log) => log.list(OrganizationScope.all, { org, limit: 1 })),
        ({ length }) => length === 1
      )
      assert.deepInclude(rows[0], { status: 500, attempts: [] })
      yield* assertCharged(org, [])
      yield* upstream.script(either)
      assert.strictEqual((yield* ask({ url, secret })).status, 200)

      yield* Effect.promise(() => rm(media))
      yield* eventually(readiness, (text) => text.startsWith("200"))
      yield* upstream.script(paints())
      imageOf(yield* draw({ url, secret }))
      assert.strictEqual((yield* mediaIn(env["DATA_DIR"] ?? "")).size, 1)
      yield* assertCharged(org, [charge, price])
    }
  )
})
