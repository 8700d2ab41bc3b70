import path from "node:path"
import { Effect } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { attempt } from "../harness/client/ChatClient.ts"
import { fetched, film, listed, mediaIn, pollUntilFinished, see, videoOf } from "../harness/client/MediaClient.ts"
import { assertCharged, eventually } from "../harness/database/Money.ts"
import { deploymentTest, faultyProgram } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import * as RenderFarm from "../harness/upstream/RenderFarm.ts"
import { priceOf, videoEnvironment } from "../harness/upstream/RenderFarm.ts"

describe("a gateway that is killed while it deletes a video", () => {
  deploymentTest("shows it no more, and removes its clip when it runs again", function* ({ directory, env, gateway }) {
    const { org, secret } = yield* openAccount({})
    const farm = yield* RenderFarm.make({ fate: () => ({ submit: "taken", polls: 0, end: "clip" }) })
    const videos = yield* videoEnvironment(farm.url)
    const fatal = { FAILPOINT: "deletion_committed", FAILPOINT_MARKER: path.join(directory, "marker") }
    const first = yield* gateway({ entry: yield* faultyProgram, env: { ...videos, ...fatal } })
    const { id } = videoOf(
      yield* film({ url: first.url, secret, body: { model: "film", prompt: "a cat", seconds: 4 } }),
      202
    )
    const look = Effect.map(see({ url: first.url, secret }, `/${id}`), (answer) => videoOf(answer))
    yield* pollUntilFinished(look)
    const { url: link = "" } = yield* look
    const stored = Effect.map(mediaIn(env["DATA_DIR"] ?? ""), (files) => files.size)
    assert.strictEqual(yield* stored, 1)

    const headers = { authorization: `Bearer ${secret}` }
    yield* Effect.flip(
      attempt((signal) => fetch(`${first.url}/v1/videos/${id}`, { method: "DELETE", headers, signal }))
    )
    assert.deepStrictEqual(yield* first.ended, { code: null, signal: "SIGKILL" })
    assert.strictEqual(yield* stored, 1, "it died too late")

    const second = yield* gateway({ env: videos })
    assert.strictEqual((yield* see({ url: second.url, secret }, `/${id}`)).status, 404)
    assert.deepStrictEqual(yield* listed({ url: second.url, secret }), [])
    yield* eventually(stored, (count) => count === 0)
    const { pathname } = new URL(link)
    assert.strictEqual((yield* fetched(`${second.url}${pathname}`)).status, 404)
    yield* assertCharged(org, [priceOf(4)])
  })
})
