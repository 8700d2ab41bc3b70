import { SqlClient, Statement } from "@effect/sql"
import { Cause, Deferred, Effect, Exit, Fiber, Layer, Option } from "effect"
import { GatewayBusy } from "../../../src/domain/Failure.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { PaymentProvider } from "../../../src/services/payments/PaymentProvider.ts"
import { Payments } from "../../../src/services/payments/Payments.ts"
import { eventually, times } from "../../harness/database/Money.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { StripeAccount } from "../../harness/stripe/StripeAccount.ts"
import { database, dollar, payer } from "./PaymentBench.ts"

const setUp = Effect.fnUntraced(function* () {
  const given = yield* payer()
  const { org, payments } = given
  const sql = yield* SqlClient.SqlClient
  const failure = (id: string) =>
    Effect.map(Effect.flip(payments.checkout(OrganizationScope.all, id)), ({ _tag }) => _tag)
  const beginOnly = Effect.map(payments.begin({ org, amount: NanoUsd(10n * dollar) }), ({ id }) => id)
  const age = (id: string, seconds: number) =>
    sql`UPDATE payments SET created_at = now() - ${seconds} * interval '1 second' WHERE id = ${id}`

  const anotherGateway = (provider: PaymentProvider["Type"]) =>
    given.withProvider(
      Effect.provide(Payments, Layer.provide(Layer.fresh(Payments.layer), Layer.succeed(PaymentProvider, provider)))
    )

  /** Another gateway, whose provider answers when told to; a checkout goes on once the provider was asked. */
  const slowGateway = Effect.fnUntraced(function* (provider: PaymentProvider["Type"]) {
    const [asked, answered] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const slow: PaymentProvider["Type"] = {
      ...provider,
      createSession: (order) =>
        Deferred.succeed(asked, undefined).pipe(
          Effect.zipRight(Deferred.await(answered)),
          Effect.zipRight(provider.createSession(order))
        )
    }
    const slowPayments = yield* anotherGateway(slow)
    const checkout = (id: string) =>
      Effect.zipLeft(Effect.fork(slowPayments.checkout(OrganizationScope.all, id)), Deferred.await(asked))
    return { answer: Deferred.succeed(answered, undefined), checkout }
  })
  return { ...given, age, anotherGateway, beginOnly, failure, slowGateway, sql }
})

