import { Effect } from "effect"
import { isSkipped } from "../harness/client/Browser.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { ServedGateway } from "../harness/gateway/ServedGateway.ts"
import { assert } from "../harness/It.ts"
import { openConsole } from "./ConsolePage.ts"

if (!isSkipped) {
  deploymentTest(
    "the console keeps its data during a database outage, shows the error, and recovers",
    function* ({ door: openDoor, gateway }) {
      const door = yield* openDoor
      const running = yield* gateway({ env: { DATABASE_URL: door.url } })
      const opened = openConsole({ hash: "#/webhooks" }).pipe(Effect.provideService(ServedGateway, running))
      const { operator, page, problems } = yield* opened
      const deliveries = page.getByRole("region", { name: "Deliveries" })
      const shown = deliveries.getByText("No deliveries yet.")
      const alert = deliveries.getByRole("alert")
      yield* Effect.promise(() => shown.waitFor())
      yield* door.cut
      yield* Effect.promise(async () => {
        await page.getByRole("button", { name: "Refresh" }).click()
        await alert.waitFor()
        assert.match(await alert.locator("p").innerText(), /^Internal server error\. Try again in \d+ s\.$/)
        assert.isTrue(await shown.isVisible())
        // An unavailable database must not sign the operator out.
        assert.strictEqual(await page.getByLabel("Token").count(), 0)
      })
      yield* door.mend
      yield* Effect.promise(async () => {
        while (await alert.isVisible()) {
          // The button may disappear before the click. A click would cancel the request of the previous one.
          const click = deliveries.getByRole("button", { name: "Try again" }).click({ timeout: 1000 })
          await click.then(() => alert.waitFor({ state: "hidden", timeout: 5000 })).catch(() => undefined)
        }
        assert.isTrue(await shown.isVisible())
        assert.include(await page.locator(".operator").innerText(), operator.name)
      })
      assert.deepStrictEqual(
        problems.filter((text) => !/status of 50[03]|ERR_ABORTED/.test(text)),
        []
      )
    }
  )
}
