import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { read } from "../../harness/client/AdminClient.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer } from "../MediaServer.ts"

withLayer(layer)("instances at the admin API", (it) => {
  it.effect("those that run and those that ended lately are listed with what they serve", function* () {
    const sql = yield* SqlClient.SqlClient
    const [running, silent, dead, stopped, old, ended] = [1, 2, 3, 4, 5, 6].map(() => randomUUID())
    const insert = (id: string | undefined, beat: string, stopped: string | null = null) =>
      sql`INSERT INTO instances (id, started_at, beat_at, stopped_at)
          VALUES (${id}, now() - interval '2 days', now() - ${beat}::interval, now() - ${stopped}::interval)`
    yield* insert(running, "1 second")
    yield* insert(silent, "20 seconds")
    yield* insert(dead, "1 hour")
    yield* insert(stopped, "1 hour", "59 minutes")
    yield* insert(old, "25 hours")
    yield* insert(ended, "25 hours", "25 hours")
    yield* sql`INSERT INTO instance_catalogs (instance_id, host, pid, generation, fingerprint, models, problem)
        VALUES (${running}, 'one.test', 7, 3, 'abc', 2, 'c.yaml:3: models: is missing')`
    const { admin } = yield* asOperator("read")
    const { data, has_more, next } = read(yield* admin("/instances"))
    assert.deepStrictEqual({ has_more, next }, { has_more: false, next: null })
    const states = new Map<string, string>(data.map(({ id, state }: Record<string, string>) => [id, state]))
    const expected = { running, silent, dead, stopped, undefined: old }
    for (const [state, id] of Object.entries(expected)) assert.strictEqual(String(states.get(id ?? "")), state)
    assert.isFalse(states.has(ended ?? ""))
    const { beat_age_seconds, beat_at, read_at, started_at, ...rest } = data.find(
      ({ id }: { id: string }) => id === running
    )
    assert.isAtLeast(beat_age_seconds, 1)
    for (const moment of [beat_at, read_at, started_at]) assert.isNumber(moment)
    assert.deepStrictEqual(rest, {
      id: running,
      host: "one.test",
      pid: 7,
      state: "running",
      stopped_at: null,
      fingerprint: "abc",
      models: 2,
      problem: "c.yaml:3: models: is missing",
      generation: 3
    })
  })
})
