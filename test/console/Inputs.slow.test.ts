import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { ApiKeys } from "../../src/services/access/ApiKeys.ts"
import { limits } from "../../src/services/access/Key.ts"
import { Organizations } from "../../src/services/admin/Organizations.ts"
import { describeInputs } from "../../src/services/resources/ResourceInput.ts"
import { samplesOf } from "../contracts/InputSamples.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { openConsole } from "./ConsolePage.ts"
import { button } from "./ConsoleParts.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

withLayer(gateway)("the inputs of the console", (it) => {
  it.scoped.skipIf(isSkipped)("a key's form has every field, saves its values, and lists show them", function* () {
    const { id: org } = yield* Effect.flatMap(Organizations, ({ create }) =>
      Effect.orDie(create({ name: randomUUID() }))
    )
    const { page } = yield* openConsole({ hash: `#/organizations/${org}` })
    yield* Effect.promise(async () => {
      await button(page, "Create key").click()
      const dialog = page.getByRole("dialog")
      for (const { form, label } of describeInputs(limits)) {
        const { word } = samplesOf(form)
        if (form.kind === "choice") await dialog.getByLabel(label, { exact: true }).selectOption(word)
        else if (form.kind === "choices") {
          const group = dialog.getByRole("group", { name: label })
          for (const other of form.options ?? []) if (other !== word) await group.getByLabel(other).uncheck()
        } else if (form.kind === "time") await dialog.getByLabel(label, { exact: true }).fill("2096-10-02T07:06")
        else await dialog.getByLabel(label, { exact: true }).fill(word)
      }
      await dialog.locator("button.primary").click()
      await button(page.getByRole("dialog", { name: "Your new key" }), "Done").click()
      for (const { column } of describeInputs(limits)) {
        if (column !== undefined) await page.getByRole("columnheader", { name: column, exact: true }).waitFor()
      }
    })
    const [key] = yield* Effect.flatMap(ApiKeys, ({ list }) => list(org))
    for (const [field, { form }] of Object.entries(limits)) {
      const kept = new Map<string, unknown>(Object.entries(key ?? {})).get(field)
      if (form.kind === "time") assert.instanceOf(kept, Date, field)
      else if (form.kind === "usd") assert.strictEqual(kept, 2_500_000_000n, field)
      else assert.deepStrictEqual(kept, samplesOf(form).value, field)
    }
  })
})
