import { execFile } from "node:child_process"
import { Effect, Fiber } from "effect"
import * as GatewayProcess from "../harness/gateway/GatewayProcess.ts"
import * as Checker from "./Checker.ts"
import * as Conduct from "./Conduct.ts"
import * as Faults from "./Faults.ts"
import { type Call, type Finding, group, type History, isGood, linesOf, type Window } from "./History.ts"
import * as Load from "./Load.ts"
import * as Rows from "./Rows.ts"
import * as Schedule from "./Schedule.ts"
import * as World from "./World.ts"

export interface Options {
  readonly seed: string
  readonly millis: number
  /** Below 1, faults are shorter and closer together. */
  readonly pace: number
  /** Whether the holds of dead gateways need not be waited for. */
  readonly hurry: boolean
}

export interface Report {
  readonly findings: ReadonlyArray<Finding>
  readonly history: History
  readonly rows: Rows.Rows
  readonly schedule: ReadonlyArray<Schedule.Episode>
}

/** How long the gateways may take to mend everything once no fault is left, in milliseconds. */
const mending = 60_000

/** A machine that gives us no processor for so long, in milliseconds, gives the gateways none either. */
const stall = 750

/** Notes when the machine was too busy to run anything of ours. */
const watchMachine = (now: () => number, windows: Array<Window>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      let last = now()
      return setInterval(() => {
        const [from, to] = [last, now()]
        last = to
        if (to - from > stall)
          windows.push({ kind: Conduct.starved, scope: "machine", sides: Schedule.sides, from, to })
      }, 50)
    }),
    (timer) => Effect.sync(() => clearInterval(timer))
  )

const verify = (databaseUrl: string) =>
  Effect.async<ReadonlyArray<Finding>>((resume) => {
    const env = { PATH: process.env["PATH"] ?? "", DATABASE_URL: databaseUrl }
    execFile(process.execPath, [GatewayProcess.program, "ledger", "verify"], { env }, (error, stdout, stderr) => {
      const detail = `${stdout}${stderr}`.trim()
      resume(Effect.succeed(error === null ? [] : [{ rule: "gateway ledger verify", detail, about: [] }]))
    })
  })

/** After everything each gateway serves again at once. */
const probe = (world: World.World, load: Load.Load) =>
  Effect.promise(async () => {
    const customer = world.customers.find(({ organization }) => organization === 2)
    if (customer === undefined) return []
    for (const side of Schedule.sides) await load.probe(customer, side)
    const last: ReadonlyArray<Call> = load.calls.slice(-Schedule.sides.length)
    return last
      .filter(({ outcome }) => !isGood(outcome))
      .map(
        ({ n }): Finding => ({ rule: "a gateway serves once its faults are over", detail: "a last chat", about: [n] })
      )
  })

const ended = ({ gateways }: World.World) =>
  Schedule.sides.flatMap((side) =>
    gateways[side].unexpected.map(
      (detail): Finding => ({
        rule: "a gateway starts, and does not end by itself",
        detail: `${side}: ${detail}`,
        about: []
      })
    )
  )

/** Plays a schedule under load, heals everything, and checks what is left. */
export const run = Effect.fnUntraced(function* ({ hurry, millis, pace, seed }: Options) {
  const schedule = Schedule.make({ seed, millis, pace })
  const clock = { startedAt: performance.now() }
  const now = () => performance.now() - clock.startedAt
  const world = yield* World.make({ seed, now })
  clock.startedAt = performance.now()

  const load = Load.make(world, { seed, now })
  const windows: Array<Window> = []
  yield* watchMachine(now, windows)
  const clients = yield* Effect.fork(Effect.promise(load.run))
  yield* Effect.all([Faults.play(world, schedule, { now, until: millis, windows }), Effect.sleep(millis)], {
    concurrency: 2
  })
  load.stop()
  yield* Fiber.join(clients)
  const probed = yield* probe(world, load)
  const history: History = { calls: load.calls, services: world.providers.services, windows }

  const healedAt = now()
  while (!(yield* Rows.isSettled(world.database.url)) && now() - healedAt < mending) {
    yield* Effect.sleep("1 second")
    if (hurry) yield* Rows.ageDeadInstances(world.database.url)
  }
  let rows = yield* Rows.read(world.database.url)
  let found = Checker.ofRows(history, rows)
  // Rows of the log come a moment after what they tell of.
  for (let again = 0; found.length > 0 && again < 5; again += 1) {
    yield* Effect.sleep("2 seconds")
    rows = yield* Rows.read(world.database.url)
    found = Checker.ofRows(history, rows)
  }
  const findings = [
    ...found,
    ...Conduct.ofHistory(history, world.customers),
    ...probed,
    ...(yield* verify(world.database.url)),
    ...ended(world)
  ]
  return { findings, history, rows, schedule } satisfies Report
})

const count = <A>(values: ReadonlyArray<A>, name: (value: A) => string) =>
  [...group(values, name)]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([what, all]) => `${all.length} ${what}`)
    .join(", ")

const kindOf = ({ outcome }: Call) =>
  outcome.kind === "answer"
    ? String(outcome.status)
    : outcome.kind === "stream"
      ? `stream ${outcome.end}`
      : outcome.kind

/** What a campaign did, and every finding with its history. */
export const show = ({ findings, history, rows, schedule }: Report, again: string): string =>
  [
    `${history.calls.length} requests: ${count(history.calls, kindOf)}`,
    `${history.windows.length} faults: ${count(history.windows, ({ kind }) => kind)}`,
    ...(findings.length === 0
      ? []
      : ["The schedule:", ...schedule.map((episode) => `  ${Schedule.describe(episode)}`)]),
    ...findings.flatMap(({ about, detail, rule }) => [
      "",
      `FOUND: ${rule}: ${detail}`,
      ...linesOf(history, new Set(about)).slice(0, 40),
      ...Checker.linesOf(rows, new Set(about)).slice(0, 20),
      `  again: ${again}`
    ]),
    `${findings.length} findings${findings.length === 0 ? "" : `: ${count(findings, ({ rule }) => rule)}`}`
  ].join("\n")
