import { mkdir, rm, symlink, writeFile } from "node:fs/promises"
import path from "node:path"
import { Duration, Effect } from "effect"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { openAccount } from "../harness/client/Account.ts"
import { codeOf } from "../harness/client/ChatClient.ts"
import { draw, imageOf, isReplay, mediaIn, price } from "../harness/client/MediaClient.ts"
import { assertCharged, eventually, moneyOf } from "../harness/database/Money.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { after, paints } from "../harness/upstream/Replies.ts"

const credits = 100_000_000_000n

/** A data directory with the same media: a gateway there knows nothing of the refunds that are under way here. */
const besideMediaOf = (dataDir: string) =>
  Effect.promise(async () => {
    const beside = `${dataDir}-beside`
    await mkdir(beside)
    await symlink(path.join(dataDir, "media"), path.join(beside, "media"))
    return beside
  })

describe.concurrent("an image that was made", () => {
  deploymentTest("and cannot be stored costs nothing, and frees its key", function* ({ env, gateway, upstream }) {
    const media = path.join(env["DATA_DIR"] ?? "", "media")
    const { url } = yield* gateway()
    const { org, secret } = yield* openAccount({})
    const inTheWay = path.join(media, "public")
    const block = Effect.promise(async () => {
      await rm(inTheWay, { recursive: true, force: true })
      await mkdir(media, { recursive: true })
      await writeFile(inTheWay, "")
    })
    yield* upstream.script(after(block, paints()), paints())
    const lost = yield* draw({ url, secret, key: "k" })
    assert.deepStrictEqual([lost.status, codeOf(lost)], [500, "internal_error"])
    yield* assertCharged(org, [])

    yield* Effect.promise(() => rm(inTheWay))
    const retry = yield* draw({ url, secret, key: "k" })
    imageOf(retry)
    assert.isFalse(isReplay(retry))
    assert.strictEqual((yield* mediaIn(env["DATA_DIR"] ?? "")).size, 1)
    yield* assertCharged(org, [price])
  })

  for (const when of ["before", "after"] as const) {
    const title = `and cannot be settled, the database being gone for long ${when} its commit, costs nothing, and frees its key`
    deploymentTest(title, function* ({ door, env, gateway, upstream }) {
      const { cutAt, isCut, mend, url: DATABASE_URL } = yield* door
      const { url } = yield* gateway({ timings: { settleWithin: Duration.seconds(3) }, env: { DATABASE_URL } })
      const { org, secret } = yield* openAccount({})
      yield* upstream.script(after(cutAt("COMMIT", when), paints()), paints())
      const lost = yield* draw({ url, secret, key: "k" })
      assert.deepStrictEqual([lost.status, codeOf(lost)], [500, "internal_error"])
      assert.isTrue(yield* isCut)
      const { charges } = yield* moneyOf(org)
      assert.deepStrictEqual(charges, when === "after" ? [price] : [])
      assert.strictEqual((yield* mediaIn(env["DATA_DIR"] ?? "")).size, 0)
      if (when === "after") {
        const elsewhere = yield* gateway({ env: { DATA_DIR: yield* besideMediaOf(env["DATA_DIR"] ?? "") } })
        const early = yield* draw({ url: elsewhere.url, secret, key: "k" })
        assert.deepStrictEqual([early.status, codeOf(early)], [409, "idempotency_conflict"])
      }

      yield* mend
      yield* eventually(moneyOf(org), ({ balance, openHolds }) => openHolds === 0 && balance === credits, "20 seconds")
      const retry = yield* eventually(draw({ url, secret, key: "k" }), ({ status }) => status === 200)
      imageOf(retry)
      assert.isFalse(isReplay(retry))
      assert.strictEqual((yield* mediaIn(env["DATA_DIR"] ?? "")).size, 1)
      const money = yield* moneyOf(org)
      assert.deepInclude(money, { balance: credits - price, held: 0n, entries: credits - price, openHolds: 0 })
      assert.deepStrictEqual((yield* Effect.flatMap(LedgerAdmin, ({ verify }) => verify)).violations, [])
    })
  }
})
