import { SqlClient } from "@effect/sql"
import { Effect, Redacted, Schema } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { type Account, openAccount } from "../../harness/client/Account.ts"
import {
  type Answer,
  assertRefused,
  bearer,
  call,
  chat,
  type Refusal,
  rateOf,
  refusals,
  soon,
  talk
} from "../../harness/client/HttpCalls.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"
import { answers, gateway, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { dump } from "./Dump.ts"

const served = gateway({ talk: {} })

const models = (headers: Readonly<Record<string, string>>) => call("/v1/models", { headers })
const isFine = ({ status, text }: Answer) => assert.strictEqual(status, 200, text)

type Headers = Readonly<Record<string, string>>

/** Ways to show a key that lives. */
const shown: ReadonlyArray<readonly [what: string, headers: (secret: string) => Headers]> = [
  ["Bearer", (secret) => ({ authorization: `Bearer ${secret}` })],
  ["bearer", (secret) => ({ authorization: `bearer ${secret}` })],
  ["BEARER", (secret) => ({ authorization: `BEARER ${secret}` })],
  ["Bearer with more space", (secret) => ({ authorization: `Bearer   ${secret}  ` })],
  ["x-api-key", (secret) => ({ "x-api-key": secret })],
  ["X-API-Key with space around", (secret) => ({ "X-API-Key": `  ${secret} ` })],
  ["both", (secret) => ({ authorization: `Bearer ${secret}`, "x-api-key": secret })],
  ["a bearer beside another x-api-key", (secret) => ({ authorization: `Bearer ${secret}`, "x-api-key": "ggw_other" })],
  ["x-api-key beside another scheme", (secret) => ({ authorization: "Basic eDp5", "x-api-key": secret })],
  ["x-api-key beside an empty bearer", (secret) => ({ authorization: "Bearer ", "x-api-key": secret })]
]

const { invalidKey, missingKey } = refusals

/** Ways not to. */
const unshown: ReadonlyArray<readonly [what: string, headers: (secret: string) => Headers, refusal: Refusal]> = [
  ["no header", () => ({}), missingKey],
  ["an empty authorization", () => ({ authorization: "" }), missingKey],
  ["an empty bearer", () => ({ authorization: "Bearer " }), missingKey],
  ["an empty x-api-key", () => ({ "x-api-key": "" }), missingKey],
  ["another scheme", (secret) => ({ authorization: `Basic ${secret}` }), missingKey],
  ["no scheme", (secret) => ({ authorization: secret }), missingKey],
  ["a scheme without a space", (secret) => ({ authorization: `Bearer${secret}` }), missingKey],
  ["another header", (secret) => ({ "api-key": secret }), missingKey],
  ["another prefix", (secret) => bearer(secret.replace("ggw_", "sk-")), invalidKey],
  ["no prefix", (secret) => bearer(secret.replace("ggw_", "")), invalidKey],
  ["the prefix alone", () => bearer("ggw_"), invalidKey],
  ["a key cut short", (secret) => bearer(secret.slice(0, -1)), invalidKey],
  ["a key with more behind it", (secret) => bearer(`${secret}x`), invalidKey],
  ["a key in capitals", (secret) => bearer(secret.toUpperCase()), invalidKey],
  ["two keys in one", (secret) => bearer(`${secret}, ${secret}`), invalidKey],
  ["two keys in words", (secret) => bearer(`${secret} ${secret}`), invalidKey],
  ["a statement", () => bearer("ggw_' OR '1'='1"), invalidKey],
  ["a very long one", () => bearer(`ggw_${"x".repeat(8_000)}`), invalidKey],
  ["a dead bearer beside a living x-api-key", (secret) => ({ ...bearer("ggw_other"), "x-api-key": secret }), invalidKey]
]

withLayer(served)("the API", (it) => {
  it.effect.each(shown)("accepts %s", function* ([, headers]) {
    isFine(yield* models(headers((yield* openAccount({})).secret)))
  })

  it.effect.each(unshown)("refuses %s", function* ([, headers, refusal]) {
    assertRefused(yield* models(headers((yield* openAccount({})).secret)), refusal)
  })

  it.effect("refuses a key's id as a key", function* () {
    const { key, org } = yield* openAccount({})
    for (const id of [key, org, `ggw_${key}`]) assertRefused(yield* models(bearer(id)), invalidKey)
  })

  /** Lets the key in before, and refuses it within a second or so of what the operator did. */
  const dies = Effect.fnUntraced(function* <E, R>(
    account: { readonly secret: string },
    what: Effect.Effect<unknown, E, R>,
    refusal: Refusal = invalidKey
  ) {
    const headers = bearer(account.secret)
    isFine(yield* models(headers))
    yield* what
    yield* soon(Effect.map(models(headers), (answer) => assertRefused(answer, refusal)))
    assertRefused(yield* chat(account, talk("talk")), refusal)
  })

  describe.concurrent("what an operator does to a key", () => {
    it.effect("refuses a revoked key and accepts the organization's other one", function* () {
      const keys = yield* ApiKeys
      const account = yield* openAccount({})
      const other = yield* keys.create({ org: account.org })
      yield* dies(account, keys.revoke(OrganizationScope.all, account.key))
      isFine(yield* models(bearer(Redacted.value(other.secret))))
    })

    it.effect("refuses an expired key and accepts it once its expiry is extended", function* () {
      const keys = yield* ApiKeys
      const account = yield* openAccount({})
      const at = (expires_at: Date) => keys.update(OrganizationScope.all, account.key, { expires_at })
      yield* at(new Date("2999-01-01"))
      yield* dies(account, at(new Date("2020-01-01")))
      yield* at(new Date("2999-01-01"))
      yield* soon(Effect.map(models(bearer(account.secret)), isFine))
    })

    it.effect("refuses a key from its expiry on", function* () {
      const keys = yield* ApiKeys
      const sql = yield* SqlClient.SqlClient
      const account = yield* openAccount({})
      const in1s = sql`UPDATE api_keys SET expires_at = now() + interval '1 second' WHERE id = ${account.key}`
      yield* dies(account, in1s)
      assert.isNotNull((yield* keys.find(OrganizationScope.all, account.key)).expires_at)
    })

    it.effect("refuses a suspended organization's keys until it is resumed", function* () {
      const organizations = yield* Organizations
      const account = yield* openAccount({})
      yield* dies(account, organizations.suspend(account.org), refusals.suspended)
      yield* organizations.resume(account.org)
      yield* soon(Effect.map(models(bearer(account.secret)), isFine))
    })

    it.effect("tells of the suspension with a key that would be valid, and with no other", function* () {
      const keys = yield* ApiKeys
      const { org, ...account } = yield* openAccount({})
      const issue = (expires_at: Date | null = null) =>
        Effect.map(keys.create({ org, expires_at }), ({ record, secret }) => ({
          key: record.id,
          secret: Redacted.value(secret)
        }))
      const [revoked, expired, later] = [
        yield* issue(),
        yield* issue(new Date(1)),
        yield* issue(new Date("2999-01-01"))
      ]
      yield* keys.revoke(OrganizationScope.all, revoked.key)
      yield* (yield* Organizations).suspend(org)
      for (const { secret } of [account, later]) {
        yield* soon(Effect.map(models(bearer(secret)), (answer) => assertRefused(answer, refusals.suspended)))
      }
      for (const secret of [revoked.secret, expired.secret, `${account.secret}x`]) {
        assertRefused(yield* models(bearer(secret)), invalidKey)
      }
    })

    it.effect("accepts a reissued key's new secret and refuses the old one", function* () {
      const keys = yield* ApiKeys
      const account = yield* openAccount({})
      isFine(yield* models(bearer(account.secret)))
      const { secret } = yield* keys.reissue(OrganizationScope.all, account.key)
      isFine(yield* models(bearer(Redacted.value(secret))))
      yield* soon(Effect.map(models(bearer(account.secret)), (answer) => assertRefused(answer, invalidKey)))
    })
  })

  it.effect("accepts both secrets for a grace, with one rate, one balance and one organization", function* () {
    const keys = yield* ApiKeys
    const sql = yield* SqlClient.SqlClient
    const { first } = yield* Upstreams
    const old = yield* openAccount({ rpm: 5 })
    const other = yield* openAccount({ nanoUsd: 0n })
    isFine(yield* models(bearer(old.secret)))
    const { secret } = yield* keys.reissue(OrganizationScope.all, old.key, 3_600)
    const renewed = { secret: Redacted.value(secret) }
    for (const [remaining, account] of [old, renewed, old, renewed].entries()) {
      yield* first.script(answers())
      const answer = yield* chat(account, talk("talk"))
      isFine(answer)
      assert.deepStrictEqual(rateOf(answer), { limit: 5, remaining: 4 - remaining })
    }
    const credits = (account: { readonly secret: string }) =>
      Effect.map(call("/v1/credits", { headers: bearer(account.secret) }), ({ text }) => text)
    assert.strictEqual(yield* credits(old), yield* credits(renewed))
    assert.notStrictEqual(yield* credits(other), yield* credits(old))
    const in1s = sql`UPDATE api_keys SET previous_expires_at = now() + interval '1 second' WHERE id = ${old.key}`
    yield* dies(old, in1s)
    isFine(yield* models(bearer(renewed.secret)))
  })

  it.effect("refuses both secrets once the key is revoked, has expired, or is suspended", function* () {
    const keys = yield* ApiKeys
    const organizations = yield* Organizations
    const ends: ReadonlyArray<readonly [end: (account: Account) => Effect.Effect<unknown>, refusal: Refusal]> = [
      [({ key }) => Effect.orDie(keys.revoke(OrganizationScope.all, key)), invalidKey],
      [
        ({ key }) => Effect.orDie(keys.update(OrganizationScope.all, key, { expires_at: new Date("2020-01-01") })),
        invalidKey
      ],
      [({ org }) => Effect.orDie(organizations.suspend(org)), refusals.suspended]
    ]
    for (const [end, refusal] of ends) {
      const old = yield* openAccount({})
      const { secret } = yield* keys.reissue(OrganizationScope.all, old.key, 3_600)
      isFine(yield* models(bearer(Redacted.value(secret))))
      yield* dies(old, end(old), refusal)
      yield* soon(Effect.map(models(bearer(Redacted.value(secret))), (answer) => assertRefused(answer, refusal)))
    }
  })

  it.effect("limits a key with scopes to their surfaces, and to no read", function* () {
    const { first } = yield* Upstreams
    for (const scopes of [undefined, ["chat"], ["images", "chat"]] as const) {
      yield* first.script(answers())
      isFine(yield* chat(yield* openAccount(scopes === undefined ? {} : { scopes }), talk("talk")))
    }
    for (const scopes of [["images"], ["videos"], ["images", "videos"], []] as const) {
      const account = yield* openAccount({ scopes })
      for (const stream of [false, true]) {
        assertRefused(yield* chat(account, { ...talk("talk"), stream }), refusals.scope)
      }
      isFine(yield* models(bearer(account.secret)))
      isFine(yield* call("/v1/credits", { headers: bearer(account.secret) }))
    }
  })

  it.effect("shows each organization only its own balance", function* () {
    const Shown = Schema.parseJson(Schema.Struct({ balance_usd: Schema.Number }))
    for (const [nanoUsd, usd] of [
      [1_000_000_001n, 1.000000001],
      [0n, 0],
      [250_000_000n, 0.25]
    ] as const) {
      const { text } = yield* call("/v1/credits", { headers: bearer((yield* openAccount({ nanoUsd })).secret) })
      assert.strictEqual((yield* Schema.decodeUnknown(Shown)(text)).balance_usd, usd)
    }
  })

  it.effect("stores only the hash of a secret, and no part of it", function* () {
    const { first } = yield* Upstreams
    const keys = yield* ApiKeys
    const account = yield* openAccount({})
    const reissued = yield* keys.reissue(OrganizationScope.all, account.key, 3_600)
    const secrets = [account.secret, Redacted.value(reissued.secret), "ggw_nobody-has-this"]
    for (const secret of secrets) {
      yield* first.script(answers())
      yield* chat({ secret }, talk("talk"))
    }
    const everything = yield* dump
    assert.include(everything, account.key)
    for (const secret of secrets) {
      const bare = secret.slice("ggw_".length)
      for (const part of [secret, bare, bare.slice(0, 10), bare.slice(-10)]) assert.notInclude(everything, part)
      assert.notInclude(everything, Buffer.from(secret).toString("hex"))
      assert.notInclude(everything, Buffer.from(secret).toString("base64").slice(0, 20))
    }
  })
})
