import { Effect, Metric, MetricBoundaries, Struct } from "effect"
import { exposition, type Families, gauge, snapshot, sum, withoutGauges } from "../../../src/http/system/Prometheus.ts"
import { assert, describe, it } from "../../harness/It.ts"

const named = (families: Families, name: string) => families.find((family) => family.name === name)

const worker = (count: string, running: string): Families => [
  { name: "calls_total", help: "Calls", kind: "counter", samples: { 'calls_total{by="a"}': count } },
  { name: "running", help: "", kind: "gauge", samples: { running } }
]

describe("metrics", () => {
  it.effect("of each kind have the counted values", function* () {
    yield* Metric.incrementBy(Metric.counter("test_large_total", { bigint: true, incremental: true }), 2n ** 60n)
    yield* Metric.set(Metric.gauge("test_open"), -2)
    yield* Metric.update(Metric.histogram("test_seconds", MetricBoundaries.fromIterable([1, 2])), 1.5)
    const families = yield* snapshot
    assert.deepStrictEqual(named(families, "test_large_total"), {
      name: "test_large_total",
      help: "",
      kind: "counter",
      samples: { test_large_total: "1152921504606846976" }
    })
    assert.deepInclude(named(families, "test_open"), { kind: "gauge", samples: { test_open: "-2" } })
    assert.deepInclude(named(families, "test_seconds"), {
      kind: "histogram",
      samples: {
        'test_seconds_bucket{le="1"}': "0",
        'test_seconds_bucket{le="2"}': "1",
        'test_seconds_bucket{le="+Inf"}': "1",
        test_seconds_sum: "1.5",
        test_seconds_count: "1"
      }
    })
  })

  it.live("of several processes are summed exactly, series by series", () => {
    const first = worker("9007199254740993", "2")
    const second: Families = [
      { name: "calls_total", help: "Calls", kind: "counter", samples: { 'calls_total{by="b"}': "0.5" } },
      ...worker("1", "0.5")
    ]
    return Effect.map(exposition(sum([first, second])), (text) =>
      assert.strictEqual(
        text,
        [
          "# HELP calls_total Calls",
          "# TYPE calls_total counter",
          'calls_total{by="a"} 9007199254740994',
          'calls_total{by="b"} 0.5',
          "# HELP running ",
          "# TYPE running gauge",
          "running 2.5",
          ""
        ].join("\n")
      )
    )
  })

  it("of several processes are not summed where that would say nothing", () => {
    const ready = (name: string, values: ReadonlyArray<number>) =>
      sum(values.map((value) => [gauge(name, "", [[[], value]])])).map(({ samples }) => samples[name])
    assert.deepStrictEqual(ready("gateway_build_info", [1, 1, 1]), ["1"])
    assert.deepStrictEqual(ready("gateway_database_up", [1, 0, 1]), ["0"])
    assert.deepStrictEqual(ready("process_start_time_seconds", [5.5, 7.5]), ["7.5"])
  })

  it("of a process that is gone keep its counters and not its gauges", () => {
    assert.deepStrictEqual(withoutGauges(worker("3", "1")).map(Struct.get("name")), ["calls_total"])
  })
})
