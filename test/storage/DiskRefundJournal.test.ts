import { randomUUID } from "node:crypto"
import path from "node:path"
import { Effect } from "effect"
import { KeyId } from "../../src/domain/ApiKey.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import { RefundJournal } from "../../src/services/ledger/Refunds.ts"
import * as DiskRefundJournal from "../../src/storage/DiskRefundJournal.ts"
import { assert, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const entryOf = (hold: string) => ({ hold, org: OrgId.make("org_1"), key: KeyId.make("key_1") })

it.scoped("refunds of the version before are carried out, and it sees none of the new ones", function* () {
  const root = yield* temporaryDirectory
  const [directory, legacyDirectory] = [path.join(root, "refunds"), path.join(root, "voids")]
  const journal = (options: { readonly directory: string; readonly legacyDirectory?: string }) =>
    Effect.provide(RefundJournal, DiskRefundJournal.layer(options))
  const [before, now] = [yield* journal({ directory: legacyDirectory }), yield* journal({ directory, legacyDirectory })]
  const [old, recent] = [entryOf(randomUUID()), entryOf(randomUUID())]
  yield* before.add(old)
  yield* now.add(recent)
  assert.sameDeepMembers([...(yield* now.entries)], [old, recent])
  assert.deepStrictEqual(yield* before.entries, [old])
  yield* now.remove(old.hold)
  yield* now.remove(recent.hold)
  assert.deepStrictEqual([...(yield* before.entries), ...(yield* now.entries)], [])
})

it.effect("a refund is refused, and does not wait for ever, where no directory can be made", function* () {
  const journal = yield* Effect.provide(RefundJournal, DiskRefundJournal.layer({ directory: "/proc/none/refunds" }))
  assert.strictEqual((yield* Effect.flip(journal.add(entryOf(randomUUID()))))._tag, "JournalFailed")
})
