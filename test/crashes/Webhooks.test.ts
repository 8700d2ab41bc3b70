import { existsSync } from "node:fs"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { FailpointName } from "../../src/services/runtime/Failpoint.ts"
import { openAccount } from "../harness/client/Account.ts"
import { film, videoOf } from "../harness/client/MediaClient.ts"
import { eventually, times } from "../harness/database/Money.ts"
import { deploymentTest, faultyProgram } from "../harness/gateway/Deployment.ts"
import { assert } from "../harness/It.ts"
import * as RenderFarm from "../harness/upstream/RenderFarm.ts"
import { videoEnvironment } from "../harness/upstream/RenderFarm.ts"
import * as Receiver from "../services/webhooks/WebhookReceiver.ts"

const deaths: ReadonlyArray<FailpointName> = ["video_stored", "webhook_leased", "webhook_sent"]
const count = 6

deploymentTest(
  "webhooks of videos survive kills before their commit, before they are sent and before that is recorded",
  function* ({ directory, gateway }) {
    const program = yield* faultyProgram
    const sql = yield* SqlClient.SqlClient
    let mayEnd = false
    const fate = () => ({ submit: "taken", polls: 1, end: "clip" }) as const
    const farm = yield* RenderFarm.make({ fate, isOpen: () => mayEnd })
    const env = { ...(yield* videoEnvironment(farm.url)), FETCH_ALLOW: "127.0.0.1" }
    const receiver = yield* Receiver.make(Receiver.ok)
    const { secret } = yield* openAccount({})
    const first = yield* gateway({ env })
    const ids = yield* Effect.forEach(times(count), (index) => {
      const body = { model: "film", prompt: `clip ${index}.`, seconds: 4, webhook_url: `${receiver.url}/${index}` }
      return Effect.map(film({ url: first.url, secret, body }), (answer) => videoOf(answer, 202).id)
    })
    yield* first.signal("SIGKILL")
    yield* first.ended
    mayEnd = true
    for (const name of deaths) {
      const marker = path.join(directory, name)
      const failpoint = { FAILPOINT: name, FAILPOINT_TURN: "2", FAILPOINT_MARKER: marker }
      yield* gateway({ entry: program, env: { ...env, ...failpoint } }).pipe(
        Effect.flatMap(({ ended }) => ended),
        Effect.catchTag("NotStarted", () => Effect.void),
        Effect.scoped,
        Effect.timeout("80 seconds")
      )
      assert.isTrue(existsSync(marker), name)
      // As if the leases of the dead had lapsed.
      yield* sql`UPDATE webhook_deliveries SET next_at = now() WHERE lease IS NOT NULL`
      yield* sql`UPDATE videos SET lease_until = now() WHERE lease IS NOT NULL`
    }
    yield* gateway({ env })
    const states = yield* eventually(
      sql<{ readonly state: string; readonly eventId: string; readonly type: string }>`
        SELECT state, event_id, type FROM webhook_deliveries`,
      (all) => all.length === count && all.every(({ state }) => state === "delivered"),
      "60 seconds"
    )
    assert.isTrue(states.every(({ type }) => type === "video.completed"))
    const [{ secret: signing } = { secret: "" }] = yield* sql<{
      readonly secret: string
    }>`SELECT secret FROM webhook_secrets`
    const events = new Map<string, Set<string>>()
    for (const received of receiver.all) {
      assert.deepInclude(Receiver.verified(signing, received), { type: "video.completed" })
      const { data } = JSON.parse(received.body)
      events.set(data.id, (events.get(data.id) ?? new Set()).add(Receiver.idOf(received)))
    }
    assert.sameMembers([...events.keys()], ids)
    // One that was sent and not recorded comes again, as the same event.
    assert.isTrue([...events.values()].every(({ size }) => size === 1))
    assert.isAbove(receiver.all.length, count)
    assert.isAtMost(receiver.all.length, 2 * count)
  },
  240_000
)
