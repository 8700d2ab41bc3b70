import { Duration } from "effect"
import { productionTimings, type TimingValues } from "../../../src/services/runtime/Timings.ts"
import { page, section } from "../../docs/Markdown.ts"
import * as Short from "../../harness/gateway/ShortTimings.ts"
import { assert, describe, it } from "../../harness/It.ts"

const isAtMost = (...[first, ...others]: ReadonlyArray<Duration.DurationInput>) => {
  const sum = others
    .slice(0, -1)
    .reduce<Duration.Duration>((all, one) => Duration.sum(all, one), Duration.decode(first ?? 0))
  return Duration.lessThanOrEqualTo(sum, others.at(-1) ?? 0)
}

/** What must hold between timings: the sum of the first ones is at most the last. */
const relations: Readonly<Record<string, (timings: TimingValues) => boolean>> = {
  "two lost heartbeats make no instance silent": (t) =>
    isAtMost(Duration.times(t.heartbeatEvery, 2), "1 second", t.silentAfter),
  "an instance is silent to others before it stops": (t) => isAtMost(t.silentAfter, t.stopAfter),
  "an instance has finished what it aborts before others release its holds": (t) =>
    isAtMost(t.stopAfter, t.abortWithin, t.deadAfter),
  "an abort waits for settlements": (t) => isAtMost(t.settleWithin, "1 second", t.abortWithin),
  "a dead instance's holds are released within a minute": (t) => isAtMost(t.deadAfter, t.sweepEvery, "1 minute"),
  "two lost renewals end no lease": (t) => isAtMost(Duration.times(t.renewVideoLeaseEvery, 3), t.videoLease),
  "a dead instance's videos are found within 30 seconds": (t) => isAtMost(t.videoLease, t.findVideosEvery, "30 seconds")
}

const broken = (timings: TimingValues) => Object.keys(relations).filter((name) => relations[name]?.(timings) !== true)

describe("the timings", () => {
  it.each([
    ["production", {}],
    ["an early death", Short.earlyDeath],
    ["an early takeover", Short.earlyTakeover],
    ["both", { ...Short.earlyDeath, ...Short.earlyTakeover }]
  ])("of %s keep the relations between them", (_, short) => {
    assert.deepStrictEqual(broken(Short.complete(short)), [])
  })

  it("that break a relation are found", () => {
    const wrong = Short.complete({ stopAfter: Duration.seconds(40), videoLease: Duration.seconds(20) })
    assert.deepStrictEqual(broken(wrong), [
      "an instance has finished what it aborts before others release its holds",
      "two lost renewals end no lease"
    ])
  })

  it("of tests tolerate a stalled machine", () => {
    const { heartbeatEvery, renewVideoLeaseEvery, stopAfter, videoLease } = Short.complete({
      ...Short.earlyDeath,
      ...Short.earlyTakeover
    })
    assert.isTrue(isAtMost(heartbeatEvery, Short.maxStall, stopAfter))
    assert.isTrue(isAtMost(renewVideoLeaseEvery, Short.maxStall, videoLease))
  })

  it("of production are those that the documents promise", () => {
    const { deadAfter, heartbeatEvery, settleWithin, silentAfter, stopAfter } = productionTimings
    const seconds = Duration.toSeconds
    const steps = section(page("docs/architecture.md"), "The lifecycle of a hold").matchAll(/^ *\| (\d+ s) \|/gm)
    assert.deepStrictEqual(
      Array.from(steps, ([, after]) => after),
      [silentAfter, stopAfter, deadAfter].map((after) => `${seconds(after)} s`)
    )
    const operating = page("docs/operating/ledger.md").text.replaceAll("\n", " ")
    for (const promise of [
      `writes a heartbeat every ${seconds(heartbeatEvery)} seconds.`,
      `After ${seconds(stopAfter)} seconds without a heartbeat, a process refuses requests`,
      `After ${seconds(deadAfter)} seconds, other instances treat it as dead`,
      `A failed settlement is retried for ${seconds(settleWithin)} seconds`
    ]) {
      assert.include(operating, promise)
    }
  })

  it("reach a process by its environment, and one without a name is refused", () => {
    assert.deepStrictEqual(Short.decode(Short.encode(Short.earlyDeath)), Short.complete(Short.earlyDeath))
    assert.throws(() => Short.decode(`{"deadBefore": 1}`), "no timings: deadBefore")
  })
})
