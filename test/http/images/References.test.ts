import { Context, Effect, Layer, Struct } from "effect"
import { explainReference, referenceProblems } from "../../../src/domain/Media.ts"
import { zero } from "../../../src/domain/Money.ts"
import { assertRefused, badRequest, refusals } from "../../harness/client/HttpCalls.ts"
import { imageOf, isReplay } from "../../harness/client/MediaClient.ts"
import { gif } from "../../harness/fixtures/TinyMedia.ts"
import { draw, edit, gateway, keyed, usualPrice } from "../../harness/gateway/ImageGateway.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import * as Upstream from "../../harness/upstream/FakeUpstream.ts"
import { json, type Reply, steps, text } from "../../harness/upstream/FakeUpstream.ts"
import { asked, painting, paints } from "../../harness/upstream/Replies.ts"
import { Upstreams } from "../../harness/upstream/Upstreams.ts"
import { formIn } from "../../providers/openai-images/Hosts.ts"

const { address, name, format, redirect, status } = referenceProblems

/** A host of pictures on this machine, with what it was asked for. */
class Pictures extends Context.Tag("test/Pictures")<
  Pictures,
  {
    readonly url: string
    readonly script: Upstream.FakeUpstream["script"]
    readonly calls: ReadonlyArray<Upstream.Received>
  }
>() {}

const pictures = Layer.scoped(
  Pictures,
  Effect.gen(function* () {
    const { received, script, url } = yield* Upstream.make
    const calls: Array<Upstream.Received> = []
    yield* received.pipe(
      Effect.map((call) => calls.push(call)),
      Effect.forever,
      Effect.forkScoped
    )
    return { url, script, calls }
  })
)

const replyWith = (bytes: Uint8Array): Reply => steps({ type: "application/octet-stream" }, bytes)
const moved = (to: string): Reply => text(302, "text/plain", "", { location: to })

/** Asks with a reference that must be refused: nothing is drawn, held or charged. */
const assertUnusable = Effect.fnUntraced(function* (image: unknown, problem: string, subject?: string) {
  const refused = refusals.unusable(explainReference(problem, subject))
  const { first } = yield* Upstreams
  const { funds, ...customer } = yield* Served.customer()
  const before = yield* funds
  const drawn = first.calls.length
  for (const ask of [draw, edit]) {
    const answer = yield* ask(customer, asked("art", { image }), keyed("k"))
    assertRefused(answer, refused)
    assert.deepStrictEqual(yield* funds, before)
    const row = yield* Served.logged(answer.headers.get("x-request-id"))
    assert.deepInclude(row, { status: 400, charge: zero, route: null, attempts: [] })
  }
  assert.lengthOf(first.calls, drawn)
})

const inside = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0177.0.0.1"]
const elsewhere = ["http://169.254.169.254/latest", "http://10.0.0.1/a.png", "http://[fd00::1]/a", "http://[::1]/a.png"]

withLayer(gateway({ art: {} }).pipe(Layer.provideMerge(pictures)))(
  "a reference by URL, where nothing is exempt",
  (it) => {
    it.effect.each(inside)("is refused from %s without a connection", function* (host) {
      const { calls, url } = yield* Pictures
      const problem = host === "localhost" ? name : address
      yield* assertUnusable(`http://${host}:${new URL(url).port}/a.png`, problem)
      yield* assertUnusable(`http://${host}/a.png`, problem)
      yield* Upstream.settled
      assert.lengthOf(calls, 0)
    })

    it.effect.each(elsewhere)("is refused from %s", (url) => assertUnusable(url, address))

    it.effect("is refused beside valid ones", () =>
      Effect.flatMap(Pictures, ({ url }) =>
        assertUnusable([painting.toString("base64"), `${url}/a.png`], address, "Image 2 of 2")
      )
    )
  }
)

const exempt = gateway({ art: {}, plain: { edit: false } }, { FETCH_ALLOW: "127.0.0.0/8" })

const bad: ReadonlyArray<readonly [what: string, reply: Reply, problem: string]> = [
  ["a 404", json(404, {}), status(404)],
  ["a page", text(200, "image/png", "<html>no</html>"), format],
  ["half a picture", replyWith(painting.subarray(0, painting.length - 8)), format],
  ["nothing", replyWith(Buffer.alloc(0)), format],
  ["a way into this network", moved("http://169.254.169.254/latest"), address],
  ["a file", moved("file:///etc/passwd"), redirect]
]

withLayer(exempt.pipe(Layer.provideMerge(pictures)))("a reference by URL, where loopback is exempt", (it) => {
  it.effect("is fetched without any key and goes to the provider in its place", function* () {
    const { calls, script, url } = yield* Pictures
    const { first } = yield* Upstreams
    const { spent, ...customer } = yield* Served.customer()
    yield* script(moved("/b.gif"), replyWith(gif))
    yield* first.script(paints())
    const image = [`data:image/png;base64,${painting.toString("base64")}`, `${url}/a.png?sig=x%2Fy`]
    imageOf(yield* draw(customer, asked("art", { image }), keyed("k")))
    assert.deepStrictEqual(
      calls.map(({ headers, method, path }) => [method, path, headers.authorization]),
      [
        ["GET", "/a.png?sig=x%2Fy", undefined],
        ["GET", "/b.gif", undefined]
      ]
    )
    const call = first.calls.at(-1) ?? assert.fail("the provider was not asked")
    assert.strictEqual(call.path, "/v1/images/edits")
    const form = yield* Effect.promise(() => formIn(call))
    const files = form.getAll("image[]").filter((part) => typeof part !== "string")
    assert.deepStrictEqual(files.map(Struct.get("type")), ["image/png", "image/gif"])
    const sent = yield* Effect.promise(() => Promise.all(files.map((file) => file.arrayBuffer())))
    assert.isTrue(sent.every((bytes, index) => Buffer.from(bytes).equals([painting, gif][index] ?? Buffer.alloc(0))))
    assert.strictEqual(yield* spent, usualPrice)

    // A replay looks at no picture again.
    const again = yield* draw(customer, asked("art", { image }), keyed("k"))
    assert.isTrue(isReplay(again))
    assert.lengthOf(calls, 2)
  })

  it.effect.each(bad)("is refused where it gives %s", function* ([, reply, problem]) {
    const { script, url } = yield* Pictures
    yield* script(reply, reply)
    yield* assertUnusable(`${url}/a.png`, problem)
  })

  it.effect("is not fetched before the model and the balance are checked", function* () {
    const { calls, url } = yield* Pictures
    const before = calls.length
    const poor = yield* Served.customer({ nanoUsd: 0n })
    const image = `${url}/a.png`
    assertRefused(yield* draw(poor, asked("art", { image })), refusals.shortOf(usualPrice, 0n))
    const noEdit = badRequest("Image editing is not available for `plain`.", "image")
    assertRefused(yield* draw(poor, asked("plain", { image })), noEdit)
    yield* Upstream.settled
    assert.lengthOf(calls, before)
  })
})
