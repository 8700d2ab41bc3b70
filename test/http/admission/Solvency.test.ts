import { Effect } from "effect"
import { openAccount } from "../../harness/client/Account.ts"
import { assertRefused, badRequest, chat, chatPath, refusals, talk } from "../../harness/client/HttpCalls.ts"
import { imageOf, isReplay } from "../../harness/client/MediaClient.ts"
import { draw, gateway, keyed, usualPrice } from "../../harness/gateway/ImageGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asked, paints } from "../../harness/upstream/Replies.ts"
import { Upstreams } from "../../harness/upstream/Upstreams.ts"
import { open } from "../connections/RawSocket.ts"

const mib = 1024 * 1024
const large = { padding: "x".repeat(2 * mib) }
const notJson = badRequest("The body is not valid JSON.")

const head = (secret: string, ...more: ReadonlyArray<string>) =>
  [`POST ${chatPath} HTTP/1.1`, "Host: x", `Authorization: Bearer ${secret}`, ...more, "", ""].join("\r\n")

/** A customer who has made one request. */
const opened = (options: Parameters<typeof openAccount>[0]) =>
  Effect.tap(openAccount(options), (customer) => chat(customer, "{"))

withLayer(gateway({ art: {} }))("a large body", (it) => {
  for (const [who, options, refusal] of [
    ["an organization with nothing available", { nanoUsd: 0n }, refusals.insufficient],
    ["a key over its rate", { rpm: 1 }, refusals.limited]
  ] as const) {
    it.scoped(`of ${who} is refused before it is sent, and its connection stays open`, function* () {
      const customer = yield* opened(options)
      const connection = yield* open
      yield* connection.write(head(customer.secret, `Content-Length: ${20 * mib}`))
      const answer = yield* connection.answer(1)
      assertRefused(answer, refusal)
      yield* connection.write(Buffer.alloc(20 * mib))
      yield* connection.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
      assert.strictEqual((yield* connection.answer(2)).status, 200)
    })

    it.scoped(`of ${who} that is sent nevertheless leaves the answer readable`, function* () {
      const customer = yield* opened(options)
      for (let time = 0; time < 3; time++) assertRefused(yield* chat(customer, { ...talk("talk"), ...large }), refusal)
    })
  }

  it.scoped("without a length is refused once more than 1 MiB has come", function* () {
    const { secret } = yield* openAccount({ nanoUsd: 0n })
    const connection = yield* open
    yield* connection.write(head(secret, "Transfer-Encoding: chunked"))
    const chunk = `${(64 * 1024).toString(16)}\r\n${" ".repeat(64 * 1024)}\r\n`
    for (let sent = 0; sent <= mib; sent += 64 * 1024) yield* connection.write(chunk)
    assertRefused(yield* connection.answer(1), refusals.insufficient)
  })

  it.effect("is refused for lack of credit before its content is checked, unlike a small one", function* () {
    const customer = yield* openAccount({ nanoUsd: 0n })
    assertRefused(yield* chat(customer, "{"), notJson)
    assertRefused(yield* chat(customer, `{${" ".repeat(2 * mib)}`), refusals.insufficient)
    assertRefused(yield* chat(customer, talk("talk")), refusals.insufficient)
    assertRefused(yield* chat(yield* openAccount({}), `{${" ".repeat(2 * mib)}`), notJson)
  })

  it.effect("that repeats a request under its idempotency key is replayed with any balance", function* () {
    const { first } = yield* Upstreams
    const customer = yield* openAccount({ nanoUsd: usualPrice })
    yield* first.script(paints())
    const request = { ...asked("art"), ...large }
    const drawn = yield* draw(customer, request, keyed("k"))
    const again = yield* draw(customer, request, keyed("k"))
    assert.isTrue(isReplay(again))
    assert.deepStrictEqual(imageOf(again), imageOf(drawn))
    assertRefused(yield* draw(customer, request, keyed("other")), refusals.insufficient)
    assertRefused(yield* draw(customer, request), refusals.insufficient)
  })
})
