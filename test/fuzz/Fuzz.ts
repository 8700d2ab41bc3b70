import { execFileSync } from "node:child_process"
import { writeFile } from "node:fs/promises"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Effect, FastCheck as fc, Predicate, Schema } from "effect"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { openAccount } from "../harness/client/Account.ts"
import { eventually } from "../harness/database/Money.ts"
import * as Random from "../harness/fixtures/Random.ts"
import { png } from "../harness/fixtures/TinyMedia.ts"
import { Deployment } from "../harness/gateway/Deployment.ts"
import { program } from "../harness/gateway/GatewayProcess.ts"
import * as Upstream from "../harness/upstream/FakeUpstream.ts"
import { answers, streams } from "../harness/upstream/Upstreams.ts"
import { heavy } from "./Heavy.ts"
import * as Neighbour from "./Neighbour.ts"
import { type Hostile, hostile } from "./Requests.ts"
import * as Rules from "./Rules.ts"
import * as Sender from "./Sender.ts"

export interface Options {
  readonly seed: string
  readonly count: number
  /** Runs this case alone. */
  readonly only: number | undefined
}

interface Finding {
  readonly index: number | undefined
  readonly fault: string
  readonly request: string
}

const catalog = (upstream: string) => {
  const shared = { context_length: 100_000, max_output: 8_000, image_tokens: 1_000, family: "A" }
  const pricing = { prompt_per_1m_usd: 1, completion_per_1m_usd: 2 }
  const vendor = { base_url: `${upstream}/v1`, credential: "HUSH_KEY" }
  const sandbox = [{ provider: "sandbox", model: "hush" }]
  const video = {
    surface: "video",
    pricing: { per_second_usd: 0.1 },
    seconds: { allowed: [4, 6], default: 4 },
    routes: sandbox
  }
  const capabilities = ["tools", "vision", "response_format", "web_search"]
  return JSON.stringify({
    providers: {
      talker: { adapter: "openai-chat", ...vendor },
      drawer: { adapter: "openai-images", ...vendor },
      sandbox: { adapter: "sandbox" }
    },
    families: { A: { sampling: true, max_output_policy: "clamp" } },
    models: [
      {
        id: "m1",
        surface: "chat",
        ...shared,
        pricing,
        reasoning: "none",
        capabilities: [],
        routes: [{ provider: "talker", model: "hush" }]
      },
      {
        id: "s1",
        surface: "chat",
        ...shared,
        pricing,
        reasoning: ["low", "high"],
        capabilities,
        web_search_tokens: 1_000,
        routes: sandbox
      },
      { id: "i1", surface: "image", pricing: { per_image_usd: 0.04 }, routes: [{ provider: "drawer", model: "hush" }] },
      { id: "si", surface: "image", variants: [{ resolution: "1K", price_usd: 0.04 }], edit: true, routes: sandbox },
      { id: "v1", ...video, reference_image: "optional" },
      { id: "v2", ...video, reference_image: "required" }
    ]
  })
}

const isStream = (body: unknown) => Predicate.isRecord(body) && body["stream"] === true

/** A provider that always serves well. */
const provider = Upstream.serving((response, received) => {
  const image = { created: 1, data: [{ b64_json: png.toString("base64") }] }
  const reply = received.path.endsWith("/chat/completions")
    ? isStream(received.body)
      ? streams("one", " two")
      : answers()
    : Upstream.json(200, image)
  return reply(response, received)
})

/** One request in so many is a heavy one. */
const heavyEvery = 300

/** The case of this number; the seed and the number decide all of it. */
export const caseOf = (seed: string, index: number): Hostile => {
  const [made] = fc.sample(index % heavyEvery === heavyEvery - 1 ? heavy : hostile, {
    seed: Random.hash(`${seed}:${index}`) | 0,
    numRuns: 1
  })
  if (made === undefined) throw new Error("nothing was generated")
  return made
}

const show = ({ body, headers, method, target, what }: Hostile) => {
  const text = Buffer.from(body.subarray(0, 1_000)).toString("utf8")
  const fields = headers.map(([name, value]) => `${name}: ${value.slice(0, 100)}`).join("; ")
  return `${what}: ${method} ${target.slice(0, 200)} {${fields}} ${body.length} bytes: ${JSON.stringify(text.slice(0, 300))}`
}

/** Resident memory, in MiB. */
const memoryOf = (pid: number | undefined) =>
  Math.round(Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" })) / 1024)

const settled = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`SELECT count(*)::int AS open FROM all_holds WHERE state = 'open'`
  const [{ open }] = yield* Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ open: Schema.Number })))(rows)
  return open
})

