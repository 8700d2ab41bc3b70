import { Effect } from "effect"
import * as Pg from "pg"
import type { FaultProxy } from "./FaultProxy.ts"
import type { Window } from "./History.ts"
import { type Account, accounts, type Episode, type Fault, type Side, sides, type Target } from "./Schedule.ts"
import type { World } from "./World.ts"

/** Statements that close a hold, alone or in a transaction. */
const settlement = /DELETE FROM open_holds|UPDATE holds AS hold|^COMMIT/

/** Begins a fault; what comes back ends it. */
type Begin = Effect.Effect<Effect.Effect<unknown>>

const both = <A extends string>(target: A | "both", all: ReadonlyArray<A>) => (target === "both" ? all : [target])
const sync = (begin: () => void, end: () => void = () => {}): Begin => Effect.as(Effect.sync(begin), Effect.sync(end))

const lose = (proxies: ReadonlyArray<FaultProxy>, thenCut: boolean): Begin =>
  sync(
    () => {
      for (const proxy of proxies) {
        proxy.loseAnswers(settlement, () => {
          if (thenCut) proxy.set({ kind: "cut" })
        })
      }
    },
    () => {
      for (const proxy of proxies) {
        proxy.loseAnswers(undefined)
        proxy.set({ kind: "pass" })
      }
    }
  )

const setAll = (proxies: ReadonlyArray<FaultProxy>, mode: Parameters<FaultProxy["set"]>[0]): Begin =>
  sync(
    () => proxies.forEach((proxy) => proxy.set(mode)),
    () => proxies.forEach((proxy) => proxy.set({ kind: "pass" }))
  )

const lockRow = ({ customers, database }: World, organization: number): Begin =>
  Effect.promise(async () => {
    const client = new Pg.Client(database.url)
    client.on("error", () => {})
    try {
      await client.connect()
      await client.query("BEGIN")
      const id = customers.find((customer) => customer.organization === organization)?.orgId
      await client.query("SELECT id FROM organizations WHERE id = $1 FOR UPDATE", [id])
    } catch {
      // The server is between two lives.
    }
    return Effect.promise(() => client.end().catch(() => {}))
  })

const restart = ({ gateways }: World, side: Side, signal: "SIGKILL" | "SIGTERM"): Begin =>
  Effect.as(gateways[side].end(signal), gateways[side].start)

const linesOf = ({ lines }: World, target: Target) => both(target, sides).map((side) => lines[side])

const begin = (world: World, fault: Fault): Begin => {
  const { database, doors, gateways, providers } = world
  switch (fault.kind) {
    case "delay":
      return setAll(linesOf(world, fault.target), { kind: "delay", millis: 150 })
    case "stall":
    case "swallow":
    case "cut":
      return setAll(linesOf(world, fault.target), { kind: fault.kind })
    case "half-close":
      return sync(
        () => linesOf(world, fault.target).forEach((line) => line.halfClose("client")),
        () => linesOf(world, fault.target).forEach((line) => line.halfClose("server"))
      )
    case "lose-answer":
      return lose(linesOf(world, fault.target), false)
    case "lose-answer-and-cut":
      return Effect.map(lose(linesOf(world, fault.target), true), (end) =>
        fault.thenKill
          ? Effect.forEach(both(fault.target, sides), (side) => gateways[side].end("SIGKILL")).pipe(
              Effect.zipRight(end),
              Effect.zipRight(Effect.forEach(both(fault.target, sides), (side) => gateways[side].start))
            )
          : end
      )
    case "kill":
      return restart(world, fault.target, "SIGKILL")
    case "terminate":
      return restart(world, fault.target, "SIGTERM")
    case "freeze":
      return Effect.as(gateways[fault.target].signal("SIGSTOP"), gateways[fault.target].signal("SIGCONT"))
    case "postmaster-kill":
      return sync(() => database.end("SIGKILL"))
    case "postmaster-quit":
      return sync(() => database.end("SIGQUIT"))
    case "postmaster-stop":
      return sync(() => database.end("SIGINT"))
    case "postmaster-freeze":
      return sync(database.freeze, database.thaw)
    case "row-lock":
      return lockRow(world, fault.organization)
    case "cut-off":
      return setAll([doors.vendor, doors.farm], { kind: "cut" })
    case "latency":
      return setAll([doors.vendor, doors.farm], { kind: "delay", millis: 100 })
    default: {
      const stormy: ReadonlyArray<Account> = both(fault.account, accounts)
      const { kind } = fault
      return sync(
        () => stormy.forEach((account) => providers.weather.set(account, kind)),
        () => stormy.forEach((account) => providers.weather.delete(account))
      )
    }
  }
}

/** What a fault may be an explanation of. */
const reachOf = (fault: Fault): Pick<Window, "scope" | "sides" | "organization"> => {
  if ("account" in fault) return { scope: "provider", sides }
  if ("organization" in fault) return { scope: "organization", sides, organization: fault.organization }
  if ("thenKill" in fault) return { scope: "database", sides: both(fault.target, sides) }
  return "target" in fault ? { scope: "process", sides: [fault.target] } : { scope: "database", sides }
}

const isWeather = ({ fault }: Episode) => reachOf(fault).scope === "provider"

/**
 * Plays the episodes at their times, until the end; the windows say when each really was in force. On a slow machine
 * one waits for the one before it: no fault of the system begins while another lasts.
 */
export const play = (
  world: World,
  schedule: ReadonlyArray<Episode>,
  options: { readonly now: () => number; readonly until: number; readonly windows: Array<Window> }
) => {
  const { now, until, windows } = options
  const one = Effect.fnUntraced(function* ({ at, fault, lasting }: Episode) {
    yield* Effect.sleep(Math.max(0, at - now()))
    if (now() > until) return
    const from = now()
    // A window is open until it is closed: what happens within it must find it.
    const index = windows.push({ kind: fault.kind, ...reachOf(fault), from, to: Number.POSITIVE_INFINITY }) - 1
    const end = yield* begin(world, fault)
    yield* Effect.zipRight(Effect.sleep(lasting), end).pipe(Effect.uninterruptible)
    const window = windows[index]
    if (window === undefined) return
    windows[index] = { ...window, to: now() }
    if (fault.kind === "lose-answer-and-cut" && fault.thenKill) {
      windows.push({ kind: "kill", scope: "process", sides: window.sides, from: from + lasting, to: now() })
    }
  })
  const tracks = [schedule.filter(isWeather), schedule.filter((episode) => !isWeather(episode))]
  return Effect.forEach(tracks, (track) => Effect.forEach(track, one, { discard: true }), {
    concurrency: "unbounded",
    discard: true
  })
}
