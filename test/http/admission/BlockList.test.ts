import { Effect } from "effect"
import { openAccount } from "../../harness/client/Account.ts"
import {
  type Answer,
  assertRefused,
  block,
  call,
  chat,
  rateOf,
  refusals,
  soon,
  talk,
  unblock
} from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { gateway, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { ask } from "../connections/RawSocket.ts"

const bad = "203.0.113.7"
const ranges = [bad, "198.51.100.0/24", "::ffff:192.0.2.0/121", "2001:db8:1::/48", "2001:db8:2::9"]

const isDenied = (answer: Answer) => {
  assertRefused(answer, refusals.denied)
  assert.isUndefined(rateOf(answer))
}
const from = (forwardedFor: string) => call("/healthz", { headers: { "x-forwarded-for": forwardedFor } })

/** Everything is on the list, and the gateway has seen it. */
const listed = Effect.gen(function* () {
  for (const range of ranges) yield* block(range)
  yield* soon(Effect.map(from("2001:db8:2::9, 2001:db8:2::9"), isDenied))
})

type Case = readonly [forwardedFor: string, isBlocked: boolean]

const judged = Effect.fnUntraced(function* ([forwardedFor, isBlocked]: Case) {
  const answer = yield* from(forwardedFor)
  if (isBlocked) isDenied(answer)
  else assert.strictEqual(answer.status, 200)
})

/** What one proxy says; what stands left of its entry are the client's own words. */
const behindOne: ReadonlyArray<Case> = [
  [bad, true],
  [`  ${bad}  `, true],
  [`${bad}:61234`, true],
  [`::ffff:${bad}`, true],
  ["::FFFF:CB00:7107", true],
  [`[::ffff:${bad}]:443`, true],
  ["203.0.113.8", false],
  [`1.2.3.4, ${bad}`, true],
  [`1.2.3.4,5.6.7.8,${bad}`, true],
  [`${bad}, 1.2.3.4`, false],
  [`${bad}, ${bad}, 1.2.3.4`, false],
  ["198.51.100.0", true],
  ["198.51.100.255", true],
  ["198.51.101.0", false],
  ["198.51.99.255", false],
  ["192.0.2.127", true],
  ["192.0.2.128", false],
  ["2001:db8:1::", true],
  ["2001:DB8:1:0:ffff::1", true],
  ["[2001:db8:1::5]:443", true],
  ["[2001:db8:1::5]", true],
  ["2001:db8:0:ffff::1", false],
  ["2001:db8:2::9", true],
  ["2001:0db8:0002:0000:0000:0000:0000:0009", true],
  ["2001:db8:2::8", false],
  ["", false],
  ["unknown", false],
  [`${bad}, unknown`, false],
  [`${bad},`, false],
  ["203.0.113.7.", false],
  ["203.0.113.7/32", false]
]

const behindTwo: ReadonlyArray<Case> = [
  [`${bad}, 10.0.0.1`, true],
  [`1.2.3.4, ${bad}, 10.0.0.1`, true],
  [`${bad}, 1.2.3.4, 10.0.0.1`, false],
  [`1.2.3.4, ${bad}`, false],
  [`1.2.3.4, 5.6.7.8, ${bad}`, false],
  [`::ffff:${bad}, 10.0.0.1`, true],
  ["2001:db8:1::1, 10.0.0.1", true],
  ["unknown, 10.0.0.1", false],
  [bad, true]
]

const behind = (proxies: string) => gateway({ talk: {} }, { TRUST_PROXY: proxies })

withLayer(behind("1"))("the block list behind one proxy", (it) => {
  it.effect("is heeded within a second", () => listed)

  it.effect.each(behindOne)("%s: blocked %s", judged)

  it.effect("takes entries from any number of header lines", function* () {
    const get = (...addresses: ReadonlyArray<string>) =>
      `GET /healthz HTTP/1.1\r\nHost: x\r\n${addresses.map((one) => `X-Forwarded-For: ${one}\r\n`).join("")}\r\n`
    isDenied(yield* ask(get("1.2.3.4", bad)))
    assert.strictEqual((yield* ask(get(bad, "1.2.3.4"))).status, 200)
  })

  it.effect("refuses every request before it costs a provider call or a rate unit", function* () {
    const account = yield* openAccount({ rpm: 2 })
    const headers = { "x-forwarded-for": bad }
    for (const path of ["/", "/nowhere", "/v1/nowhere", "/v1/models", "/v1/credits", "/metrics", "/readyz", "/v1/%zz"])
      isDenied(yield* call(path, { headers }))
    for (const method of ["PUT", "DELETE", "OPTIONS", "POST"]) isDenied(yield* call("/healthz", { headers, method }))
    for (const body of [talk("talk"), { ...talk("talk"), stream: true }, "{"]) {
      isDenied(yield* chat(account, body, { headers }))
    }
    assert.deepStrictEqual(rateOf(yield* chat(account, "{")), { limit: 2, remaining: 1 })
    assert.lengthOf((yield* Upstreams).first.calls, 0)
  })

  it.effect("accepts an address that was removed from it", function* () {
    yield* unblock(bad)
    yield* soon(Effect.map(from(bad), ({ status }) => assert.strictEqual(status, 200)))
    isDenied(yield* from("198.51.100.9"))
  })
})

withLayer(behind("2"))("the block list behind two proxies", (it) => {
  it.effect("is heeded within a second", () => listed)

  it.effect.each(behindTwo)("%s: blocked %s", judged)
})

withLayer(behind("0"))("the block list without a proxy", (it) => {
  it.effect("uses the connection's address and no header", function* () {
    yield* block(bad)
    yield* block("127.0.0.0/8")
    const denied = [call("/healthz"), from("1.2.3.4"), call("/healthz", { headers: { forwarded: "for=1.2.3.4" } })]
    for (const request of denied) yield* soon(Effect.map(request, isDenied))
    yield* unblock("127.0.0.0/8")
    for (const header of [bad, `${bad}, ${bad}`]) {
      yield* soon(Effect.map(from(header), ({ status }) => assert.strictEqual(status, 200)))
    }
  })
})
