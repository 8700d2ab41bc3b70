import { Clock, Effect, Redacted } from "effect"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../src/services/access/ApiKeys.ts"
import { RequestLog } from "../../src/services/telemetry/RequestLog.ts"
import { openAccount } from "../harness/client/Account.ts"
import { ask } from "../harness/client/ChatClient.ts"
import { assertCharged, eventually } from "../harness/database/Money.ts"
import { deploymentTest, faultyProgram } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { charge, completion } from "../harness/upstream/Replies.ts"
import { chatAndStreamUnderWay } from "./ChatsUnderWay.ts"

const hour = 3_600_000

describe.concurrent("a gateway whose clock is set", () => {
  for (const [direction, step] of [
    ["forward", 2 * hour],
    ["back", -2 * hour]
  ] as const) {
    deploymentTest(
      `${direction} goes on with what it serves, and logs how long it took`,
      function* ({ gateway, upstream }) {
        const entry = yield* faultyProgram
        const { signal, stderr, url } = yield* gateway({ entry, env: { CLOCK_STEP_MS: String(step) } })
        const log = yield* RequestLog
        const keys = yield* ApiKeys
        const { org, secret } = yield* openAccount({})
        const expiresAt = (yield* Clock.currentTimeMillis) + hour
        const shortLived = yield* keys.create({ org, expires_at: new Date(expiresAt) })

        const { answer, assertServed } = yield* chatAndStreamUnderWay({ url, secret })

        yield* signal("SIGUSR2")
        yield* eventually(Effect.sync(stderr), (text) => text.includes(`clock set by ${step} ms`))
        yield* answer
        yield* assertServed
        yield* upstream.script(completion)
        const later = yield* ask({ url, secret: Redacted.value(shortLived.secret) })
        assert.strictEqual(later.status, 200, "the key is good by the database's clock")
        yield* assertCharged(org, [charge, charge, charge])

        const rows = yield* eventually(log.list(OrganizationScope.all, { org, limit: 10 }), (all) => all.length === 3)
        for (const { attempts, firstByteMs, totalMs } of rows) {
          for (const ms of [firstByteMs ?? -1, totalMs, ...attempts.map((attempt) => attempt.ms)]) {
            assert.isAtLeast(ms, 0)
            assert.isBelow(ms, hour)
          }
        }
      }
    )
  }
})
