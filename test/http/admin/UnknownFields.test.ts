import { Schema } from "effect"
import { adminDocument } from "../../../src/http/admin/AdminApi.ts"
import { read } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest, postTo } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer, MediaServer } from "../MediaServer.ts"

const ObjectSchema = Schema.Struct({
  type: Schema.Literal("object"),
  properties: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
  additionalProperties: Schema.Unknown
})
const isObjectSchema = Schema.is(ObjectSchema)
const isUnion = Schema.is(Schema.Struct({ anyOf: Schema.Array(Schema.Unknown) }))

const objectsIn = (schema: unknown): ReadonlyArray<typeof ObjectSchema.Type> => {
  if (isUnion(schema)) return schema.anyOf.flatMap(objectsIn)
  return isObjectSchema(schema) ? [schema] : []
}

/** Each body of the document. */
const bodies = Object.entries(adminDocument().paths).flatMap(([path, operations]) =>
  Object.entries(operations).flatMap(([method, { requestBody }]) => {
    if (requestBody === undefined) return []
    const [object] = objectsIn(requestBody.content["application/json"]?.schema)
    return [{ method: method.toUpperCase(), path: path.replace("/admin/v1", ""), object }]
  })
)

const misspell = (name: string): string => `${name.slice(0, -2)}${name.slice(-1)}${name.slice(-2, -1)}`

withLayer(layer)("an unknown field of the admin API", (it) => {
  it("is looked for in every body", () => {
    assert.isAbove(bodies.length, 10)
    assert.includeMembers(
      bodies.map(({ method, path }) => `${method} ${path}`),
      ["POST /keys", "PATCH /keys/{id}", "POST /keys/{id}/reissue", "PATCH /organizations/{org}", "POST /session"]
    )
  })

  for (const { method, object, path } of bodies) {
    it.effect(`is refused by ${method} ${path}, as its document says`, function* () {
      const { properties = {}, additionalProperties } = object ?? {}
      assert.strictEqual(additionalProperties, false)
      assert.isNotEmpty(properties)
      const { admin } = yield* asOperator("owner")
      const send = (body: unknown) => admin(path.replaceAll(/\{\w+\}/g, "none"), { method, body })
      for (const field of ["zzzzzzzzzz", "", "__proto__", "toString"]) {
        assertRefused(yield* send(`{${JSON.stringify(field)}: 1}`), badRequest(`Unknown field \`${field}\`.`, field))
      }
      for (const field of Object.keys(properties).filter((name) => name.length > 3 && misspell(name) !== name)) {
        const given = misspell(field)
        const refusal = badRequest(`Unknown field \`${given}\`; did you mean \`${field}\`?`, given)
        assertRefused(yield* send({ [field]: [], [given]: null }), refusal)
      }
    })
  }

  it.effect("without its unit is told with it, and the old secret stays valid", function* () {
    const { admin } = yield* asOperator("write")
    const organization = read(yield* admin("/organizations", { body: { name: "unknown fields" } }), 201).id
    const { id, key } = read(yield* admin("/keys", { body: { organization } }), 201)
    assertRefused(
      yield* admin(`/keys/${id}/reissue`, { body: { grace: "24h" } }),
      badRequest("Unknown field `grace`; did you mean `grace_seconds`?", "grace")
    )
    assertRefused(
      yield* admin(`/keys/${id}`, { method: "PATCH", body: { modles: ["gpt-5*"] } }),
      badRequest("Unknown field `modles`; did you mean `models`?", "modles")
    )
    const { url } = yield* MediaServer
    const listed = yield* postTo(`${url}/v1/models`, { secret: key }, undefined, { method: "GET" })
    assert.strictEqual(listed.status, 200)
  })

  it.effect("is told before what else is wrong, and may stand anywhere", function* () {
    const { admin } = yield* asOperator("write")
    const refusal = badRequest("Unknown field `nmae`; did you mean `name`?", "nmae")
    for (const body of [{ nmae: "a" }, { name: 5, nmae: "a" }, { nmae: "a", name: "b", credits_usd: -1 }]) {
      assertRefused(yield* admin("/organizations", { body }), refusal)
    }
  })
})
