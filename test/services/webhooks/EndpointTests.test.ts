import { randomUUID } from "node:crypto"
import { Effect, Layer, Redacted } from "effect"
import { OrgId } from "../../../src/domain/Organization.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Webhooks } from "../../../src/services/webhooks/Webhooks.ts"
import { fetcherFor } from "../../fetching/ForeignServer.ts"
import { eventually, times } from "../../harness/database/Money.ts"
import { account, ledgers } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"
import * as Receiver from "./WebhookReceiver.ts"

const layer = Webhooks.layer.pipe(Layer.provideMerge(fetcherFor(["127.0.0.1"])), Layer.provideMerge(ledgers))

const customer = Effect.gen(function* () {
  const { org, sql } = yield* account(0n)
  const webhooks = yield* Webhooks
  const all = OrganizationScope.all
  return { all, deliveries: webhooks.deliveries(all, { org, limit: 10 }), org, sql, webhooks }
})

withLayer(layer)("a test of an endpoint", (it) => {
  it.scoped("sends one signed event, and tells the status and the beginning of the answer", function* () {
    const { all, deliveries, org, webhooks } = yield* customer
    const receiver = yield* Receiver.make((response) => response.writeHead(202).end(`taken ${"x".repeat(900)}`))
    const { endpoint, secret } = yield* webhooks.add({ org, url: `${receiver.url}/hook` })
    const { answer, duration_ms, event, ...result } = yield* webhooks.test(all, endpoint.id)
    assert.deepStrictEqual(result, { id: endpoint.id, url: endpoint.url, delivered: true, status: 202, failure: null })
    assert.match(answer, /^taken x{494}$/)
    assert.isAtLeast(duration_ms, 0)
    const [received, ...others] = receiver.all
    assert.isEmpty(others)
    assert.isDefined(received)
    assert.deepInclude(Receiver.verified(Redacted.value(secret), received), {
      type: "webhook.test",
      data: { endpoint_id: endpoint.id }
    })
    assert.strictEqual(Receiver.idOf(received), event)
    assert.isEmpty(yield* deliveries)
  })

  it.scoped(
    "that fails neither disables the endpoint nor counts as its failure, and a disabled one gets it",
    function* () {
      const { all, org, sql, webhooks } = yield* customer
      const receiver = yield* Receiver.make((response) => response.writeHead(410).end("gone"))
      const { endpoint } = yield* webhooks.add({ org, url: receiver.url })
      assert.deepInclude(yield* webhooks.test(all, endpoint.id), {
        delivered: false,
        status: 410,
        failure: "status 410",
        answer: "gone"
      })
      assert.deepStrictEqual(yield* webhooks.find(all, endpoint.id), endpoint)
      yield* sql`UPDATE webhook_endpoints SET disabled_at = now() WHERE id = ${endpoint.id}`
      assert.strictEqual((yield* webhooks.test(all, endpoint.id)).status, 410)
    }
  )

  it.scoped("waits for those of its organization, and is refused where four wait", function* () {
    const { all, org, webhooks } = yield* customer
    const answers: Array<() => void> = []
    const receiver = yield* Receiver.make((response) => void answers.push(() => response.writeHead(204).end()))
    const { endpoint } = yield* webhooks.add({ org, url: receiver.url })
    const results: Array<string> = []
    const one = Effect.match(webhooks.test(all, endpoint.id), {
      onFailure: ({ _tag }) => void results.push(_tag),
      onSuccess: ({ delivered }) => void results.push(String(delivered))
    })
    yield* Effect.fork(
      Effect.all(
        times(6).map(() => one),
        { concurrency: "unbounded" }
      )
    )
    yield* eventually(
      Effect.sync(() => answers.length + results.length),
      (count) => count === 2
    )
    assert.deepStrictEqual(results, ["GatewayBusy"])
    const answer = Effect.sync(() => {
      assert.isAtMost(answers.length, 1)
      for (const end of answers.splice(0)) end()
      return results.length
    })
    yield* eventually(answer, (count) => count === 6)
    assert.deepStrictEqual(
      results.slice(1),
      times(5).map(() => "true")
    )
  })

  it.scoped("is refused where the address is, and finds no endpoint of another organization", function* () {
    const { all, org, sql, webhooks } = yield* customer
    const { endpoint } = yield* webhooks.add({ org, url: "https://hooks.example/" })
    yield* sql`UPDATE webhook_endpoints SET url = 'http://10.0.0.1/' WHERE id = ${endpoint.id}`
    const refused = yield* webhooks.test(all, endpoint.id)
    assert.deepInclude(refused, { delivered: false, status: null, answer: "" })
    assert.match(refused.failure ?? "", /^refused: /)
    const other = OrganizationScope.only(OrgId.make(`org_${randomUUID()}`))
    assert.strictEqual((yield* Effect.flip(webhooks.test(other, endpoint.id)))._tag, "EndpointNotFound")
  })
})

const lookUp = (name: string) =>
  name.startsWith("known") ? Effect.succeed(["10.1.2.3"]) : Effect.fail(new Error("the name has no address"))
const withNames = Webhooks.layer.pipe(
  Layer.provideMerge(fetcherFor(["127.0.0.1"], { names: lookUp })),
  Layer.provideMerge(ledgers)
)

withLayer(withNames)("a name of a private address", (it) => {
  it.scoped("is refused as one that nobody has", function* () {
    const { all, org, webhooks } = yield* customer
    const added = (url: string) => Effect.flip(webhooks.add({ org, url }))
    const tried = (url: string) =>
      Effect.flatMap(webhooks.add({ org, url }), ({ endpoint }) => webhooks.test(all, endpoint.id))
    const known = [yield* added("http://known.internal/"), yield* tried("http://known.example/")] as const
    const unknown = [yield* added("http://other.internal/"), yield* tried("http://other.example/")] as const
    const textsOf = ([refused, result]: typeof known) => [refused.message, result.failure, result.status]
    assert.deepStrictEqual(JSON.parse(JSON.stringify(textsOf(known)).replaceAll("known", "other")), textsOf(unknown))
    assert.strictEqual(known[1].failure, "refused: known.example: the name has no public address")
  })
})

withLayer(layer)("endpoints of an organization", (it) => {
  it.scoped("are twenty at most, however many are added at once", function* () {
    const { org, sql, webhooks } = yield* customer
    const add = sql.withTransaction(webhooks.add({ org, url: "https://hooks.example/" }))
    yield* Effect.forEach(times(18), () => add, { discard: true })
    const added = yield* Effect.forEach(times(4), () => Effect.either(add), { concurrency: 4 })
    assert.lengthOf(yield* webhooks.list(org), 20)
    assert.lengthOf(
      added.filter((one) => one._tag === "Left" && one.left._tag === "TooManyEndpoints"),
      2
    )
  })
})
