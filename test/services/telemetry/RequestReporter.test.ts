import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { snapshot } from "../../../src/http/system/Prometheus.ts"
import { Catalog } from "../../../src/services/catalog/Catalog.ts"
import { RequestRecord } from "../../../src/services/telemetry/RequestRecord.ts"
import { RequestReporter } from "../../../src/services/telemetry/RequestReporter.ts"
import { keys, load } from "../../harness/fixtures/Catalogs.ts"

const catalog = Layer.unwrapEffect(
  Effect.map(load({ environment: keys }), (current) => Layer.mock(Catalog, { current, accounts: [] }))
)

const record = (n: number, model: string) => {
  const made = new RequestRecord({
    id: String(n),
    requestId: `req_${n}`,
    surface: "chat",
    caller: { key: KeyId.make(`key_${n}`), org: OrgId.make(`org_${n}`), scopes: undefined, rpm: undefined },
    limit: 1,
    at: 0,
    startedAt: 0
  })
  made.model = model
  return made
}

describe("the series of answers", () => {
  it.effect("do not grow with keys, nor with models that customers invent", () =>
    Effect.gen(function* () {
      const { report } = yield* RequestReporter
      const { current } = yield* Catalog
      const known = current.models[0]?.id ?? ""
      const path = "/v1/chat/completions"
      const answered = { surface: "chat", method: "POST", path, status: 200, code: null, startedAt: 0 }
      for (let n = 0; n < 10_000; n += 1) report({ ...answered, requestId: "r", record: record(n, known) })
      for (let n = 0; n < 1_000; n += 1) {
        report({ ...answered, status: 404, requestId: "r", record: record(n, `invented "${n}"\n`) })
      }
      const families = yield* Effect.promise(() => Effect.runPromise(snapshot))
      const requests = families.find(({ name }) => name === "gateway_requests_total")?.samples ?? {}
      assert.deepStrictEqual(Object.values(requests), ["10000", "1000"])
      const series = families.reduce((sum, { samples }) => sum + Object.keys(samples).length, 0)
      assert.isBelow(series, 100)
    }).pipe(Effect.provide(Layer.provideMerge(RequestReporter.layer, catalog)))
  )
})