/** The longest that the neighbour may wait, in milliseconds; generous, for machines that do much else. */
const maxWait = 5_000

/** The memory that a gateway may keep after everything, in MiB. */
const mostKept = 300

/** How many requests are under way at a time. */
const concurrency = 6

/** Sends generated requests beside a healthy neighbour, and checks each answer and what is left afterwards. */
export const run = Effect.fnUntraced(function* ({ count, only, seed }: Options) {
  const { directory, gateway } = yield* Deployment
  const upstream = yield* provider
  const file = path.join(directory, "fuzz.json")
  yield* Effect.promise(() => writeFile(file, catalog(upstream.url)))
  // By its first lines, which let memory go back.
  const served = yield* gateway({
    command: { line: [program, "serve"], cwd: directory },
    env: { CATALOG_FILE: file, HUSH_KEY: "sk-hush", LOG_FORMAT: "json", DEFAULT_RPM: "1000000" }
  })
  const fuzzer = yield* openAccount({ nanoUsd: 1_000_000_000_000_000n })
  const neighbour = yield* openAccount({})
  const findings: Array<Finding> = []
  const statuses = new Map<string, number>()
  const underWay = new Set<number>()

  const attack = (index: number) =>
    Effect.promise(async () => {
      const request = caseOf(seed, index)
      underWay.add(index)
      const result = await Sender.send(served.url, fuzzer.secret, request)
      underWay.delete(index)
      const kind = result.kind === "answer" ? String(result.answer.status) : result.kind
      statuses.set(kind, (statuses.get(kind) ?? 0) + 1)
      for (const fault of Rules.faultsOf(request, result)) findings.push({ index, fault, request: show(request) })
    })

  // What is bought by the first requests is not what later ones lose.
  for (let index = 0; index < 100; index++) yield* attack(-1 - index)
  const memoryBefore = memoryOf(served.process.pid)
  const health = Neighbour.start(served.url, neighbour.secret, () => underWay)
  const indices = only === undefined ? Array.from({ length: count }, (_, index) => index) : [only]
  yield* Effect.forEach(indices, attack, { concurrency, discard: true })
  const { failures, worst, answers: neighbourAnswers } = yield* Effect.promise(health.stop)

  const own = (fault: string, request = "") => findings.push({ index: undefined, fault, request })
  if (worst.millis > maxWait) {
    const beside = worst.beside.map((index) => `case ${index} (${caseOf(seed, index).what})`).join(", ")
    own(`the neighbour waited ${Math.round(worst.millis)} ms`, `beside ${beside}`)
  }
  for (const failure of new Set(failures)) own(`the neighbour got ${failure}`)
  const open = yield* Effect.either(eventually(settled, (holds) => holds === 0, "60 seconds"))
  if (open._tag === "Left") own(`holds stay open: ${open.left.message}`)
  const { violations } = yield* Effect.flatMap(LedgerAdmin, ({ verify }) => verify)
  if (violations.length > 0) own(`the ledger is broken: ${JSON.stringify(violations)}`)
  if (served.process.exitCode !== null || served.process.signalCode !== null)
    own(`the gateway ended: ${served.stderr()}`)
  const defects = served
    .stderr()
    .split("\n")
    .filter((line) => /"logLevel":"ERROR"|"level":"ERROR"/.test(line))
  for (const line of new Set(defects.map((each) => each.slice(0, 400)))) own(`the gateway logged ${line}`)
  const memoryAfter = memoryOf(served.process.pid)
  if (memoryAfter - memoryBefore > mostKept) own(`${memoryAfter - memoryBefore} MiB of memory stay taken`)
  return { findings, statuses, worst, neighbourAnswers, memoryBefore, memoryAfter }
})

export type Report = Effect.Effect.Success<ReturnType<typeof run>>

/** What a campaign did, and every finding with its request. */
export const describe = (report: Report, again: (index: number | undefined) => string): string => {
  const { findings, memoryAfter, memoryBefore, neighbourAnswers, statuses, worst } = report
  const counts = [...statuses].toSorted(([, a], [, b]) => b - a).map(([kind, times]) => `${times} ${kind}`)
  return [
    `answers: ${counts.join(", ")}`,
    `the neighbour's worst of ${neighbourAnswers} answers took ${Math.round(worst.millis)} ms`,
    `memory before ${memoryBefore} MiB, after ${memoryAfter} MiB`,
    ...findings.flatMap(({ fault, index, request }) => [`FOUND: ${fault}`, `  ${request}`, `  again: ${again(index)}`]),
    `${findings.length} findings`
  ].join("\n")
}
