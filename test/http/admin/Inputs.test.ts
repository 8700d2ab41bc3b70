import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { limits } from "../../../src/services/access/Key.ts"
import { Audit } from "../../../src/services/admin/AuditLog.ts"
import { bodyFor, companionsOf, samplesOf } from "../../contracts/InputSamples.ts"
import { read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer } from "../MediaServer.ts"

/** What can be written, and where one is made. */
const resources = [{ inputs: limits, path: "/keys" }]

const made = Effect.fnUntraced(function* (path: string) {
  const operator = yield* asOperator("write")
  const organization = read(yield* operator.admin("/organizations", { body: { name: randomUUID() } }), 201).id
  const record = read(yield* operator.admin(path, { body: { organization } }), 201)
  return { ...operator, organization, record, one: `${path}/${record.id}` }
})

withLayer(layer)("what operators write at the admin API", (it) => {
  for (const { inputs, path } of resources) {
    it.effect(`${path} describes each field in the document, for making one and for changing it`, function* () {
      const { admin } = yield* asOperator("read")
      const { paths } = read(yield* admin("/openapi.json"))
      for (const operation of [paths[`/admin/v1${path}`].post, paths[`/admin/v1${path}/{id}`].patch]) {
        const { properties } = operation.requestBody.content["application/json"].schema
        for (const [field, { description }] of Object.entries(inputs)) {
          assert.include(JSON.stringify(properties[field]), description, field)
        }
      }
    })

    for (const [field, input] of Object.entries(inputs)) {
      it.effect(`${path} refuses what is wrong for ${field}, by its name, and changes nothing`, function* () {
        const { admin, one, organization, record } = yield* made(path)
        const wrong = badRequest(`\`${field}\` ${input.problem}.`, field)
        for (const value of samplesOf(input.form).wrongValues) {
          assertRefused(yield* admin(path, { body: { organization, [field]: value } }), wrong)
          assertRefused(yield* admin(one, { method: "PATCH", body: { [field]: value } }), wrong)
        }
        const reader = yield* asOperator("read")
        const body = bodyFor(inputs, field)
        assertRefused(yield* reader.admin(one, { method: "PATCH", body }), refusals.needs("write"))
        const { key: _, ...before } = record
        assert.deepStrictEqual(read(yield* admin(one)), before)
      })

      it.effect(`${path} keeps ${field}, shows it, takes it away, and writes each down`, function* () {
        const { admin, one, organization, record } = yield* made(path)
        const body = bodyFor(inputs, field)
        const { key: _, ...before } = record
        const changed = read(yield* admin(one, { method: "PATCH", body }))
        assert.deepStrictEqual(changed, { ...before, ...body })
        assert.deepStrictEqual(read(yield* admin(`${path}?organization=${organization}`)).data, [changed])
        assert.deepInclude(read(yield* admin(path, { body: { organization, ...body } }), 201), body)
        const [row] = yield* (yield* Audit).list(OrganizationScope.all, { target: record.id, limit: 1 })
        assert.deepStrictEqual([row?.before, row?.after], [before, changed])
        if (input.none === undefined) return
        const none = Object.fromEntries(companionsOf(inputs, field).map((name) => [name, null]))
        assert.deepStrictEqual(read(yield* admin(one, { method: "PATCH", body: none })), before)
      })
    }
  }
})
