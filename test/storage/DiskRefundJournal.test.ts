import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { KeyId } from "../../src/domain/ApiKey.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import { RefundJournal } from "../../src/services/ledger/RefundJournal.ts"
import * as DiskRefundJournal from "../../src/storage/DiskRefundJournal.ts"
import { assert, it } from "../harness/It.ts"

it.effect("a refund is refused, and does not wait for ever, where no directory can be made", function* () {
  const journal = yield* Effect.provide(RefundJournal, DiskRefundJournal.layer({ directory: "/proc/none/refunds" }))
  const entry = { hold: randomUUID(), org: OrgId.make("org_1"), key: KeyId.make("key_1") }
  assert.strictEqual((yield* Effect.flip(journal.add(entry)))._tag, "JournalFailed")
})