withLayer(database)("the page of a payment", (it) => {
  for (const isDelayed of [false, true]) {
    it.effect(`is not to be paid again, whether or not an event has told of it (delayed: ${isDelayed})`, function* () {
      const { account, begin, deliver, failure, payments, state } = yield* setUp()
      const { id, session } = yield* begin(10)
      const event = account.complete(session, isDelayed)
      assert.strictEqual(yield* failure(id), "PaymentCompleted")
      assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "open")
      yield* deliver(event)
      assert.strictEqual(yield* failure(id), "PaymentCompleted")
      assert.strictEqual((yield* state).balance, isDelayed ? 0n : 10n * dollar)
    })
  }

  it.effect("is not to be paid again where its money came and could not be credited", function* () {
    const { account, begin, deliver, failure, org, payments, sql } = yield* setUp()
    const { id, session } = yield* begin(10)
    yield* sql`UPDATE organizations SET deleted_at = now() WHERE id = ${org}`
    yield* deliver(account.complete(session))
    assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "refused")
    assert.strictEqual(yield* failure(id), "PaymentCompleted")
  })

  it.effect("may be followed by another once a bank's debit has failed, told or not", function* () {
    const { account, begin, deliver, failure, payments } = yield* setUp()
    const { id, session } = yield* begin(10)
    yield* deliver(account.complete(session, true))
    const event = account.fail(session)
    assert.strictEqual(yield* failure(id), "PaymentClosed")
    yield* deliver(event)
    assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).status, "failed")
    assert.strictEqual(yield* failure(id), "PaymentClosed")
  })

  it.effect("is the one that was made while a second request for it waited", function* () {
    const { account, age, beginOnly, slowGateway, sql } = yield* setUp()
    const { answer, checkout } = yield* slowGateway(account.provider)
    const id = yield* beginOnly
    const first = yield* checkout(id)
    const second = yield* checkout(id)
    yield* Effect.repeatN(sql`SELECT pg_sleep(0.002)`, 20)
    yield* age(id, 61)
    yield* answer
    assert.deepStrictEqual(yield* Fiber.join(second), yield* Fiber.join(first))
    assert.strictEqual(account.sessions.size, 1)
  })

  it.effect("lets ten more requests of its organization wait, and refuses others", function* () {
    const { account, beginOnly, slowGateway } = yield* setUp()
    const { answer, checkout } = yield* slowGateway(account.provider)
    const id = yield* beginOnly
    const all = yield* Effect.forEach(times(16), () => checkout(id))
    const outcomes = Effect.forEach(all, Fiber.poll)
    const ended = yield* eventually(
      Effect.map(outcomes, (polled) => polled.filter(Option.isSome)),
      ({ length }) => length >= 5
    )
    for (const { value } of ended) {
      assert.instanceOf(Exit.isFailure(value) ? Cause.squash(value.cause) : value, GatewayBusy)
    }
    yield* answer
    const exits = yield* Effect.forEach(all, Fiber.await)
    const pages = exits.filter(Exit.isSuccess)
    assert.lengthOf(pages, 11)
    assert.lengthOf(new Set(pages.map(({ value }) => value.url)), 1)
  })

  it.scoped("is the one that was made while this gateway stood still", function* () {
    const { account, age, anotherGateway, beginOnly, payments } = yield* setUp()
    const other = yield* anotherGateway(account.provider)
    const id = yield* beginOnly
    const [stands, goesOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const goOn = Deferred.succeed(goesOn, undefined)
    yield* Effect.addFinalizer(() => goOn)
    const checkout = yield* payments.checkout(OrganizationScope.all, id).pipe(
      Statement.withTransformer((statement) =>
        Effect.as(
          statement.compile()[0].includes("AS age")
            ? Effect.zipRight(Deferred.succeed(stands, undefined), Deferred.await(goesOn))
            : Effect.void,
          statement
        )
      ),
      Effect.fork
    )
    yield* Deferred.await(stands)
    const made = yield* other.checkout(OrganizationScope.all, id)
    yield* age(id, 121)
    yield* goOn
    assert.deepStrictEqual(yield* Fiber.join(checkout), made)
  })

  // Until two minutes are over, another gateway that began to keep one in time may not have ended.
  for (const [seconds, refusal] of [
    [106, "PaymentProviderFailed"],
    [121, "PaymentClosed"]
  ] as const) {
    it.effect(`is handed out by nobody where it comes after ${seconds} seconds`, function* () {
      const { account, age, beginOnly, payments, slowGateway } = yield* setUp()
      const { answer, checkout } = yield* slowGateway(account.provider)
      const id = yield* beginOnly
      const late = yield* checkout(id)
      yield* age(id, seconds)
      yield* answer
      assert.strictEqual((yield* Effect.flip(Fiber.join(late)))._tag, refusal)
      assert.strictEqual((yield* payments.find(OrganizationScope.all, id)).session, null)
    })
  }

  it.effect("is one, though two gateways have accounts of their own, and neither says to begin another", function* () {
    const { beginOnly, payments, slowGateway } = yield* setUp()
    const { answer, checkout } = yield* slowGateway(new StripeAccount().provider)
    const id = yield* beginOnly
    const second = yield* checkout(id)
    const first = yield* payments.checkout(OrganizationScope.all, id)
    yield* answer
    assert.strictEqual((yield* Effect.flip(Fiber.join(second)))._tag, "PaymentProviderFailed")
    assert.deepStrictEqual(yield* payments.checkout(OrganizationScope.all, id), first)
  })

  it.effect("is none any more once it has expired, told or not", function* () {
    const { account, begin, deliver, failure } = yield* setUp()
    const { id, session } = yield* begin(10)
    const event = account.expire(session)
    assert.strictEqual(yield* failure(id), "PaymentClosed")
    yield* deliver(event)
    assert.strictEqual(yield* failure(id), "PaymentClosed")
  })

  it.effect("is made in the first minute alone, so that no more are open than may be begun", function* () {
    const { account, age, beginOnly, failure, payments } = yield* setUp()
    const id = yield* beginOnly
    const aged = (seconds: number) => Effect.zipRight(age(id, seconds), failure(id))
    // Another gateway may be making it still: nobody is told to begin a second payment.
    assert.strictEqual(yield* aged(61), "PaymentProviderFailed")
    assert.strictEqual(yield* aged(121), "PaymentClosed")
    assert.strictEqual(account.sessions.size, 0)
    const young = yield* beginOnly
    const { url } = yield* payments.checkout(OrganizationScope.all, young)
    assert.deepStrictEqual(yield* payments.checkout(OrganizationScope.all, young), { id: young, url })
    assert.strictEqual(account.sessions.size, 1)
  })

  it.effect("counts no more, once it can come no more, among those that an organization may begin", function* () {
    const { age, beginOnly } = yield* setUp()
    const begun = yield* Effect.forEach(times(10), () => beginOnly)
    assert.strictEqual((yield* Effect.flip(beginOnly))._tag, "TooManyOpenPayments")
    yield* age(begun[0] ?? "", 121)
    yield* beginOnly
    assert.strictEqual((yield* Effect.flip(beginOnly))._tag, "TooManyOpenPayments")
  })

  it.effect("says nothing of a payment whose session the account at the provider does not know", function* () {
    const { account, begin, failure } = yield* setUp()
    const { id, session } = yield* begin(10)
    account.sessions.delete(session)
    assert.strictEqual(yield* failure(id), "PaymentProviderFailed")
  })

  it.effect("is neither made nor handed out for an organization that was deleted", function* () {
    const { account, begin, beginOnly, failure, org, sql } = yield* setUp()
    const [without, paid, unpaid, expired] = [yield* beginOnly, yield* begin(10), yield* begin(10), yield* begin(10)]
    account.complete(paid.session, true)
    account.expire(expired.session)
    yield* sql`UPDATE organizations SET deleted_at = now() WHERE id = ${org}`
    assert.strictEqual(yield* failure(without), "PayerDeleted")
    assert.strictEqual(yield* failure(unpaid.id), "PayerDeleted")
    assert.strictEqual(yield* failure(expired.id), "PayerDeleted")
    assert.strictEqual(yield* failure(paid.id), "PaymentCompleted")
    assert.strictEqual(account.sessions.size, 3)
  })
})
