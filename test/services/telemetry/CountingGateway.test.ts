import { gateway } from "../../clients/SandboxChat.ts"
import { eventually } from "../../harness/database/Money.ts"
import { logRequest } from "../../harness/database/Rows.ts"
import { withLayer } from "../../harness/It.ts"
import { leaveUncounted, queued } from "./UsageRows.ts"

withLayer(gateway)("a gateway that serves", (it) => {
  it.effect("adds each new request to the totals of usage", function* () {
    yield* leaveUncounted
    for (const charge of [1, 2]) {
      yield* logRequest({ charge })
      yield* eventually(queued, (left) => left === 0)
    }
  })
})
