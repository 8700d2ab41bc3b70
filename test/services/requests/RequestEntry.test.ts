import { Schema } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { withProviderId } from "../../../src/services/requests/RequestColumns.ts"
import { type RequestEntry, toRow } from "../../../src/services/requests/RequestEntry.ts"
import { assert, describe, it } from "../../harness/It.ts"

const attempt = (providerRequestId?: string) => ({
  route: "m@p",
  provider: "p",
  outcome: "ok",
  status: 200,
  ms: 1,
  ...(providerRequestId === undefined ? {} : { providerRequestId })
})

const entryWith = (attempts: RequestEntry["attempts"]): RequestEntry => ({
  id: "01a205b1-0000-7000-8000-000000000001",
  requestId: "req_1",
  at: 0,
  surface: "chat",
  status: 200,
  code: null,
  error: undefined,
  org: OrgId.make("org_1"),
  key: KeyId.make("key_1"),
  address: undefined,
  userAgent: undefined,
  endUser: undefined,
  tag: undefined,
  model: "m",
  route: "m@p",
  preferredRoute: undefined,
  provider: "p",
  stream: false,
  attempts,
  notes: [],
  usage: undefined,
  hold: undefined,
  charge: 0n,
  cost: undefined,
  firstByteMs: undefined,
  totalMs: 1
})

const Stored = Schema.Struct({
  attempts: Schema.Array(Schema.Struct({ provider_request_id: Schema.optional(Schema.String) })),
  provider_request_id: Schema.optionalWith(Schema.String, { default: () => "" })
})
const readStored = Schema.decodeUnknownSync(Schema.parseJson(Stored))

/** The ids of attempts as the row has them, and as a reader restores them. */
const idsOf = (...given: RequestEntry["attempts"]) => {
  const { attempts, provider_request_id: id } = readStored(JSON.stringify(toRow(entryWith(given))))
  return {
    stored: attempts.map((one) => one.provider_request_id),
    restored: withProviderId("provider_request_id", attempts, id === "" ? null : id).map(
      (one) => one.provider_request_id
    )
  }
}

describe("the provider request ids of attempts", () => {
  it("are stored once if the last attempt has the id of the row", () => {
    assert.deepStrictEqual(idsOf(attempt("a"), attempt("b")), { stored: ["a", undefined], restored: ["a", "b"] })
  })

  it("are stored with their attempts otherwise", () => {
    const kept = (...ids: ReadonlyArray<string | undefined>) =>
      assert.deepStrictEqual(idsOf(...ids.map(attempt)), { stored: [...ids], restored: [...ids] })
    kept("a", undefined)
    kept("a", "a")
    kept(undefined, undefined)
    kept()
  })

  it("are unchanged in rows that have them twice", () => {
    const attempts = [{ provider_request_id: "a" }, { provider_request_id: "b" }]
    assert.strictEqual(withProviderId("provider_request_id", attempts, "b"), attempts)
  })
})
