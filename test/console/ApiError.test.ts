import { errorOf } from "../../src/console/api/ApiError.ts"
import { assert, describe, it } from "../harness/It.ts"

const refusal = { message: "Unknown endpoint.", type: "not_found_error", param: null, code: "unknown_endpoint" }

const read = (body: unknown) => errorOf(new Response(JSON.stringify(body), { status: 404 }))

describe("an error in the console", () => {
  it("shows the hint after the message", async () => {
    const { code, message, status } = await read({ error: { ...refusal, hint: "Did you mean /v1/models?" } })
    const expected = { status: 404, code: "unknown_endpoint", message: "Unknown endpoint. Did you mean /v1/models?" }
    assert.deepStrictEqual({ status, code, message }, expected)
  })

  it.each([refusal, { ...refusal, hint: null }, { ...refusal, hint: 1 }, { ...refusal, hint: "" }])(
    "shows only the message for %j",
    async (error) => {
      assert.strictEqual((await read({ error })).message, "Unknown endpoint.")
    }
  )
})
