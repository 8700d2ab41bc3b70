import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Layer, Schema } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { PaymentProvider, PaymentTerms } from "../../../src/services/payments/PaymentProvider.ts"
import { makePaymentReconciliation } from "../../../src/services/payments/PaymentReconciliation.ts"
import { PaymentSync } from "../../../src/services/payments/PaymentSync.ts"
import { Payments } from "../../../src/services/payments/Payments.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { StripeAccount, type StripeEvent } from "../../harness/stripe/StripeAccount.ts"

export const dollar = 1_000_000_000n

export const database = Layer.provideMerge(LedgerAdmin.layer, Postgres.layerWith({ maxConnections: 10 }))

const placeOf = ({ data: { object }, type }: StripeEvent) =>
  type.startsWith("checkout.") ? { session: object.id } : { paymentIntent: String(object["payment_intent"]) }

const Entries = Schema.Array(Schema.Struct({ ref: Schema.String, amount: Schema.BigInt }))
const State = Schema.Tuple(Schema.Struct({ balance: Schema.BigInt, isDisputed: Schema.Boolean }))

type Payer = Effect.Effect.Success<ReturnType<typeof payer>>

export const syncOf = ({ withProvider }: Pick<Payer, "withProvider">, suspendsDisputed = true) =>
  withProvider(Effect.provide(PaymentSync, Layer.fresh(PaymentSync.layer)), { suspendsDisputed })

/** An organization that pays by an account of its own at the provider, which is reached without a wire. */
export const payer = Effect.fnUntraced(function* (terms: Partial<PaymentTerms["Type"]> = {}) {
  const sql = yield* SqlClient.SqlClient
  const account = new StripeAccount()
  const org = OrgId.make(`org_${randomUUID()}`)
  yield* sql`INSERT INTO organizations (id, name) VALUES (${org}, ${org})`
  const limits = { minimum: NanoUsd(dollar), maximum: NanoUsd(100n * dollar) }
  const agreed = { ...limits, suspendsDisputed: true, publicUrl: "https://gateway.test", ...terms }
  const withProvider = <A, E, R>(effect: Effect.Effect<A, E, R>, changed: Partial<PaymentTerms["Type"]> = {}) =>
    effect.pipe(
      Effect.provideService(PaymentProvider, account.provider),
      Effect.provideService(PaymentTerms, { ...agreed, ...changed })
    )
  const { applyEvent, reconcile } = yield* withProvider(makePaymentReconciliation)
  const payments = yield* withProvider(Effect.provide(Payments, Layer.fresh(Payments.layer)))

  /** A payment whose page was made. */
  const begin = Effect.fnUntraced(function* (dollars: number) {
    const { id } = yield* payments.begin({ org, amount: NanoUsd(BigInt(dollars) * dollar) })
    yield* payments.checkout(OrganizationScope.all, id)
    const { session } = yield* payments.find(OrganizationScope.all, id)
    return { id, session: session ?? "" }
  })

  const deliver = (event: StripeEvent) => {
    const { created, data, id, type } = event
    const providerEvent = {
      id,
      type,
      object: data.object.id,
      createdAt: new Date(created * 1000),
      reportsFailure: type === "checkout.session.async_payment_failed"
    }
    return applyEvent(providerEvent, placeOf(event))
  }

  /** The balance, what the ledger has under each reference, and whether holds are refused. */
  const state = Effect.gen(function* () {
    const rows = yield* sql`
      SELECT substring(ref FROM '^stripe:([^:]+)') AS ref, sum(amount)::bigint AS amount FROM ledger_entries
      WHERE org_id = ${org} AND ref LIKE 'stripe:%' GROUP BY 1 HAVING sum(amount) <> 0`
    const entries = yield* Schema.decodeUnknown(Entries)(rows)
    const [{ balance, isDisputed }] = yield* Effect.flatMap(
      sql`SELECT balance, disputed_at IS NOT NULL AS is_disputed FROM organizations WHERE id = ${org}`,
      Schema.decodeUnknown(State)
    )
    return { balance, isDisputed, entries: new Map(entries.map(({ amount, ref }) => [ref, amount])) }
  })

  return { account, begin, deliver, org, payments, reconcile, state, withProvider }
})
