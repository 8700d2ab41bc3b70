import { Effect } from "effect"
import { get } from "../harness/client/ChatClient.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert } from "../harness/It.ts"

deploymentTest("a gateway whose log has lost its reader goes on", function* ({ gateway }) {
  const { process, url } = yield* gateway()
  process.stderr?.destroy()
  const statuses = yield* Effect.replicateEffect(Effect.zipLeft(get(`${url}/v1/models`), Effect.sleep("50 millis")), 5)
  assert.deepStrictEqual(
    statuses.map(({ status }) => status),
    [401, 401, 401, 401, 401]
  )
  assert.strictEqual((yield* get(`${url}/readyz`)).status, 200)
})
