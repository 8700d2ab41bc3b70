import { Effect } from "effect"
import { assertRefused, badRequest, chat, chatPath, refusals, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { answers, gateway, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { open } from "../connections/RawSocket.ts"

const mib = 1024 * 1024

withLayer(gateway({ talk: {} }))("bodies that are announced and not sent", (it) => {
  const stalled = Effect.fnUntraced(function* (secret: string, path: string, bytes: number) {
    const connection = yield* open
    yield* connection.write(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${secret}\r\nContent-Length: ${30 * mib}\r\n\r\n${"{".repeat(bytes)}`
    )
    return connection
  })

  it.scoped("leave room for the large bodies of others, and are refused after ten seconds", function* () {
    const { first } = yield* Upstreams
    const slow = yield* Effect.forEach([1, 2], () => Served.customer())
    const connections = yield* Effect.forEach(
      slow.flatMap(({ secret }) => Array.from({ length: 12 }, () => secret)),
      (secret) => stalled(secret, chatPath, 1)
    )
    const large = "x".repeat(20 * mib)
    for (const customer of [yield* Served.customer(), ...slow]) {
      yield* first.script(answers())
      const answer = yield* chat(customer, talk("talk", large))
      assert.strictEqual(answer.status, 200, answer.text)
    }
    for (const connection of connections) {
      const { headers, ...answer } = yield* Effect.timeout(connection.answer(1), "14 seconds")
      assertRefused(
        { headers, ...answer },
        badRequest("The request body arrived too slowly: less than 1000 bytes a second.")
      )
      assert.strictEqual(headers.get("connection"), "close")
      yield* connection.closed
    }
  })

  it.scoped("are refused without a key before they are received", function* () {
    const connection = yield* stalled("", "/v1/videos", 1)
    assertRefused(yield* connection.answer(1), refusals.missingKey)
  })
})
