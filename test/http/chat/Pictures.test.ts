import { Predicate } from "effect"
import { explainReference, referenceProblems } from "../../../src/domain/Media.ts"
import { make } from "../../fetching/ForeignServer.ts"
import { assertRefused, chat, refusals } from "../../harness/client/HttpCalls.ts"
import { dataUrl, gif, png } from "../../harness/fixtures/TinyMedia.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json } from "../../harness/upstream/FakeUpstream.ts"
import { answers, gateway, onFirst, onSecond, streams, Upstreams } from "../../harness/upstream/Upstreams.ts"

const capabilities = ["vision"]
const passing = { ...onSecond, options: { inline_images: false } }

const served = gateway(
  {
    inlining: { capabilities, routes: [onFirst] },
    passing: { capabilities, routes: [passing] },
    sandboxed: { capabilities, routes: [{ provider: "drawer", model: "sandboxed" }] },
    both: { capabilities, routes: [onFirst, passing] }
  },
  { FETCH_ALLOW: "127.0.0.1", RESULT_FETCH_ALLOW: "127.0.0.2" }
)

const look = (model: string, ...urls: ReadonlyArray<string>) => ({
  model,
  messages: [{ role: "user", content: urls.map((url) => ({ type: "image_url", image_url: { url } })) }]
})

/** The URLs of the pictures in a chat request's body. */
const urlsIn = (body: unknown): ReadonlyArray<unknown> => {
  const first: unknown = Predicate.isRecord(body) && Array.isArray(body["messages"]) ? body["messages"][0] : undefined
  const content: unknown = Predicate.isRecord(first) ? first["content"] : undefined
  if (!Array.isArray(content)) return []
  return content.map((part: unknown) => {
    const image: unknown = Predicate.isRecord(part) ? part["image_url"] : undefined
    return Predicate.isRecord(image) ? image["url"] : undefined
  })
}

const { address, name, credentials, format } = referenceProblems

/** Of the second of two. */
const noPicture = (problem: string) => refusals.unusable(explainReference(problem, "Image 2 of 2"), "messages")

withLayer(served)("a picture in a chat", (it) => {
  it.scoped("is fetched once for routes that inline images, and left to the others as a URL", function* () {
    const { first, second } = yield* Upstreams
    const customer = yield* Served.customer()
    const host = yield* make((_, response) => response.end(png))
    yield* first.script(json(503, { error: { message: "busy" } }))
    yield* second.script(answers())
    const body = look("both", host.url, dataUrl(gif, "image/gif"))
    const answer = yield* chat(customer, body)
    assert.strictEqual(answer.status, 200)
    assert.deepStrictEqual(urlsIn(first.calls.at(-1)?.body), [dataUrl(png, "image/png"), dataUrl(gif, "image/gif")])
    assert.deepStrictEqual(urlsIn(second.calls.at(-1)?.body), [host.url, dataUrl(gif, "image/gif")])
    assert.strictEqual(host.connections(), 1)
    yield* first.script(streams("fine"))
    const streamed = yield* chat(customer, { ...body, stream: true })
    assert.include(streamed.text, "fine")
    assert.deepStrictEqual(urlsIn(first.calls.at(-1)?.body)[0], dataUrl(png, "image/png"))
  })

  it.scoped("is passed on as a URL where the host fetches, and as bytes to the sandbox", function* () {
    const { second } = yield* Upstreams
    const customer = yield* Served.customer()
    const url = "https://pictures.example/a.png?size=1"
    yield* second.script(answers())
    assert.strictEqual((yield* chat(customer, look("passing", url))).status, 200)
    assert.deepStrictEqual(urlsIn(second.calls.at(-1)?.body), [url])
    const host = yield* make((_, response) => response.end(png))
    const answer = yield* chat(customer, look("sandboxed", host.url))
    assert.include(answer.text, "The conversation contains 1 image")
    assert.strictEqual(host.connections(), 1)
  })

  it.scoped("that is invalid is refused before any provider call, at no charge", function* () {
    const { first, second } = yield* Upstreams
    const customer = yield* Served.customer()
    const inner = yield* make((_, response) => response.end(png), { address: "127.0.0.2" })
    const host = yield* make((request, response) => {
      if (request.url === "/inner") response.writeHead(302, { location: inner.url }).end()
      else response.writeHead(200, { "content-type": "image/png" }).end("<html>")
    })
    const calls = first.calls.length + second.calls.length
    const bad: ReadonlyArray<readonly [model: string, url: string, problem: string | undefined]> = [
      ["passing", dataUrl(Buffer.from("<html>"), "image/png"), format],
      ["inlining", dataUrl(png.subarray(1), "image/png"), format],
      ["inlining", `${host.url}/html`, format],
      ["inlining", `${host.url}/inner`, address],
      ["inlining", inner.url, address],
      ["inlining", "http://169.254.169.254/latest/meta-data/", address],
      ["passing", "http://169.254.169.254/latest/meta-data/", address],
      ["both", "http://169.254.169.254/latest/meta-data/", address],
      ["passing", inner.url, address],
      ["passing", "http://user:secret@pictures.example/a.png", credentials],
      // Whether there is a DNS server decides.
      ["passing", "https://pictures.example:8443/a.png", undefined],
      ["passing", "http://metadata.google.internal/", name],
      ["passing", "http://printer/a.png", name],
      ["sandboxed", host.url, format],
      ["sandboxed", "http://169.254.169.254/latest/meta-data/", address]
    ]
    const some = refusals.unusable(/^Image 2 of 2 .+\.$/, "messages")
    for (const [model, url, problem] of bad) {
      for (const stream of [false, true]) {
        const answer = yield* chat(customer, { ...look(model, dataUrl(gif, "image/gif"), url), stream })
        assertRefused(answer, problem === undefined ? some : noPicture(problem))
      }
    }
    assert.strictEqual(first.calls.length + second.calls.length, calls)
    assert.strictEqual(inner.connections(), 0)
    assert.strictEqual(yield* customer.spent, 0n)
  })
})
