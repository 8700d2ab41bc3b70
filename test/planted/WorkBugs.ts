import type { Bug } from "./Bug.ts"

/** Bugs in images, videos and webhooks, which outlast a hold. */
export const workBugs: ReadonlyArray<Bug> = [
  {
    name: "an image is charged although its provider failed",
    file: "src/services/images/ImageGenerations.ts",
    find: "        const routed = yield* requestPicture(task, isStored)\n",
    replace:
      "        const routed = yield* Effect.onError(requestPicture(task, isStored), () => Effect.ignore(ledger.settle(held, variant.price)))\n",
    caughtBy: ["test/http/images/Charges.test.ts"]
  },
  {
    name: "an idempotency key is free while its request runs",
    file: "src/services/idempotency/Statements.ts",
    find: "is_over AND kept.state = 'working' AS is_free",
    replace: "kept.state = 'working' AS is_free",
    caughtBy: ["test/services/idempotency/Idempotency.test.ts"]
  },
  {
    name: "a finished video is not charged",
    file: "src/services/videos/Finish.ts",
    find: "return yield* ledger.job.settle(holdOf(job), job.price)",
    replace:
      "return yield* Effect.as(ledger.job.release(holdOf(job)), { charged: job.price, exceeded: false, wasReleased: false })",
    caughtBy: ["test/services/videos/VideoCreate.test.ts", "test/services/videos/VideoFinish.test.ts"]
  },
  {
    name: "a failed video is charged",
    file: "src/services/videos/Finish.ts",
    find: "        yield* ledger.job.release(holdOf(job))\n",
    replace: "        yield* ledger.job.settle(holdOf(job), job.price)\n",
    caughtBy: ["test/services/videos/VideoSubmit.test.ts"]
  },
  {
    name: "webhooks are told of a low balance by every charge",
    file: "src/services/webhooks/CrossingSql.ts",
    find: " AND moved.balance + moved.charged >= moved.notify_below",
    replace: "",
    caughtBy: ["test/services/webhooks/Crossings.test.ts"]
  },
  {
    name: "a webhook that a stop interrupts waits for its lease to lapse",
    file: "src/services/webhooks/WebhookDelivery.ts",
    find: "Effect.ignoreLogged(queue.release(leased))",
    replace: "Effect.void",
    caughtBy: ["test/services/webhooks/WebhookRunner.test.ts"]
  },
  {
    name: "a webhook has another id with each try",
    file: "src/services/webhooks/Sending.ts",
    find: `"webhook-id": id,`,
    replace: `"webhook-id": id + timestamp,`,
    caughtBy: ["test/services/webhooks/WebhookDelivery.test.ts"]
  },
  {
    name: "a video is shown to whoever knows its id",
    file: "src/services/videos/VideoViews.ts",
    find: "WHERE id = ${id} AND org_id = ${org} AND ${sql.literal(listed)}`.pipe(",
    replace: "WHERE id = ${id} AND ${sql.literal(listed)}`.pipe(",
    caughtBy: ["test/http/videos/Reads.test.ts", "test/services/videos/VideoViews.test.ts"]
  }
]
