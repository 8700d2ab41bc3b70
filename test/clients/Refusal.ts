import { Effect } from "effect"
import { assertClientError, type Told, thrownBy } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert } from "../harness/It.ts"

export const rateHeaders = ["x-ratelimit-limit", "x-ratelimit-remaining"]

type Customer = Served.Customer

/** A chat, or what else is asked for at the path, refused, with all that goes with it: the rate headers, the row in the log, and the money left alone. */
export const refusedAs = Effect.fnUntraced(function* (
  { openai, spent }: Customer,
  body: object,
  told: Told,
  path = "/chat/completions"
) {
  const before = yield* spent
  const error = assertClientError(yield* thrownBy(() => openai.post(path, { body })), told)
  assert.strictEqual(yield* spent, before)
  for (const name of rateHeaders) assert.match(error.headers?.get(name) ?? "", /^\d+$/, name)
  const row = yield* Served.logged(error.requestID)
  assert.deepStrictEqual([row.status, row.code, row.charge], [told.status, told.code, 0n])
  return { error, row }
})
