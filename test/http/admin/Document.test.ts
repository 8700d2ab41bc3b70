import { randomUUID } from "node:crypto"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Effect } from "effect"
import { read } from "../../harness/client/AdminClient.ts"
import { bearer, callAt } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer, MediaServer } from "../MediaServer.ts"

/** What the published document says of the JSON of an answer. */
const published = Effect.gen(function* () {
  const { admin } = yield* asOperator("read")
  const document = read(yield* admin("/openapi.json"))
  const ajv = new Ajv2020({ strict: false })
  ajv.addSchema({ $id: "document", ...document })
  const pointerOf = (parts: ReadonlyArray<string>) =>
    parts.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/")
  return (method: string, path: string, status: number, text: string) => {
    const parts = ["paths", `/admin/v1${path}`, method, "responses", String(status), "content", "application/json"]
    const said = ajv.compile({ $ref: `document#/${pointerOf([...parts, "schema"])}` })
    assert.isTrue(said(JSON.parse(text)), `${method} ${path} ${status}: ${text} ${ajv.errorsText(said.errors)}`)
  }
})

withLayer(layer)("the OpenAPI document of the admin API", (it) => {
  it.effect("can be compiled by a validator, and has what the audit answers", function* () {
    const agrees = yield* published
    const { admin } = yield* asOperator("write")
    read(yield* admin("/organizations", { body: { name: `document ${randomUUID()}` } }), 201)
    const { status, text } = yield* admin("/audit?limit=5")
    agrees("get", "/audit", status, text)
    assert.isNotEmpty(JSON.parse(text).data)
  })

  const missing = ["/organizations/{org}", "/keys/{id}", "/requests/{id}", "/videos/{id}"]
  for (const path of missing) {
    it.effect(`describes the 404 of ${path}, whatever the message names`, function* () {
      const agrees = yield* published
      const { admin } = yield* asOperator("read")
      const { status, text } = yield* admin(path.replace(/\{\w+\}/, "made-up"))
      assert.strictEqual(status, 404)
      agrees("get", path, status, text)
    })
  }

  it.effect("describes the 409 of a name that is taken, and each message of a 401", function* () {
    const agrees = yield* published
    const { url } = yield* MediaServer
    const { admin } = yield* asOperator("write")
    const body = { name: `document ${randomUUID()}` }
    read(yield* admin("/organizations", { body }), 201)
    const taken = yield* admin("/organizations", { body })
    assert.strictEqual(taken.status, 409)
    agrees("post", "/organizations", taken.status, taken.text)
    for (const headers of [{}, bearer("ggo_made-up"), { cookie: "gateway_session=made-up" }]) {
      const { status, text } = yield* callAt(`${url}/admin/v1/organizations`, { headers })
      assert.strictEqual(status, 401)
      agrees("get", "/organizations", status, text)
    }
  })
})
