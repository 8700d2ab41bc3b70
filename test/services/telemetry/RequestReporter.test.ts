import { Effect, Layer } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { type Families, snapshot } from "../../../src/http/system/Prometheus.ts"
import { Catalog } from "../../../src/services/catalog/Catalog.ts"
import { RequestRecord } from "../../../src/services/requests/RequestRecord.ts"
import { RequestReporter } from "../../../src/services/telemetry/RequestLines.ts"
import { keys, load } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"

const catalog = Layer.unwrapEffect(
  Effect.map(load({ environment: keys }), (current) => Layer.mock(Catalog, { current, accounts: [] }))
)

const summary = (n: number, model: string) => {
  const made = new RequestRecord({
    id: String(n),
    requestId: `req_${n}`,
    surface: "chat",
    caller: { key: KeyId.make(`key_${n}`), org: OrgId.make(`org_${n}`), scopes: undefined, rpm: undefined },
    rateLimit: 1,
    at: 0,
    startedAt: 0
  })
  made.add({ type: "resolved", model })
  return made.summary
}

const seriesOf = (families: Families) => new Map(families.flatMap(({ samples }) => Object.entries(samples)))

describe("the series of answers", () => {
  it.effect("do not grow with keys, nor with models that customers invent", () =>
    Effect.gen(function* () {
      const { report } = yield* RequestReporter
      const { current } = yield* Catalog
      const known = current.models[0]?.id ?? ""
      const path = "/v1/chat/completions"
      const answered = { surface: "chat", method: "POST", path, status: 200, code: null, startedAt: 0 }
      // Other tests of the process have counted too.
      const before = seriesOf(yield* Effect.promise(() => Effect.runPromise(snapshot)))
      for (let n = 0; n < 10_000; n += 1) report({ ...answered, requestId: "r", summary: summary(n, known) })
      for (let n = 0; n < 1_000; n += 1) {
        report({ ...answered, status: 404, requestId: "r", summary: summary(n, `invented "${n}"\n`) })
      }
      const after = seriesOf(yield* Effect.promise(() => Effect.runPromise(snapshot)))
      const added = [...after].filter(([series, value]) => before.get(series) !== value)
      const requests = added.filter(([series]) => series.startsWith("gateway_requests_total"))
      assert.deepStrictEqual(
        requests.map(([series, value]) => Number(value) - Number(before.get(series) ?? 0)).toSorted((a, b) => b - a),
        [10_000, 1_000]
      )
      assert.isBelow(added.length, 100)
    }).pipe(Effect.provide(Layer.provideMerge(RequestReporter.layer, catalog)))
  )
})
