import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { connectionLimits } from "../../../src/http/connections/ConnectionLimits.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { hire, read } from "../../harness/client/AdminClient.ts"
import { ask } from "../../harness/client/ChatClient.ts"
import { assertRefused, badRequest, callAt } from "../../harness/client/HttpCalls.ts"
import { times, waitUntil } from "../../harness/database/Money.ts"
import { deploymentTest } from "../../harness/gateway/Deployment.ts"
import { customer } from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"
import * as FakeStripe from "../../harness/stripe/FakeStripe.ts"
import * as StripeGateway from "../../harness/stripe/StripeGateway.ts"
import { completion } from "../../harness/upstream/Replies.ts"
import { open, openTo } from "../connections/RawSocket.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))

const headOf = (path: string, length: number, more: ReadonlyArray<string> = []) =>
  [`POST ${path} HTTP/1.1`, "Host: x", "Content-Type: application/json", `Content-Length: ${length}`, ...more]
    .map((line) => `${line}\r\n`)
    .join("")
    .concat("\r\n{")

const session = "/admin/v1/session"

/** Sends a byte a second until the test ends. */
const trickle = (url: string) =>
  Effect.flatMap(openTo(url), ({ socket, write }) =>
    Effect.zipRight(
      write(headOf(session, 10_000)),
      Effect.acquireRelease(
        Effect.sync(() => setInterval(() => socket.write(" "), 1000)),
        (timer) => Effect.sync(() => clearInterval(timer))
      )
    )
  )

describe("sign-ins that come a byte at a time", () => {
  deploymentTest("do not lock out others at the address", function* ({ gateway, upstream }) {
    const { stderr, url } = yield* gateway({
      command: { line: ["sh", "-c", "ulimit -n 300; exec node dist/gateway.js serve"], cwd: root },
      env: { MEMBERS_PUBLIC: "true" }
    })
    const { secret } = yield* openAccount({})
    const { token } = yield* hire("read")
    const { perAddress } = connectionLimits({ trustedProxies: 0, descriptors: 300 })
    for (let round = 0; round < 3; round++) {
      yield* Effect.forEach(times(perAddress), () => trickle(url))
      yield* upstream.script(completion)
      assert.strictEqual((yield* ask({ url, secret })).status, 200)
      const headers = { "content-type": "application/json" }
      read(yield* callAt(`${url}${session}`, { headers, body: { token } }))
    }
    assert.notMatch(stderr(), /unexpected/i)
  })
})

withLayer(StripeGateway.layer({ MEMBERS_PUBLIC: "true" }))("a body that is announced and not sent", (it) => {
  const tooSlow = badRequest("The request body arrived too slowly: less than 1000 bytes a second.")
  const signed = `Stripe-Signature: ${FakeStripe.sign("{}")}`

  it.scoped("is refused after ten seconds for every sender", function* () {
    const { org } = yield* customer()
    const { token } = yield* hire("write", org)
    const connections = yield* Effect.forEach(
      [
        headOf(session, 10_000),
        headOf("/admin/v1/keys", 200_000, [`Authorization: Bearer ${token}`]),
        headOf("/stripe/webhook", 200_000, [signed])
      ],
      (head) => Effect.tap(open, ({ write }) => write(head))
    )
    for (const connection of connections) {
      yield* waitUntil(() => connection.received() !== "")
      const answer = yield* connection.answer(1)
      assertRefused(answer, tooSlow)
      assert.strictEqual(answer.headers.get("connection"), "close")
      yield* connection.closed
    }
  })

  it.scoped("is not received without an operator's token or with a malformed signature", function* () {
    for (const [head, status] of [
      [headOf("/admin/v1/organizations", 200_000), 401],
      [headOf(session, 20_000), 413],
      [headOf("/stripe/webhook", 200_000), 400],
      [headOf("/stripe/webhook", 200_000, ["Stripe-Signature: t=1,v1=none"]), 400],
      [headOf("/stripe/webhook", 300_000, [signed]), 413]
    ] as const) {
      const { answer, write } = yield* open
      yield* write(head)
      const { status: answered, text } = yield* answer(1)
      assert.strictEqual(answered, status, text)
    }
  })
})
