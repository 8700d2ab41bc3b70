// Prints what a load takes of gateways, PostgreSQL and bucket, as a table of Markdown; docs/scale.md explains each line.
import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"

const measured = JSON.parse(readFileSync(new URL("costs.json", import.meta.url), "utf8"))

/** What a load is, where nothing else is said. */
const usual = {
  /** Chats and streams begun in a second, at the peak. */
  requests: 0,
  /** Requests of a month, in place of those of a second. */
  month: 0,
  /** Open at once, beside the requests. */
  streams: 0,
  "stream-seconds": 60,
  events: 200,
  /** How many times the average the peak is. */
  peak: 3,
  /** Of all requests. */
  images: 0.01,
  videos: 0.001,
  "retention-days": 90,
  /** Share of its core that a process is given work for. */
  busy: 0.6,
  ...measured
}

const monthSeconds = 30 * 86_400
const connectionsOfProcess = 11
const clientsOfProcess = 10_000

/** What stands in for a process that is lost or restarted. */
const spare = 1

const amountOf = (given) => {
  const of = { ...usual, ...given }
  const streamed = of.streams / of["stream-seconds"]
  const rate = of.month > 0 ? Math.max((of.month / monthSeconds) * of.peak, streamed) : of.requests + streamed
  const average = rate / of.peak

  const gatewayCores = (rate * of["chat-ms"] + streamed * of.events * of["event-ms"]) / 1000
  const needed = Math.max(gatewayCores / of.busy, of.streams / clientsOfProcess)
  const processes = Math.ceil(needed) + spare

  // A batch is what comes while a statement runs, which takes its wait and half of the two statements' work.
  const perMs = rate / processes / 1000
  const batch = Math.max(
    1,
    (perMs * (of["wait-ms"] + of["statement-ms"] / 2)) / Math.max(0.1, 1 - (perMs * of["row-ms"]) / 2)
  )
  const databaseCores = (rate * (of["statement-ms"] / batch + of["row-ms"])) / 1000

  const daily = average * 86_400
  const streamBytes = needed > 0 ? (of.streams / needed) * of["stream-kb"] * 1e3 : 0
  return {
    "requests a second, at the peak": count(rate),
    "requests a month": count(average * monthSeconds),
    "gateway: cores busy at the peak": count(gatewayCores),
    "gateway: processes of one core, with one to spare": String(processes),
    "gateway: memory of a process": bytes(of["process-mb"] * 1e6 + streamBytes),
    "PostgreSQL: requests in a batch, at the peak": batch.toFixed(1),
    "PostgreSQL: cores busy at the peak": count(databaseCores),
    "PostgreSQL: connections": String(processes * connectionsOfProcess),
    "PostgreSQL: WAL a second, at the peak": bytes(rate * of["wal-kb"] * 1e3),
    "PostgreSQL: WAL a day": bytes(daily * of["wal-kb"] * 1e3),
    [`PostgreSQL: request log, ${of["retention-days"]} days`]: bytes(daily * of["retention-days"] * of["log-kb"] * 1e3),
    "PostgreSQL: ledger, each year": bytes(daily * 365 * of["ledger-kb"] * 1e3),
    "bucket: each month": bytes(
      average * monthSeconds * (of.images * of["image-mb"] + of.videos * of["video-mb"]) * 1e6
    )
  }
}

/** Two digits: more would pretend to be known. */
const significant = (value) => Number(value.toPrecision(2))
const count = (value) => significant(value).toLocaleString("en-US")
const bytes = (value) => {
  const [unit, size] = [
    ["PB", 1e15],
    ["TB", 1e12],
    ["GB", 1e9],
    ["MB", 1e6]
  ].find(([, least]) => value >= least) ?? ["kB", 1e3]
  return `${significant(value / size)} ${unit}`
}

const scenarios = {
  "100 a second": { requests: 100 },
  "1,000 a second": { requests: 1_000 },
  "10,000 a second": { requests: 10_000 },
  "100,000 streams": { streams: 100_000 },
  "a billion a month": { month: 1_000_000_000 }
}

const { values } = parseArgs({
  options: Object.fromEntries(Object.keys(usual).map((name) => [name, { type: "string" }]))
})
const given = Object.fromEntries(
  Object.entries(values).map(([name, text]) => {
    const least = name === "peak" ? 1 : name === "busy" ? 0.01 : 0
    if (!(Number(text) >= least)) throw new Error(`--${name} takes a number of ${least} or more`)
    return [name, Number(text)]
  })
)
const isLoad = ["requests", "month", "streams"].some((name) => given[name] > 0)
const columns = Object.entries(isLoad ? { "your load": given } : scenarios).map(([name, load]) => [
  name,
  amountOf({ ...given, ...load })
])
const names = Object.keys(columns[0][1])
const line = (cells) => `| ${cells.join(" | ")} |`
console.log(
  [
    line(["", ...columns.map(([name]) => name)]),
    line(["", ...columns].map(() => "---")),
    ...names.map((name) => line([name, ...columns.map(([, amounts]) => amounts[name])]))
  ].join("\n")
)
