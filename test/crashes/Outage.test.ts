import { Effect, Fiber } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { ask, get } from "../harness/client/ChatClient.ts"
import * as Metrics from "../harness/client/Metrics.ts"
import { eventually } from "../harness/database/Money.ts"
import { Deployment, deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert } from "../harness/It.ts"
import { completion } from "../harness/upstream/Replies.ts"

const told = (url: string) =>
  Effect.map(Metrics.scrapeAt(url), (samples) => ({
    up: Metrics.sumOf(samples, "gateway_database_up"),
    ready: Metrics.sumOf(samples, "gateway_ready"),
    totals: Metrics.samplesOf(samples, "gateway_holds").length,
    failed: Metrics.sumOf(samples, "gateway_requests_total", { surface: "chat", status: "500" })
  }))

deploymentTest("a database that goes away under load is told by metrics, log and readiness within 10 s", function* () {
  const { door, gateway, upstream } = yield* Deployment
  const { cut, mend, url: databaseUrl } = yield* door
  const { stderr, url } = yield* gateway({ env: { DATABASE_URL: databaseUrl } })
  const { secret } = yield* openAccount({})
  yield* upstream.script(...Array.from({ length: 5_000 }, () => completion))
  // None waits for the one before it, which may be about to be charged and is then answered only after ten seconds.
  const asking = Effect.fork(Effect.ignore(ask({ url, secret })))
  const load = yield* Effect.fork(Effect.forever(Effect.zipRight(asking, Effect.sleep("20 millis"))))
  yield* eventually(told(url), ({ ready, totals, up }) => up === 1 && ready === 1 && totals === 2)

  yield* cut
  yield* eventually(
    told(url),
    ({ failed, ready, totals, up }) => up === 0 && ready === 0 && totals === 0 && failed > 0,
    "10 seconds"
  )
  assert.strictEqual((yield* get(`${url}/readyz`)).status, 503)
  assert.match(stderr(), /The database is unreachable/)

  yield* mend
  yield* eventually(told(url), ({ ready, up }) => up === 1 && ready === 1, "20 seconds")
  assert.match(stderr(), /The database is back after/)
  yield* Fiber.interrupt(load)
})
