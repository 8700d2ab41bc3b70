import { Effect, Metric, Predicate } from "effect"
import { adminDocument } from "../../src/http/admin/AdminApi.ts"
import { toWire } from "../../src/http/errors/ErrorMessages.ts"
import { errorTable } from "../../src/http/errors/ErrorTable.ts"
import { snapshot } from "../../src/http/system/Prometheus.ts"
import { databaseFamilies } from "../../src/http/system/SystemHandlers.ts"
import * as Metrics from "../../src/services/metrics/Metrics.ts"
import type { Page } from "./Markdown.ts"

const documentedFailures = Object.values(errorTable).flatMap((row) =>
  "docs" in row ? [row.docs].flat().flatMap((line) => ("failure" in line ? [line.failure()] : [])) : []
)

const errorTexts = [...Object.values(errorTable).map(({ example }) => example("chat")), ...documentedFailures].flatMap(
  (failure) => {
    const { hint, message } = toWire(failure).body.error
    return hint === undefined ? [message] : [message, hint]
  }
)

const isText = (key: string): boolean => key === "description" || key === "summary"

const descriptionsIn = (value: unknown): ReadonlyArray<string> => {
  if (Array.isArray(value)) return value.flatMap(descriptionsIn)
  return Predicate.isRecord(value)
    ? Object.entries(value).flatMap(([key, part]) =>
        isText(key) && typeof part === "string" ? [part] : descriptionsIn(part)
      )
    : []
}

const isMetric = (value: unknown): value is Metric.Metric<unknown, never, unknown> =>
  Predicate.hasProperty(value, Metric.MetricTypeId)

/** Registers every exported metric, since only registered ones are in a snapshot. */
const metricHelp = Effect.gen(function* () {
  for (const value of Object.values(Metrics)) if (isMetric(value)) value.register()
  const total = { label: "", count: 0, oldestMs: 0 }
  const database = databaseFamilies({
    holds: [total],
    videos: [total],
    webhooks: [total],
    organizations: [{ usd: 1, count: 0 }]
  })
  return [...(yield* snapshot), ...database].map(({ help }) => help)
}).pipe(Effect.provide(Metrics.layer({ version: "test" })), Effect.scoped)

const pageOf = (file: string, texts: ReadonlyArray<string>): Page => ({ file, text: [...new Set(texts)].join("\n\n") })

/** Texts of the program that people read, as pages of one sentence or more per paragraph. */
export const programPages: ReadonlyArray<Page> = [
  pageOf("the error table", errorTexts),
  pageOf("the admin API document", descriptionsIn(adminDocument())),
  pageOf("the metrics", await Effect.runPromise(metricHelp))
]
