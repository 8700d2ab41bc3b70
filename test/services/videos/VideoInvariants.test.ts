import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { invariants } from "../../../src/services/ledger/Invariants.ts"
import { failed, failure, rendering } from "../../fakes/VideoProviderFake.ts"
import { credits, price, videoTest } from "../../harness/database/VideoBench.ts"

const open = "a video that is not over has an open hold of its price, which belongs to no process"
const charged = "a completed video was charged its price"
const free = "a failed video was charged nothing"
const own = "a video was paid for by its own organization and key"
const orphan = "an open hold that belongs to no process is that of a video that is not over"
const sums = "what is held is the sum of the organization's open holds"

describe.concurrent("the books", () => {
  videoTest(
    "find a video whose money is not what it should be",
    function* ({ bench, hurry, job, money, process, provider, rows, sql }) {
      const { videos } = yield* process()
      const routes = ["m@a", "m@b"]
      const make = (prompt: string) => Effect.map(videos.create(job({ prompt })), ({ video }) => video.id)
      const isOver = (id: string) =>
        Effect.repeat(Effect.zipRight(hurry, rows), {
          until: (all) => all.some((one) => one.id === id && one.step === "over")
        })
      const completed = yield* make("done")
      yield* isOver(completed)
      routes.forEach((route) => provider.on(route, { poll: [failed(failure("moderation", 400))] }))
      const rejected = yield* make("refused")
      yield* isOver(rejected)
      provider.on("m@a", { poll: [rendering] })
      const unfinished = yield* make("under way")
      assert.deepStrictEqual(yield* money, {
        balance: credits - price,
        held: price,
        entries: credits - price,
        charges: [price],
        openHolds: 1
      })
      assert.isTrue(yield* bench.proved)

      const other = yield* bench.organization(0n)
      const hold = (id: string) => sql`(SELECT hold_id FROM videos WHERE id = ${id})`
      const tampering = [
        {
          breaks: [sums, open],
          by: sql`UPDATE holds SET state = 'released', closed_at = now() WHERE id = ${hold(unfinished)}`
        },
        { breaks: [open], by: sql`UPDATE videos SET price = price + 1 WHERE id = ${unfinished}` },
        {
          breaks: [open],
          by: sql`UPDATE holds SET instance_id = gen_random_uuid() WHERE id = ${hold(unfinished)}`
        },
        {
          breaks: [open, orphan],
          by: sql`UPDATE videos SET hold_id = gen_random_uuid() WHERE id = ${unfinished}`
        },
        { breaks: [charged], by: sql`UPDATE videos SET price = price - 1 WHERE id = ${completed}` },
        {
          breaks: [charged, free],
          by: sql`WITH swapped AS (SELECT id, hold_id FROM videos WHERE id IN (${completed}, ${rejected}))
          UPDATE videos SET hold_id = swapped.hold_id FROM swapped
          WHERE videos.id IN (${completed}, ${rejected}) AND swapped.id <> videos.id`
        },
        {
          breaks: [charged, orphan],
          by: sql`UPDATE videos SET status = 'completed', step = 'over', completed_at = now(), media = 'm'
          WHERE id = ${unfinished}`
        },
        {
          breaks: [free, orphan],
          by: sql`UPDATE videos SET status = 'failed', step = 'over', completed_at = now(), error_code = 'c'
          WHERE id = ${unfinished}`
        },
        { breaks: [orphan], by: sql`DELETE FROM videos WHERE id = ${unfinished}` },
        { breaks: [own], by: sql`UPDATE videos SET org_id = ${other.org} WHERE id = ${completed}` },
        { breaks: [own], by: sql`UPDATE videos SET key_id = ${other.key} WHERE id = ${rejected}` }
      ]
      for (const { breaks, by } of tampering) {
        const found = yield* Effect.gen(function* () {
          yield* sql`SET LOCAL session_replication_role = replica`
          yield* sql`ALTER TABLE videos DROP CONSTRAINT videos_hold_id_key`
          yield* by
          const broken: Array<string> = []
          for (const { check, name } of invariants(sql)) if ((yield* check).length > 0) broken.push(name)
          return yield* Effect.fail(broken)
        }).pipe(sql.withTransaction, Effect.flip)
        assert.deepStrictEqual<unknown>(found, breaks)
      }
      assert.isTrue(yield* bench.proved)
    }
  )
})
